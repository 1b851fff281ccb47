"""Predictions as files that `fmtlbench evaluate` reads: <client>/<task>/<image id>.png, and .npy for depth.

semseg and human_parts: class numbers in a PNG with a palette, so that viewers show colours and readers get numbers.
normals: 8-bit (n + 1) · 127.5. sal and edge: 8-bit probability · 255. depth: float32 metres as NPY, and beside it a
PNG in colours from 0 to DEEPEST metres, which is only to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import FmtlbenchError, UsageError
from ..files import check_folder, replace_folder
from .colours import class_colours, depth_picture

ABOUT = "predictions.json"  # in every folder of predictions: which run, round and split
DEEPEST = 10.0


def write_prediction(
    folder: Path, task: str, name: str, value: np.ndarray, class_names: dict[str, tuple[str, ...]]
) -> None:
    """One image's prediction, as the task's metric takes it, into `folder`.

    Args:
        folder: of this client and task.
        task: decides the format.
        name: the image's id.
        value: [H, W] class numbers, probabilities or metres; normals [3, H, W].
        class_names: of the dataset, by task.
    """
    from PIL import Image

    file = folder / f"{name}.png"
    if task in class_names:
        picture = Image.fromarray(value.astype(np.uint8), mode="P")
        table = class_colours(len(class_names[task]), class_names[task])
        picture.putpalette(np.rint(255 * table[:-1]).astype(np.uint8).tobytes())
        picture.save(file)
    elif task == "normals":
        Image.fromarray(_bytes((np.moveaxis(value, 0, -1) + 1) * 127.5)).save(file)
    elif task == "depth":
        np.save(folder / f"{name}.npy", value.astype(np.float32))
        Image.fromarray(depth_picture(value, DEEPEST)).save(file)
    else:
        Image.fromarray(_bytes(value * 255)).save(file)


def _bytes(value: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(value), 0, 255).astype(np.uint8)


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that holds anything but predictions: it is not ours to replace."""
    if folder.is_dir():
        if any(folder.iterdir()) and not (folder / ABOUT).is_file():
            raise UsageError(f"{folder}: holds other files than predictions; choose an empty or a new folder")
    else:
        check_folder(folder)


@contextmanager
def replace_predictions(folder: Path) -> Iterator[Path]:
    """Give a folder to fill with predictions, which then takes the place of `folder` as a whole.

    Raises:
        UsageError: The folder holds anything but predictions.
        FmtlbenchError: The disk refused.
    """
    check_replaceable(folder)
    try:
        with replace_folder(folder) as temporary:
            yield temporary
    except OSError as error:
        raise FmtlbenchError(f"could not write predictions to {folder}: {error.strerror or error}") from None
