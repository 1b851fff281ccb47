"""`fmtlbench runs`: list stored runs, look at them, compare and remove them. No torch."""

from __future__ import annotations

import importlib

from ._parser import ACTIONS

# One file per action, `_runs_<action>.py` with `add(actions)`.


def add(verbs) -> None:
    parser = verbs.add_parser(
        "runs",
        help="list, show, compare and remove stored runs",
        description="What lies in the folders of runs. `fmtlbench runs` alone lists them.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in ACTIONS["runs"]:
        importlib.import_module(f"._runs_{action}", __package__).add(actions)


def add_run(parser, name: str, **options) -> None:
    """Add an argument that names a run."""
    parser.add_argument(name, metavar="RUN", help="a folder, or a part of a name below ./runs", **options)
