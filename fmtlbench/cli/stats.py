"""`fmtlbench stats`: are the differences between methods more than chance? Never imports torch."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ._report import add_reference, add_rows, add_runs, add_setting, add_spreadsheet, check_style, every_run, merged

EPILOG = """\
A block is a (scenario, client, task) with its primary metric; seeds are averaged first. On the global test images alike
clients (same dataset and tasks) are one block. Friedman (corrected for ties) and Iman–Davenport ask whether any methods
differ, Nemenyi and Wilcoxon which; -o draws the critical-difference diagram and the heat map of p-values. Only runs of
equal setting are compared, unless --rows says what may differ; a block without a score of every method is dropped,
never filled in, and the notes say so. Two methods: Wilcoxon only.

examples:
  fmtlbench stats --scenario st_mt_1
  fmtlbench stats runs elsewhere/runs --correction bonferroni -o figures
  fmtlbench stats --pair fedhca2,fedavg --format json
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "stats",
        help="significance of differences between methods",
        description="Test whether differences between methods are more than chance.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    add_setting(parser)
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument("--split", default="global", metavar="NAME", help="whose test images; default: global")
    parser.add_argument("--correction", default="holm", metavar="holm|bonferroni", help="of Wilcoxon; default: holm")
    parser.add_argument("--alpha", type=float, default=0.05, help="level of significance; default: 0.05")
    parser.add_argument("--pair", metavar="A,B", help="two methods: the probability that A is better than B")
    add_reference(parser)
    add_rows(parser)
    parser.add_argument("--format", default="table", choices=("table", "md", "csv", "json"), help="default: table")
    add_spreadsheet(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="also draw the figures, PDF and PNG")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder
    from ..reports.code_notes import code_notes
    from ..reports.delta import find_reference
    from ..reports.stats.analysis import analyse, find_pair

    check_style(args)
    if args.output:
        check_folder(args.output)
    runs, chosen = every_run(args)
    reference = find_reference(runs, args.reference) if args.reference else None
    collection = merged(args, chosen)
    pair = find_pair(args.pair, collection.frame) if args.pair else None
    remarks = code_notes(collection.runs)
    analysis = analyse(
        collection.frame, args.scenario, args.split, args.correction, args.alpha, pair, reference, remarks
    )
    if args.format == "json":
        from ..reports.stats.tables import as_json

        print(json.dumps(as_json(analysis), indent=2, ensure_ascii=False))
    else:
        from ..reports.formats import render
        from ..reports.stats.tables import pair_table, rank_table

        tables = [rank_table(analysis), pair_table(analysis)]
        options = {"spreadsheet": args.spreadsheet} if args.format == "csv" else {}
        print(render(tables, args.format, **options), end="")
        if args.format == "csv":  # the numbers alone; what they mean goes beside them
            for note in (note for table in tables for note in table.notes):
                print(note, file=sys.stderr)
    if args.output:
        _draw(args, analysis)
    return 0


def _draw(args: argparse.Namespace, analysis) -> None:
    from ..reports.plots import pvalues_label, save_figure
    from ..reports.plots.cd import cd_figure
    from ..reports.plots.pvalues import pvalues_figure

    figures = {"pvalues": pvalues_figure(analysis.wilcoxon_table(), args.alpha, pvalues_label(args.correction))}
    if analysis.cd is not None:
        figures["cd"] = cd_figure(analysis.ranks, analysis.nemenyi, analysis.cd, args.alpha)
    for name, figure in figures.items():
        for path in save_figure(figure, args.output / name):
            print(path, file=sys.stderr)
