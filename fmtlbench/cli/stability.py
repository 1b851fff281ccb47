"""`fmtlbench stability`: how large is the noise beside the effects? Never imports torch."""

from __future__ import annotations

import argparse
import json

from ._report import add_delta, add_format, add_runs, add_setting, asked_delta, check_style, collect_runs, emit, write

EPILOG = """\
For every setting: how far seeds move Δm and each column (self-noise: Δm of a seed's run against the mean of the same
method's other seeds), how far a rerun does, whether the order of methods holds between halves of the seeds, and how
many seeds tell two methods apart. A rerun is the same method, setting and seed run again with only incidental values
changed (--set train.threads=2, another device), or in another folder with the same config (another machine, or
ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 in the environment); give both folders.

examples:
  fmtlbench stability runs
  fmtlbench stability runs elsewhere/runs --scenario st_mt_1 --format json -o noise.json
  fmtlbench stability --pair fedhca2,fedavg --power 0.9
  fmtlbench stability --published fedhca2_table1_st_mt_1
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "stability",
        help="noise over seeds and reruns beside the effects, seeds needed",
        description="How large the noise of finished runs is beside the effects they are meant to show.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    add_setting(parser)
    parser.add_argument("--scenario", metavar="NAME", help="only this scenario")
    parser.add_argument("--split", choices=("global", "personal"), default="global", help="default: global")
    parser.add_argument("--baseline", default="local", metavar="NAME", help="what Δm is against; default: local")
    add_delta(parser)
    parser.add_argument("--pair", metavar="A,B", help="two methods: their difference and the seeds it needs")
    parser.add_argument("--power", type=float, default=0.8, metavar="P", help="of the test; default: 0.8")
    parser.add_argument("--published", metavar="NAME", help="the order beside this table of `fmtlbench published`")
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports.reruns import set_reruns_aside
    from ..reports.stability import Question, stability
    from ..reports.stability_tables import as_json, stability_tables
    from ..reports.stats.analysis import find_pair
    from ._installed import Installed

    check_style(args)
    runs, reruns, notes = set_reruns_aside(collect_runs(args.runs, reading=("manifest",)))
    delta = asked_delta(args, runs, args.baseline)
    chosen = runs if args.setting is None else runs.of_setting(args.setting)
    pair = find_pair(args.pair, chosen.frame) if args.pair else None
    question = Question(args.scenario, args.split, delta, pair, args.power, args.published, Installed())
    found = stability(chosen, question, reruns, notes)
    if args.format == "json":
        write(json.dumps(as_json(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n", args.output)
    else:
        emit(stability_tables(found), args)
    return 0
