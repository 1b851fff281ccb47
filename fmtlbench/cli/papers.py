"""`fmtlbench papers`: the papers' tables, figures and claims, and what our runs make of them."""

from __future__ import annotations

from ._parser import ACTIONS, add_actions


def add(verbs) -> None:
    parser = verbs.add_parser(
        "papers",
        help="the papers' tables, figures and claims: list, compare, reproduce and check them",
        description="The papers' tables, figures and claims, and what runs make of them. "
        "`fmtlbench papers` alone lists the tables.",
    )
    add_actions(parser, "papers", ACTIONS["papers"])
