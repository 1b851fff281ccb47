"""What datasets exist, without opening any: `fmtlbench list datasets` and the scenario checks read this.

A scenario names a *domain* (`nyud`, `pascal`); a preset's `data.source` decides which dataset stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import unknown
from ..metrics.odsf import MAX_DIST
from .real.class_names import NYUD_40, PERSON_PARTS, VOC_21
from .synth import DOMAINS as SYNTH


@dataclass(frozen=True)
class OfficialList:
    """A split as everybody uses it: how many images, and the sha256 of their sorted ids, one per line."""

    images: int
    sha256: str


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset: which tasks it labels and which classes they have."""

    name: str
    domain: str
    source: str
    tasks: tuple[str, ...]
    class_names: dict[str, tuple[str, ...]]
    description: str
    # Options of a metric that belong to the data: how edge labels are prepared and how far a match may lie.
    metric_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    official: dict[str, OfficialList] = field(default_factory=dict)

    @property
    def classes(self) -> dict[str, int]:
        """Task → number of classes, for the tasks that have classes."""
        return {task: len(names) for task, names in self.class_names.items()}


def _edges(domain: str, gt: str) -> dict[str, dict[str, Any]]:
    return {"odsf": {"max_dist": MAX_DIST[domain], "gt": gt}}


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        *(
            DatasetInfo(
                name, name.removeprefix("synth-"), "synth", s.tasks, s.class_names, s.description,
                _edges(name.removeprefix("synth-"), "plain"),
            )
            for name, s in SYNTH.items()
        ),
        DatasetInfo(
            "nyud", "nyud", "real", ("semseg", "depth", "normals", "edge"), {"semseg": NYUD_40},
            "NYUD-v2, 795 train / 654 test images of rooms (NYUDv2/ or NYUD_MT/ below --data-root)",
            # Boundary maps go through label-change detection once more, as for the published scores.
            _edges("nyud", "seism"),
            {
                "train": OfficialList(795, "c4e0b26c6b243abddb903ff779dfdfa6f791f6d84e13ce02a84eee4bdf5e73a6"),
                "test": OfficialList(654, "688b6e8adffa10c9a38f0c07c5aac45b968349552d005194a6fca041f40b5a11"),
            },
        ),
        DatasetInfo(
            "pascal", "pascal", "real", ("semseg", "human_parts", "sal", "normals", "edge"),
            {"semseg": VOC_21, "human_parts": PERSON_PARTS},
            "PASCAL-Context, 4998 train / 5105 test images (PASCALContext/ below --data-root)",
            # The reader's test split holds the thin edges of the label map that published scores are measured against.
            _edges("pascal", "plain"),
            {
                "train": OfficialList(4998, "2da5ca32fd4ef15bec421829de47e0652cb7b749f4cd24a2485757607ecb1975"),
                "test": OfficialList(5105, "261199d190e5c22dc3458c97a9e831f25247e2ae41eb650f5202e1e0d82563d5"),
            },
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
