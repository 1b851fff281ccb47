"""`fmtlbench runs`: list stored runs, look at them, compare and remove them. No torch."""

from __future__ import annotations

from ._parser import ACTIONS, add_actions


def add(verbs) -> None:
    parser = verbs.add_parser(
        "runs",
        help="list, show, compare and remove stored runs",
        description="What lies in the folders of runs. `fmtlbench runs` alone lists them.",
    )
    add_actions(parser, "runs", ACTIONS["runs"])


def add_run(parser, name: str, **options) -> None:
    """Add an argument that names a run."""
    parser.add_argument(name, metavar="RUN", help="a folder, or a part of a name below ./runs", **options)
