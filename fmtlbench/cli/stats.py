"""`fmtlbench stats`: are the differences between methods more than chance? Never imports torch."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from ..reports.formats import find_formats
from ._parser import refuse_others
from ._report import (
    add_reference,
    add_rows,
    add_runs,
    add_setting,
    add_spreadsheet,
    add_terms,
    check_style,
    emit,
    keywords,
)

if TYPE_CHECKING:
    from ..reports.stats.analysis import Analysis

EPILOG = """\
A block is a (scenario, client, task) with its primary metric; seeds are averaged first. On the global test images alike
clients (same dataset and tasks) are one block. Friedman (corrected for ties) and Iman–Davenport ask whether any methods
differ, Nemenyi and Wilcoxon which; -o draws the critical-difference diagram and the heat map of p-values. Only runs of
equal setting are compared, unless --rows says what may differ; a block without a score of every method is dropped,
never filled in, and the notes say so. Two methods: Wilcoxon only.

--noise asks how large the noise is beside the effects. For every setting: how far seeds move Δm and each column
(self-noise: Δm of a seed's run against the mean of the same method's other seeds), how far a rerun does, whether the
order of methods holds between halves of the seeds, and how many seeds tell two methods apart. A rerun is the same
method, setting and seed run again with only incidental values changed (--set train.threads=2, another device), or in
another folder with the same config (another machine, or ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 in the
environment); give both folders.

examples:
  fmtlbench stats --scenario st_mt_1
  fmtlbench stats runs elsewhere/runs --correction bonferroni -o figures
  fmtlbench stats --pair fedhca2,fedavg --format json
  fmtlbench stats --noise runs elsewhere/runs --scenario st_mt_1 --format json -o noise.json
  fmtlbench stats --noise --pair fedhca2,fedavg --power 0.9
  fmtlbench stats --noise --published fedhca2_table1_st_mt_1
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "stats",
        help="significance of differences between methods, and the noise of seeds and reruns",
        description="Test whether differences between methods are more than chance, or with --noise how large it is.",
        epilog=EPILOG,
    )
    add_runs(parser)
    add_setting(parser)
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="NAME", help="only this one; may be repeated without --noise"
    )
    parser.add_argument("--split", default="global", metavar="NAME", help="whose test images; default: global")
    parser.add_argument(
        "--pair", metavar="A,B", help="two methods: how probably A is better; with --noise the seeds it takes"
    )
    add_reference(parser)
    parser.add_argument("--noise", action="store_true", help="noise over seeds and reruns beside the effects")
    tests = parser.add_argument_group("without --noise")
    tests.add_argument("--correction", default="holm", metavar="holm|bonferroni", help="of Wilcoxon; default: holm")
    tests.add_argument("--alpha", type=float, default=0.05, help="level of significance; default: 0.05")
    add_rows(tests)
    noise = parser.add_argument_group("with --noise")
    noise.add_argument("--baseline", default="local", metavar="NAME", help="what Δm is against; default: local")
    noise.add_argument("--power", type=float, default=0.8, metavar="P", help="of the test; default: 0.8")
    noise.add_argument("--published", metavar="NAME", help="the order beside this table of `fmtlbench papers list`")
    add_terms(noise)
    noise.add_argument("--standalone", action="store_true", help="latex: a complete document")
    parser.add_argument(
        "--format", default="table", choices=find_formats(), help="latex: with --noise only; default: table"
    )
    add_spreadsheet(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="also draw the figures, PDF and PNG; with --noise the file to write instead of stdout",
    )
    parser.set_defaults(func=main, tests=tests, noises=noise)


def main(args: argparse.Namespace) -> int:
    if args.noise:
        refuse_others(args, args.tests, "the tests, without --noise")
        return _tell_noise(args)
    refuse_others(args, args.noises, "--noise; give that too")
    if args.format == "latex":
        *others, last = (name for name in find_formats() if name != "latex")
        raise UsageError(f"--format latex: is for --noise; without it {', '.join(others)} or {last}")

    from ..base.files import check_folder
    from ..reports.ask import analyse_runs

    check_style(args)
    if args.output:
        check_folder(args.output)
    analysis = analyse_runs(*args.runs, **keywords(args, analyse_runs))
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
        _draw(args.output, analysis)
    return 0


def _draw(folder: Path, analysis: Analysis) -> None:
    from ..reports.plots import save_figure
    from ..reports.stats.figures import draw_tests

    for name, figure in draw_tests(analysis).items():
        for path in save_figure(figure, folder / name):
            print(path, file=sys.stderr)


def _tell_noise(args: argparse.Namespace) -> int:
    from ..reports.ask import measure_noise
    from ..reports.stability_tables import as_json, stability_tables

    check_style(args)
    if len(args.scenario) > 1:
        raise UsageError(f"--scenario {args.scenario[1]}: with --noise one scenario; --scenario is given twice")
    if args.split not in ("global", "personal"):
        raise UsageError(f"--split {args.split}: with --noise global or personal")
    asked = {**keywords(args, measure_noise), "scenario": args.scenario[0] if args.scenario else None}
    found = measure_noise(*args.runs, **asked)
    emit(stability_tables(found) if args.format != "json" else [], args, lambda: as_json(found), allow_nan=False)
    return 0
