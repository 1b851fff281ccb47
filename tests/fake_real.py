"""A dataset with the protocol of the real readers, made of arithmetic: labels are functions of the image's pixels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from fake_data import FakeReader

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.data.datasets import Provenance, dataset_for

TASKS = ("semseg", "human_parts", "sal", "edge", "normals", "depth")


def position_sample(height: int, width: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Red and semseg tell the row, green and human_parts the column, blue the image; the rest follows from them."""
    rows, columns = np.mgrid[:height, :width]
    image = np.stack([rows * 2, columns * 2, np.full_like(rows, seed)], -1).astype(np.uint8)
    normals = np.stack([columns - width / 2, rows - height / 2, np.full(rows.shape, 9.0)], -1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return {
        "image": image,
        "semseg": rows.astype(np.uint8),
        "human_parts": columns.astype(np.uint8),
        "sal": (rows > columns).astype(np.uint8),
        "edge": (rows % 4 == 0).astype(np.uint8),
        "normals": (np.round((normals + 1) * 127.5) * np.float32(2 / 255) - 1).astype(np.float32),
        "depth": (1 + rows * 0.01 + columns * 0.0371 + seed).astype(np.float32),
    }


class FakeReal(FakeReader):
    """`count` images of different sizes; those in `damaged` cannot be read, files in `changed` have another size."""

    lineage, stacked = "0123456789abcdef" * 4, False
    info = dataset_for("nyud", "real")

    def __init__(
        self, count: int = 9, size: tuple[int, int] = (24, 32), damaged: tuple[int, ...] = (),
        tasks: tuple[str, ...] = TASKS, purpose: str = "training", changed: tuple[tuple[int, str], ...] = (),
    ) -> None:  # fmt: skip
        self.count, self.size, self.damaged, self.tasks = count, size, damaged, tasks
        self.purpose, self.changed, self.resize = purpose, changed, "none"
        self.ids = [f"{number:04d}" for number in range(count)]
        self.reads: list[int] = []

    def __len__(self) -> int:
        return self.count

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.count}{self.tasks}".encode()).hexdigest()

    def provenance(self, key: str) -> Provenance:
        name = f"edge-{self.purpose}" if key == "edge" else key
        images = [[image, 100 + ((index, key) in self.changed)] for index, image in enumerate(self.ids)]
        return Provenance(name, [name], images)

    def image_id(self, index: int) -> str:
        return self.ids[index]

    def sample(self, index: int, keys=None) -> dict[str, np.ndarray]:
        keys = ("image", *self.tasks) if keys is None else keys
        if not 0 <= index < self.count:
            raise UsageError(f"nyud train: no sample {index}, valid: 0 to {self.count - 1}")
        if index in self.damaged:
            raise FmtlbenchError(f"{Path('images') / self.ids[index]}.png: cannot be decoded")
        self.reads.append(index)
        whole = position_sample(20 + index % 7, 40 - index % 5, index)
        return {key: whole[key] for key in keys}
