"""A direction in every pixel, such as the normal of a surface: x right, y up, z towards the viewer."""

from __future__ import annotations

import numpy as np

from ...metrics import IGNORE
from ._base import LabelError, LabelKind, to_bytes
from ._doubts import VectorDoubts

FAINT = 0.1  # 8-bit pictures cannot say 0; a decoded length below this means "unknown"


class UnitVectors(LabelKind):
    """[H, W, 3] float32 of length 1, zero where unknown. Predictions are [3, H, W]."""

    raw_meaning = "a vector, to be divided by its length"
    dtype = np.dtype(np.float32)
    channels = (3,)
    outputs = 3
    unlabelled = 0.0
    unit_length = True
    quantity = "length"
    relabelling = ("negate",)

    def mirror(self, label):
        """Let mirrored vectors point the other way along x."""
        np.negative(label[..., 0], out=label[..., 0])

    def turn(self, label, turn):
        turn.vectors(label)

    def mark_unlabelled(self, rows):
        missing = (rows[:, 0] == 0) & (rows[:, 1] == 0) & (rows[:, 2] == 0)
        np.copyto(rows, IGNORE, where=missing[:, None])

    def problem(self, label, shape, classes):
        return super().problem(label, shape, classes) or (None if np.isfinite(label).all() else "NaN or infinity")

    def labelled(self, label):
        lengths = np.linalg.norm(label, axis=-1)
        return lengths[lengths > 0]

    def decode(self, raw):
        return raw / raw.norm(dim=1, keepdim=True).clamp(min=1e-12)

    def search_constant(self, meter, pixels):
        from ._constants import Direction

        return Direction(meter, pixels) if meter.name == "merr" else None

    def write_prediction(self, folder, name, value, class_names):
        """Write 8-bit (n + 1) · 127.5 as a colour PNG."""
        from PIL import Image

        Image.fromarray(to_bytes((np.moveaxis(value, 0, -1) + 1) * 127.5)).save(folder / f"{name}.png")

    def read_prediction(self, array):
        """Take 8-bit (n + 1) · 127.5 or floating vectors, channels first or last."""
        if array.ndim != 3 or 3 not in (array.shape[0], array.shape[-1]):
            raise LabelError(f"shape {list(array.shape)}, expected normals [H, W, 3]")
        if array.dtype.kind != "f" and array.dtype != np.uint8:
            raise LabelError(f"{array.dtype} values, expected floating-point vectors or uint8 of (n + 1) · 127.5")
        array = np.moveaxis(array, -1, 0) if array.shape[-1] == 3 else array
        return array / 127.5 - 1 if array.dtype == np.uint8 else array.astype(np.float64)

    def doubts(self):
        return VectorDoubts()

    def read_label(self, array, classes=None, picture=False):
        """Take the same files as predictions; what is hardly longer than nothing is unknown."""
        vectors = np.moveaxis(self.read_prediction(array), 0, -1)
        if not np.isfinite(vectors).all():
            raise LabelError("NaN or infinity, expected unit vectors")
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.where(lengths < FAINT, 0.0, vectors / np.maximum(lengths, FAINT)).astype(np.float32)

    def draw(self, axis, value, colours):
        return axis.imshow(np.clip((value + 1) / 2, 0, 1), interpolation="nearest")

    def draw_key(self, figure, drawn, box, colours, names):
        left, bottom, _ = box
        at = bottom - 0.08 / figure.get_figheight()
        figure.text(left, at, "red right, green up, blue to viewer", fontsize=6.5, va="top")

    def key_lines(self, colours):
        return 3
