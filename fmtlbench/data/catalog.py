"""What datasets exist, without opening any: `fmtlbench list datasets` and the scenario checks read this.

A scenario names a *domain* (`nyud`, `pascal`); a preset's `data.source` decides which dataset stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import unknown
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


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        *(
            DatasetInfo(s.name, s.name.removeprefix("synth-"), "synth", s.tasks, s.classes, s.description)
            for s in SYNTH.values()
        ),
        DatasetInfo(
            "nyud", "nyud", "real", ("semseg", "depth", "normals", "edge"), {"semseg": 40},
            "NYUD-v2, 795 train / 654 test images of rooms; the reader is not part of this version",
        ),
        DatasetInfo(
            "pascal", "pascal", "real", ("semseg", "human_parts", "sal", "normals", "edge"),
            {"semseg": 21, "human_parts": 7},
            "PASCAL-Context, 4998 train / 5105 test images; the reader is not part of this version",
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
