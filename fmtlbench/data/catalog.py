"""What datasets exist, without opening any: `fmtlbench list datasets` and the scenario checks read this.

A scenario names a *domain* (`nyud`, `pascal`); a preset's `data.source` decides which dataset stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import unknown
from ..metrics.odsf import MAX_DIST
from .synth import DOMAINS as SYNTH


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset: which tasks it labels and how many classes they have."""

    name: str
    domain: str
    source: str
    tasks: tuple[str, ...]
    classes: dict[str, int]
    description: str
    # Options of a metric that belong to the data: how edge labels are prepared and how far a match may lie.
    metric_options: dict[str, dict[str, Any]] = field(default_factory=dict)


def _edges(domain: str, gt: str) -> dict[str, dict[str, Any]]:
    return {"odsf": {"max_dist": MAX_DIST[domain], "gt": gt}}


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        *(
            DatasetInfo(
                name, name.removeprefix("synth-"), "synth", s.tasks, s.classes, s.description,
                _edges(name.removeprefix("synth-"), "plain"),
            )
            for name, s in SYNTH.items()
        ),
        DatasetInfo(
            "nyud", "nyud", "real", ("semseg", "depth", "normals", "edge"), {"semseg": 40},
            "NYUD-v2, 795 train / 654 test images of rooms; the reader is not part of this version",
            _edges("nyud", "seism"),
        ),
        DatasetInfo(
            "pascal", "pascal", "real", ("semseg", "human_parts", "sal", "normals", "edge"),
            {"semseg": 21, "human_parts": 7},
            "PASCAL-Context, 4998 train / 5105 test images; the reader is not part of this version",
            _edges("pascal", "plain"),
        ),
    )
}  # fmt: skip

DOMAINS: dict[str, tuple[str, ...]] = {info.domain: info.tasks for info in DATASETS.values()}


def dataset_for(domain: str, source: str) -> DatasetInfo:
    """The dataset that stands for `domain` under `data.source`."""
    for info in DATASETS.values():
        if (info.domain, info.source) == (domain, source):
            return info
    raise unknown("dataset for domain", domain, DOMAINS)
