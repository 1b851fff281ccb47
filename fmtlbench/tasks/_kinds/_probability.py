"""Yes or no in every pixel; a prediction says how probable yes is."""

from __future__ import annotations

import numpy as np

from ...metrics import IGNORE
from ._base import LabelError, LabelKind, one_channel, say_range, to_bytes
from ._colours import blend


class ProbabilityMap(LabelKind):
    """[H, W] uint8 of 0 and 1, 255 where unlabelled. Predictions are probabilities from 0 to 1.

    Args:
        colours: of no and of yes.
        lines: Labels are lines one pixel thin: pictures in files hold 0 and 255 alone, and drawings make them thicker.
    """

    raw_meaning = "a logit of yes, or one each of no and yes"
    quantity = "class"
    relabelling = ("invert",)

    def __init__(self, colours: tuple[str, str], lines: bool = False) -> None:
        self.colours, self.lines = colours, lines

    def problem(self, label, shape, classes):
        problem = super().problem(label, shape, classes)
        wrong = (label > 1) & (label != IGNORE)
        if problem or not wrong.any():
            return problem
        return f"class {label[wrong][0]}, expected 0 to 1 or {IGNORE} (ignore)"

    def decode(self, raw):
        """Turn one logit, or the two of no and yes, into a probability."""
        return raw[:, 0].sigmoid() if raw.shape[1] == 1 else raw.softmax(1)[:, 1]

    def search_constant(self, meter, pixels):
        from ._constants import EdgeLogit, Everywhere

        if meter.name in ("maxf", "odsf"):
            return Everywhere(meter, pixels)
        return EdgeLogit(meter, pixels) if meter.name in ("edge_loss", "edge_loss_public") else None

    def write_prediction(self, folder, name, value, class_names):
        """Write probability · 255 as a grey PNG."""
        from PIL import Image

        Image.fromarray(to_bytes(value * 255)).save(folder / f"{name}.png")

    def read_prediction(self, array):
        array = one_channel(array)
        return array / np.float32(255) if array.dtype == np.uint8 else array.astype(np.float32)

    def read_label(self, array, classes=None, picture=False):
        """Take pictures of 0 and 255 (of areas also soft ones, split at a half) and arrays of 0, 1 and 255."""
        array = one_channel(array)
        values = np.unique(array)
        if picture and (np.isin(values, (0, 255)).all() or (not self.lines and values.max(initial=0) > 1)):
            return (array > 127).astype(np.uint8)
        if not picture and np.isin(values, (0, 1, IGNORE)).all():
            return array.astype(np.uint8)
        expected = "a picture of 0 and 255" if picture else "an array of 0, 1 and 255 (ignore)"
        raise LabelError(f"{say_range(array)}, expected {expected}")

    def draw(self, axis, value, colours):
        shown = np.ma.masked_equal(_thicken(value) if self.lines else value, IGNORE)
        return axis.imshow(shown, cmap=blend(self.colours), vmin=0, vmax=1, interpolation="nearest")


def _thicken(lines: np.ndarray) -> np.ndarray:
    """Return lines two pixels wide: thin ones of labels are lost where a figure shows fewer pixels than there are."""
    if lines.shape[1] <= 128 or lines.dtype.kind == "f":
        return lines
    shown = lines.copy()
    shown[:, 1:] |= lines[:, :-1]
    shown[1:] |= shown[:-1]
    return shown
