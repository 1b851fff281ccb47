"""Labels and predictions as files, and a dataset in a folder, small enough for a test."""

from __future__ import annotations

import functools
import io
from pathlib import Path

import numpy as np
from PIL import Image

SIZE = (24, 32)


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def png(array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


@functools.cache
def good_array(task: str, seed: int) -> np.ndarray:
    """A label of a task as an array that is taken for its prediction too."""
    rng = np.random.default_rng(seed)
    if task in ("depth", "disparity"):
        return rng.uniform(0.5, 9, SIZE).astype(np.float32)
    if task == "normals":
        vectors = rng.normal(size=(*SIZE, 3))
        return (vectors / np.linalg.norm(vectors, axis=2, keepdims=True)).astype(np.float32)
    return rng.integers(0, 5 if task in ("semseg", "human_parts") else 2, SIZE).astype(np.uint8)


def robots(train: int = 2, test: int = 1) -> dict[str, bytes]:
    """So many images of a dataset in a folder, with labels of two tasks."""
    lines = lambda ids: "".join(f"{image}\n" for image in ids).encode()
    files = {"robots/train.txt": lines(range(train)), "robots/test.txt": lines(range(train, train + test))}
    for image in range(train + test):
        files[f"robots/images/{image}.png"] = png(np.full((*SIZE, 3), 50 * image % 256, np.uint8))
        files[f"robots/semseg/{image}.png"] = png(good_array("semseg", image) % 3)
        files[f"robots/depth/{image}.npy"] = npy(good_array("depth", image))
    return files


def write_robots(folder: Path, **counts: int) -> None:
    """Write the dataset below a folder."""
    for name, content in robots(**counts).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
