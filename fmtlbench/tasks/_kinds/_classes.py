"""Class numbers: one of the dataset's classes in every pixel, 255 where nobody labelled."""

from __future__ import annotations

import numpy as np

from ...metrics import IGNORE
from ._base import LabelError, LabelKind, one_channel, say_range
from ._colours import class_colours


class Classes(LabelKind):
    """[H, W] uint8, 0 to classes − 1, 255 where unlabelled. Predictions are class numbers too."""

    raw_meaning = "a logit per class"
    outputs = None
    quantity = "class"
    relabelling = ("rotate",)

    def problem(self, label, shape, classes):
        return super().problem(label, shape, classes) or _unknown_class(label, classes)

    def decode(self, raw):
        """Name the likeliest class of each pixel, the first of equally likely ones."""
        from ...metrics import compiled

        found = compiled("largest", (raw,))
        return found[0].view(len(raw), *raw.shape[2:]) if found else raw.argmax(1)

    def search_constant(self, meter, pixels):
        from ._constants import Majority

        return Majority(meter, pixels) if meter.name == "miou" else None

    def write_prediction(self, folder, name, value, class_names):
        """Write a PNG with a palette: viewers show colours, readers get numbers."""
        from PIL import Image

        picture = Image.fromarray(value.astype(np.uint8), mode="P")
        table = class_colours(len(class_names), class_names)
        picture.putpalette(np.rint(255 * table[:-1]).astype(np.uint8).tobytes())
        picture.save(folder / f"{name}.png")

    def read_prediction(self, array):
        array = one_channel(array)
        if array.dtype.kind not in "iu":
            raise LabelError(f"{array.dtype} values, expected class numbers")
        return array.astype(np.int64)

    def read_label(self, array, classes=None, picture=False):
        array = one_channel(array)
        if array.dtype.kind not in "iu" or array.min(initial=0) < 0 or array.max(initial=0) > IGNORE:
            raise LabelError(f"{say_range(array)}, expected class numbers")
        label = array.astype(np.uint8)
        if problem := _unknown_class(label, classes):
            raise LabelError(problem)
        return label

    def choose_colours(self, labels, classes, names):
        return class_colours(classes, names)

    def draw(self, axis, value, colours):
        return axis.imshow(colours[np.minimum(value, len(colours) - 1)], interpolation="nearest")

    def draw_outlines(self, axis, label):
        from skimage.measure import find_contours

        high, wide = label.shape
        for number in np.unique(label[label != IGNORE]):
            for border in find_contours((label == number).astype(np.float32), 0.5):  # rows of (y, x), between pixels
                axis.plot(border[:, 1], border[:, 0], color="black", linewidth=0.5)
        axis.set(xlim=(-0.5, wide - 0.5), ylim=(high - 0.5, -0.5))

    def draw_key(self, figure, drawn, box, colours, names):
        from matplotlib.patches import Patch

        entries = [Patch(color=c, label=names[k] if names else str(k)) for k, c in enumerate(colours[:-1])]
        entries.append(Patch(color=colours[-1], label="ignored"))
        left, bottom, _ = box
        figure.legend(
            handles=entries,
            loc="upper left",
            bbox_to_anchor=(left, bottom - 0.02 / figure.get_figheight()),
            ncol=2,
            fontsize=6.5,
            frameon=False,
            handlelength=1.0,
            columnspacing=0.8,
            borderpad=0.1,
            labelspacing=0.25,
        )

    def key_lines(self, colours):
        return (len(colours) + 1) // 2  # two entries in a line


def _unknown_class(label: np.ndarray, classes: int | None) -> str | None:
    if classes is None:
        return None
    wrong = (label > classes - 1) & (label != IGNORE)
    return f"class {label[wrong][0]}, expected 0 to {classes - 1} or {IGNORE} (ignore)" if wrong.any() else None
