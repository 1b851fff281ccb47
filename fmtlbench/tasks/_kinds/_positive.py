"""A positive quantity in every pixel, such as depth in metres."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from ...metrics import IGNORE
from ._base import LabelError, LabelKind, one_channel, say_range
from ._colours import DEPTH_COLOURS, blend_depth
from ._doubts import UnitDoubts

LEAST = 1e-9  # a prediction is more than nothing


class Positive(LabelKind):
    """[H, W] float32, above zero, zero where unknown. Predictions are above zero.

    Args:
        quantity: What the numbers are.
        highest: Where the colours of a prediction's picture end; the picture is only to look at.
        nearer: What becomes of the quantity where everything comes nearer: it "shrinks" (depth) or "grows" (disparity).
    """

    raw_meaning = "the value itself"
    dtype = np.dtype(np.float32)
    unlabelled = 0.0
    suffixes = (".npy",)  # coloured pictures lie beside them
    units: ClassVar[dict[float, str]] = {}  # others that people use, by how many of them make one of ours

    def __init__(self, quantity: str, highest: float, nearer: Literal["shrinks", "grows"]) -> None:
        self.quantity, self.highest, self.nearer = quantity, highest, nearer

    def magnify(self, label, factor):
        """Take what is twice as large for half as far away."""
        if factor != 1.0 and self.nearer == "shrinks":
            label /= np.float32(factor)
        elif factor != 1.0:
            label *= np.float32(factor)

    def mark_unlabelled(self, rows):
        np.copyto(rows, IGNORE, where=~(rows > 0))

    def problem(self, label, shape, classes):
        return super().problem(label, shape, classes) or (None if np.isfinite(label).all() else "NaN or infinity")

    def labelled(self, label):
        return label[label > 0]

    def decode(self, raw):
        return raw[:, 0].clamp(min=LEAST)

    def search_constant(self, meter, pixels):
        from ._constants import Mean

        return Mean(meter, pixels) if meter.name == "rmse" else None

    def write_prediction(self, folder, name, value, class_names):
        """Write float32 as .npy, and beside it a coloured PNG that is only to look at."""
        from PIL import Image

        np.save(folder / f"{name}.npy", value.astype(np.float32))
        Image.fromarray(blend_depth(value, self.highest)).save(folder / f"{name}.png")

    def read_prediction(self, array):
        return one_channel(array).astype(np.float64)

    def doubts(self):
        return UnitDoubts(self.quantity, self.units)

    def read_label(self, array, classes=None, picture=False):
        label = one_channel(array)
        if label.dtype.kind not in "f" or not np.isfinite(label).all() or label.min(initial=0) < 0:
            raise LabelError(f"{say_range(label)}, expected floating-point numbers of at least 0")
        return label.astype(np.float32)

    def choose_colours(self, labels, classes, names):
        """Return the largest value: the far end of the colours."""
        return max((float(label.max()) for label in labels), default=1.0)

    def draw(self, axis, value, colours):
        shown = np.ma.masked_equal(value, 0.0)
        return axis.imshow(shown, cmap=DEPTH_COLOURS, vmin=0.0, vmax=colours, interpolation="nearest")

    def draw_key(self, figure, drawn, box, colours, names):
        left, bottom, width = box
        high = figure.get_figheight()
        scale = figure.add_axes((left, bottom - 0.16 / high, width, 0.09 / high))
        figure.colorbar(drawn, cax=scale, orientation="horizontal").ax.tick_params(labelsize=6.5)

    def key_lines(self, colours):
        return 3


class Metres(Positive):
    """Distances: what comes nearer has less of them."""

    units: ClassVar = {1000.0: "millimetres", 100.0: "centimetres"}

    def __init__(self, highest: float = 10.0) -> None:
        super().__init__("metres", highest, "shrinks")
