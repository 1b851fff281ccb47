"""What the processes of a run use, each measured where it is, and how that adds up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .energy import Reading
from .tracker import Source


@dataclass(frozen=True)
class ProcessUse:
    """One process of a run so far."""

    node: str  # which machine it is on: "" is the server's, others have a number of their own
    memory: dict[str, int | None]  # peaks in bytes: of the process, of its device
    threads: int
    reading: Reading | None = None  # None: no energy is measured (any more)
    reason: str | None = None  # why not
    sources: dict[str, Source] | None = None
    devices: tuple[str, ...] = ()  # the GPUs it uses, as its machine calls them
    counted: bool = False  # its energy is in the server's already, or nobody's is measured


def add_energy(uses: Iterable[ProcessUse]) -> dict[str, float]:
    """Add up the energy by part, in kWh.

    What is estimated is a process's own. A counter sees its whole processor or card, so processes that share one have
    read the same: the largest reading stands for all of them.
    """
    largest: dict[tuple, float] = {}
    for number, use in enumerate(uses):
        for part, kwh in use.reading.parts.items() if use.reading and not use.counted else ():
            whole = use.sources is not None and part in use.sources and use.sources[part].measured
            place = (use.node, use.devices if part == "gpu" else ()) if whole else (number,)
            largest[part, place] = max(kwh, largest.get((part, place), 0.0))
    total: dict[str, float] = {}
    for (part, _), kwh in largest.items():
        total[part] = total.get(part, 0.0) + kwh
    return total


def add_memory(peaks: Iterable[dict[str, int | None]]) -> dict[str, int | None]:
    """Add up peaks: an upper bound of what all processes held at once."""
    known: dict[str, list[int]] = {"process": [], "device": []}
    for peak in peaks:
        for place, values in known.items():
            if peak.get(place) is not None:
                values.append(peak[place])
    return {place: sum(values) if values else None for place, values in known.items()}
