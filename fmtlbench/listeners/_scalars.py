"""A round as named numbers, for loggers that draw curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def scalars_of(row: Mapping[str, Any], timing: Mapping[str, Any]) -> dict[str, float]:
    """Name the numbers of a round; what it does not have (no score, no sensor) is left out."""
    return {name: float(value) for name, value in _all(row, timing) if value is not None}


def _all(row: Mapping[str, Any], timing: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for client, losses in row["losses"].items():
        yield from ((f"loss/{client}/{task}", loss) for task, loss in losses.items())
    yield from ((f"grad_norm/{client}", norm) for client, norm in row["grad_norm"].items())
    for key in ("scores", "scores_before"):
        for score in row.get(key, ()):
            place = (key, score["client"], score["split"], score["task"], score["metric"])
            yield "/".join(place), score["value"]
    yield from ((f"seconds/{phase}", spent) for phase, spent in timing["seconds"].items())
    yield from ((f"bytes/{way}", row[f"bytes_{way}"]) for way in ("up", "down"))
    energy = timing.get("energy") or {}  # of all rounds so far
    yield from ((f"energy/{unit}", energy.get(unit)) for unit in ("kwh", "co2e_g"))
