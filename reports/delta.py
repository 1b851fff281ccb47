"""Δm with an interval: relative changes against a baseline, paired by seed, and a seeded bootstrap over them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from ..metrics import MetricError, delta_m
from .table import Cell

if TYPE_CHECKING:
    import numpy as np

REPETITIONS = 2000
RESAMPLED = (
    f"Δm [low, high]: 95 % percentile bootstrap, {REPETITIONS} repetitions, from two seeds on; "
    "what is resampled are the seeds, within each (client, task)"
)
Scores = Mapping[int, Mapping[Hashable, float]]  # seed → key → value


def delta_cell(method: Scores, base: Scores, higher_is_better: Mapping[Hashable, bool], title: str) -> Cell:
    """Δm of a method against the baseline called `title`, each seed against the same seed where both have it."""
    paired = sorted(set(method) & set(base))
    note = ""
    if paired:
        left_out = sorted(set(method) - set(base))
        if left_out:
            note = f"Δm over seeds {_list(paired)} only: {title} has no run of seed {_list(left_out)}"
        pairs = [(method[seed], base[seed]) for seed in paired]
    else:  # still a comparison, but without pairs there is nothing to resample
        note = f"Δm against the mean of {title} over seed {_list(sorted(base))}: no seed in common"
        mean = {key: math.fsum(scores[key] for scores in base.values()) / len(base) for key in higher_is_better}
        pairs = [(method[seed], mean) for seed in sorted(method)]
    lost = {key for pair in pairs for scores in pair for key in higher_is_better if math.isnan(scores[key])}
    if lost:
        return Cell(note=f"no Δm, which needs every score: {_list(sorted(map(_name, lost)))} missing")
    try:
        values = [delta_m(ours, theirs, higher_is_better) for ours, theirs in pairs]
    except MetricError as error:
        return Cell(note=f"no {error}")
    spread = interval(_changes(pairs, higher_is_better)) if paired and len(pairs) > 1 else None
    return Cell(math.fsum(values) / len(values), n=len(values), interval=spread, note=note)


def interval(changes: np.ndarray, repetitions: int = REPETITIONS, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap of the mean of `changes` [seeds, (client, task)]: seeds are drawn anew in each column."""
    import numpy as np

    seeds, columns = changes.shape
    step = max(1, 4_000_000 // (repetitions * seeds))  # columns at a time: bounds the memory for many clients
    total = np.zeros(repetitions)
    for first in range(0, columns, step):
        part = changes[:, first : first + step]
        total += _draws(repetitions, seeds, part.shape[1], first) @ part.T.ravel()
    low, high = np.quantile(total / changes.size, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@lru_cache(maxsize=8)
def _draws(repetitions: int, seeds: int, columns: int, first: int) -> np.ndarray:
    """How often each seed is drawn: [repetitions, columns · seeds]. The same for every method of a table."""
    import numpy as np

    from ..seeds import stream

    cells = repetitions * columns
    picks = stream(0, "bootstrap", seeds, first).integers(seeds, size=(cells, seeds))
    counts = np.bincount((np.arange(cells)[:, None] * seeds + picks).ravel(), minlength=cells * seeds)
    return counts.reshape(repetitions, columns * seeds).astype(float)


def _changes(pairs: list[tuple[Mapping, Mapping]], higher_is_better: Mapping[Hashable, bool]) -> np.ndarray:
    """The terms that Δm averages, in percent: [seeds, keys]."""
    import numpy as np

    keys = list(higher_is_better)
    ours, theirs = (np.array([[pair[side][key] for key in keys] for pair in pairs]) for side in (0, 1))
    signs = np.where([higher_is_better[key] for key in keys], 100.0, -100.0)
    return signs * (ours - theirs) / np.abs(theirs)


def _name(key: Hashable) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _list(items: list) -> str:
    return ", ".join(map(str, items))
