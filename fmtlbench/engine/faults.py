"""Who drops out of a round, and who has time for a part of it only: drawn by seed, client and round.

A trace does not depend on the method, on who else is there, or on how often it is asked: methods meet the same faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.seeds import stream
from ..config.run_config import FederationConfig
from ..exchange import Party


@dataclass(frozen=True)
class Attendance:
    """Who delivers something in a round, who does not, and what share of their batches stragglers have time for."""

    present: list[int]
    dropped: list[int]
    work: dict[int, float]


def attend(
    config: FederationConfig, seed: int, index: int, chosen: Sequence[int], parties: Sequence[Party]
) -> Attendance:
    """Let faults happen among the clients that were chosen for round `index`; somebody always delivers."""
    if not config.dropout and not config.stragglers:
        return Attendance(list(chosen), [], {})
    draws = {i: stream(seed, "faults", parties[i].id, index).random(3).tolist() for i in chosen}
    work = {i: part for i, (_, late, part) in draws.items() if late < config.stragglers}
    failed = {i for i, (fails, _, _) in draws.items() if fails < config.dropout}
    if config.straggler_work == "dropped":
        failed |= work.keys()
        work = {}
    if len(failed) == len(chosen):  # the one who failed most narrowly delivers after all
        failed.discard(max(chosen, key=lambda i: draws[i][0]))
    return Attendance(
        [i for i in chosen if i not in failed],
        [i for i in chosen if i in failed],
        {i: part for i, part in work.items() if i not in failed},
    )
