"""`fmtlbench papers`: the papers' tables, figures and claims, and what our runs make of them."""

from __future__ import annotations

import importlib

from ._parser import ACTIONS

# One file per action, `_papers_<action>.py` with `add(actions)`.


def add(verbs) -> None:
    parser = verbs.add_parser(
        "papers",
        help="the papers' tables, figures and claims: list, compare, reproduce and check them",
        description="The papers' tables, figures and claims, and what runs make of them. "
        "`fmtlbench papers` alone lists the tables.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in ACTIONS["papers"]:
        importlib.import_module(f"._papers_{action}", __package__).add(actions)
