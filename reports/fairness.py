"""How a method's Δm is spread over the clients: the worst one, the worst tenth, the standard deviation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..metrics import MetricError
from .delta import Delta, Scores, find_lost, pair_up
from .table import Cell, Column, mean_cell

COLUMNS = (
    Column("worst_client", "worst client", higher_is_better=True),
    Column("bottom_decile", "bottom 10 %", higher_is_better=True),
    Column("client_spread", "spread"),  # not compared: that of the reference is 0 whatever it does
)


class Fairness(NamedTuple):
    """How a method's Δm is spread over the clients, each client's being the mean over its seeds."""

    worst: Cell  # the lowest; its note says whose it is
    decile: Cell  # the mean of the lowest tenth of the clients, at least one
    spread: Cell  # the standard deviation over clients (n - 1)

    @staticmethod
    def words(base: str) -> str:
        """Say what the three mean, for the notes of a table."""
        return (
            "worst client: the lowest Δm of a client, which is the mean relative change over its own tasks against the "
            f"same client of {base}, mean over seeds; bottom 10 %: the mean of the lowest tenth of clients, at least "
            "one; spread: the standard deviation of clients' Δm (n - 1)"
        )


def fairness(
    method: Mapping[int, Scores],
    base: Mapping[int, Scores],
    up: Mapping[tuple[str, str], bool],
    title: str,
    delta: Delta,
) -> Fairness:
    """Return the Δm of a method's clients, each against the same client of the base called `title`, seed by seed.

    Clients that the base does not have, or has with other tasks, leave nothing to compare: the cells say so.
    """
    _, pairs, notes = pair_up(method, base, title, delta)
    strange = {at.client for ours, theirs in pairs for at in ours if at not in theirs}
    if strange:
        return Fairness(*[Cell(note=f"no Δm of clients: {title} does not have {_few(sorted(strange))} as here")] * 3)
    if lost := find_lost(pairs):
        names = sorted(f"{at.client}/{at.task}/{at.metric}" for at in lost)
        return Fairness(*[Cell(note=f"no Δm of clients, which needs every score: {', '.join(names)} missing")] * 3)
    try:
        seeds = [delta.by_client(ours, theirs, up) for ours, theirs in pairs]
    except MetricError as error:
        return Fairness(*[Cell(note=f"no {error}")] * 3)
    clients = {client: math.fsum(of[client] for of in seeds) / len(seeds) for client in seeds[0]}
    ranked = sorted(clients.values())
    tenth = ranked[: max(1, len(ranked) // 10)]
    whose = _few(client for client, value in clients.items() if value == ranked[0])
    worst = Cell(ranked[0], n=len(seeds), note="; ".join([f"worst client: {whose}", *notes]))
    spread = mean_cell(ranked).std
    alone = "no spread: there is one client" if spread is None else ""
    return Fairness(worst, Cell(math.fsum(tenth) / len(tenth), n=len(seeds)), Cell(spread, n=len(seeds), note=alone))


def _few(names: Iterable[str], most: int = 3) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
