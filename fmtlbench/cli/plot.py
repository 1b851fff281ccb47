"""`fmtlbench plot`: figures of finished runs. Never imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..reports.plots import describe_kinds
from ._report import add_delta, add_rows, add_runs, add_setting, keywords

EPILOG = """\
rounds, clients and sweep show scores instead of Δm with --task, --dataset or --client: a panel for each dataset that
has the task, or for every dataset and task with --task all. Lines are means over seeds. A method looks the same in all
figures.

examples:
  fmtlbench plot rounds --scenario st_mt_1 -o figures/rounds          (writes rounds.pdf and rounds.png)
  fmtlbench plot rounds --task depth --x kwh -o depth.pdf
  fmtlbench plot rounds --task all --scenario st_mt_1 -o all.pdf
  fmtlbench plot sweep --option algo.friends --task semseg --dataset pascal -o friends.pdf
  fmtlbench plot updates runs/st_mt_1/fedavg --method tsne -o updates.png
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "plot",
        help="figures of finished runs",
        description="Draw a figure of finished runs, one column wide.",
        epilog=f"kinds:\n{_list_kinds()}\n\n{EPILOG}",
    )
    parser.add_argument("kind", metavar="KIND", help="which figure, see below")
    add_runs(parser)
    add_setting(parser)
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FILE", help="PDF, PNG or SVG by its ending"
    )
    parser.add_argument(
        "--scenario", metavar="NAME", help="only this one; needed where a figure shows one and the runs are of several"
    )
    parser.add_argument("--split", default="global", metavar="NAME", help="whose test images; default: global")
    parser.add_argument("--x", default="rounds", metavar="rounds|kwh|bytes|hours", help="rounds: the horizontal axis")
    parser.add_argument(
        "--task", metavar="NAME|all", help="rounds, clients, sweep: its metric instead of Δm, a panel per dataset"
    )
    parser.add_argument("--dataset", metavar="NAME", help="rounds, clients, sweep: on this dataset only")
    parser.add_argument("--client", metavar="ID", help="rounds, clients, sweep: of this client; grouping: whose layers")
    parser.add_argument("--option", metavar="PATH", help="sweep: which option, as --set takes it: algo.mu, train.lr, …")
    parser.add_argument(
        "--part", metavar="NAME", help="hyperweights: alpha or beta alone; grouping: frequency or votes alone"
    )
    parser.add_argument("--round", type=int, metavar="N", help="hyperweights, updates: default: the last")
    parser.add_argument("--updates", default="encoder", metavar="encoder|decoder", help="updates: of what")
    parser.add_argument("--method", default="pca", metavar="pca|tsne", help="updates: how they come to lie in a plane")
    parser.add_argument("--raw", action="store_true", help="updates: with their lengths, not normalised")
    parser.add_argument("--cost", default="seconds", metavar="seconds|kwh|bytes", help="pareto: the horizontal axis")
    parser.add_argument("--alpha", type=float, default=0.05, help="cd, pvalues: level of significance; default: 0.05")
    parser.add_argument("--correction", default="holm", metavar="holm|bonferroni", help="pvalues: default: holm")
    add_delta(parser)
    add_rows(parser)
    parser.set_defaults(func=main)


def _list_kinds() -> str:
    kinds = describe_kinds()
    width = max(map(len, kinds)) + 2
    return "\n".join(f"  {kind:{width}} {shows}".rstrip() for kind, shows in kinds.items())


def main(args: argparse.Namespace) -> int:
    from ..reports.ask import plot
    from ..reports.figure_style import targets
    from ..reports.plots import Options

    asked = {**keywords(args, Options), **keywords(args, plot)}
    plot(asked.pop("kind"), *args.runs, **asked)
    for path in targets(args.output):
        print(path)
    return 0
