"""`fmtlbench runs`: list stored runs, look at them, compare, remove and shrink them. Only `prune` may need torch."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

# One file per action, `_runs_<action>.py` with `add(actions)`.
ACTIONS = ("list", "show", "diff", "rm", "prune")


def add(verbs) -> None:
    parser = verbs.add_parser(
        "runs",
        help="list, show, compare, remove and shrink stored runs",
        description="What lies in the folders of runs. `fmtlbench runs` alone lists them.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in ACTIONS:
        importlib.import_module(f"._runs_{action}", __package__).add(actions)


def add_list_if_missing(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with `list` after `runs` where no action is named."""
    verb, action = [*words, "", ""][:2]
    if verb == "runs" and action not in (*ACTIONS, "-h", "--help"):
        return ["runs", "list", *words[1:]]
    return [*words]


def add_action_on_folders(actions, name: str, meaning: str, epilog: str) -> argparse.ArgumentParser:
    """Add an action on all runs of some folders, `args.paths`; return its parser."""
    parser = actions.add_parser(name, help=meaning, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", default=[Path("runs")], help="folders of runs; default: runs"
    )
    return parser


def add_run(parser, name: str, **options) -> None:
    """Add an argument that names a run."""
    parser.add_argument(name, metavar="RUN", help="a folder, or a part of a name below ./runs", **options)
