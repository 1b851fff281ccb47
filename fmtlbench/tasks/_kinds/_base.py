"""What differs between labels, in one class: everything else in the project treats all labels alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...base.errors import FmtlbenchError
from ...metrics import IGNORE
from ._doubts import Doubts

if TYPE_CHECKING:
    from torch import Tensor

    from ...metrics import Metric
    from ._constants import ConstantSearch


class LabelError(FmtlbenchError, ValueError):
    """An array that cannot be a label or a prediction of its kind; the caller names the file."""


class LabelKind:
    """One kind of label.

    In a dataset a label is an array [H, W, *channels] of `dtype` with `unlabelled` where nothing is known. As a tensor
    it is [B, *channels, H, W] and says 255 there. A prediction, as metrics take it, has the tensor's axes.
    """

    dtype: ClassVar[np.dtype] = np.dtype(np.uint8)
    channels: ClassVar[tuple[int, ...]] = ()  # further axes of an array: () or (3,)
    outputs: ClassVar[int | None] = 1  # channels of a network's output; None: one per class of the dataset
    raw_meaning: ClassVar[str] = "raw"  # what a network's output is before `decode`, in words
    unlabelled: ClassVar[float] = IGNORE  # in arrays; in tensors it is always 255
    unit_length: ClassVar[bool] = False  # whether outputs of a network are directions
    suffixes: ClassVar[tuple[str, ...]] = (".png", ".npy")  # of files with labels or predictions
    quantity: str = "value"  # what the lowest and highest value of `data check` are
    relabelling: ClassVar[tuple[str, ...]] = ()  # the rules of data/relabel.py that fit

    def mirror(self, label: np.ndarray) -> None:
        """Finish labels [..., W, *channels] whose columns were reversed, in place."""

    def turn(self, label: np.ndarray, turn: Any) -> None:
        """Finish a label [H, W, *channels] whose pixels were turned (transforms.geometry.Turn), in place."""

    def magnify(self, label: np.ndarray, factor: float) -> None:
        """Finish a label whose image shows everything `factor` times as large, in place."""

    def mark_unlabelled(self, rows: np.ndarray) -> None:
        """Write 255 where nothing is known into [B, *channels, H, W], in place; where it is not 255 already."""

    def problem(self, label: np.ndarray, shape: tuple[int, int] | None, classes: int | None) -> str | None:
        """Return what is wrong with a dataset's label, or None.

        Args:
            label: as the dataset gives it.
            shape: height and width of its image, where they are known.
            classes: how many the dataset has for this task, if any.
        """
        if problem := self.wrong_form(label):
            return problem
        if shape and label.shape[:2] != shape:
            return f"{label.dtype} {list(label.shape)}, expected {self.dtype} at the image's size"
        return None

    def wrong_form(self, label: np.ndarray) -> str | None:
        """Return what is wrong with the type or the axes of a dataset's label, or None."""
        if label.dtype == self.dtype and label.ndim == 2 + len(self.channels) and label.shape[2:] == self.channels:
            return None
        axes = "".join(f", {n}" for n in self.channels)
        return f"{label.dtype} {list(label.shape)}, expected {self.dtype} [H, W{axes}]"

    def labelled(self, label: np.ndarray) -> np.ndarray:
        """Return the values of the labelled pixels, one each, [n]."""
        return label[label != IGNORE]

    def decode(self, raw: Tensor) -> Tensor:
        """Turn a network's raw outputs [B, outputs, H, W] into a prediction as metrics take it."""
        raise self._not_written("decode")

    def search_constant(self, meter: Metric, pixels: int) -> ConstantSearch | None:
        """Return how to find the constant prediction that is best under a metric; None: not known for this metric."""
        return None

    def write_prediction(self, folder: Path, name: str, value: np.ndarray, class_names: Sequence[str] | None) -> None:
        """Write a prediction as the file `name` in `folder`, in the form that `read_prediction` takes."""
        raise self._not_written("write_prediction")

    def write_array(self, folder: Path, name: str, value: np.ndarray) -> None:
        """Write a prediction as the file `name`.npy in `folder`, which `read_prediction` takes without any loss."""
        np.save(folder / f"{name}.npy", value)

    def read_prediction(self, array: np.ndarray) -> np.ndarray:
        """Return a file's array as a prediction without batch axis, [*channels, H, W]; LabelError tells why not."""
        raise self._not_written("read_prediction")

    def doubts(self) -> Doubts:
        """Return what looks at predictions beside their labels and says what cannot be right."""
        return Doubts()

    def read_label(self, array: np.ndarray, classes: int | None = None, picture: bool = False) -> np.ndarray:
        """Return a file's array as a label of a dataset, [H, W, *channels]; LabelError tells why not.

        Args:
            array: what the file holds.
            classes: how many the dataset has for this task, if any.
            picture: The file is a PNG, not a .npy array.
        """
        raise self._not_written("read_label")

    def _not_written(self, method: str) -> FmtlbenchError:
        return FmtlbenchError(f"the label kind {type(self).__name__} has no {method}; add the method to the class")

    def as_target(self, label: np.ndarray) -> np.ndarray:
        """Return a dataset's label as metrics take it, without batch axis."""
        rows = np.moveaxis(label, -1, 0) if self.channels else label
        rows = rows[None].copy()
        self.mark_unlabelled(rows)
        return rows[0]

    def as_label(self, prediction: np.ndarray) -> np.ndarray:
        """Return a prediction [*channels, H, W] with the axes of a label, to be drawn beside it."""
        return np.moveaxis(prediction, 0, -1) if self.channels else prediction

    def choose_colours(self, labels: Iterable[np.ndarray], classes: int | None, names: Sequence[str] | None) -> Any:
        """Return what `draw` needs to show several labels alike: a table, a range, or nothing."""
        return None

    def draw(self, axis: Any, value: np.ndarray, colours: Any) -> Any:
        """Draw a label, or a prediction as `as_label` gives it, on matplotlib axes; return the drawn image."""
        raise self._not_written("draw")

    def draw_outlines(self, axis: Any, label: np.ndarray) -> None:
        """Draw the borders of the label's regions over a picture of the same size; nothing where it has no regions."""

    def draw_key(self, figure: Any, drawn: Any, box: Any, colours: Any, names: Sequence[str] | None) -> None:
        """Draw what the colours mean below the `box` (left, bottom, width in parts of the figure) of a column."""

    def key_lines(self, colours: Any) -> int:
        """Return how many lines of text `draw_key` needs."""
        return 0


MOST_SHOWN = 512  # pixels along a side: more than a picture in a figure shows


def draw_image(axis: Any, image: np.ndarray) -> Any:
    """Draw an image on matplotlib axes; a large one is made smaller first, so that no lines are lost or jagged."""
    longest = max(image.shape[:2])
    if longest > MOST_SHOWN:
        from skimage.transform import resize

        shape = [max(1, round(side * MOST_SHOWN / longest)) for side in image.shape[:2]]
        image = resize(image, shape, anti_aliasing=True)
    return axis.imshow(image, interpolation="nearest")


def one_channel(array: np.ndarray) -> np.ndarray:
    """Return [H, W], without a channel axis of length one before or behind."""
    array = array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array
    array = array[0] if array.ndim == 3 and array.shape[0] == 1 else array
    if array.ndim != 2:
        raise LabelError(f"shape {list(array.shape)}, expected [H, W] of one channel")
    return array


def say_range(array: np.ndarray) -> str:
    """Return the type and the lowest and highest value of an array for a message."""
    return f"{array.dtype} from {array.min()} to {array.max()}" if array.size else f"an empty array of {array.dtype}"


def to_bytes(value: np.ndarray) -> np.ndarray:
    """Round to whole numbers from 0 to 255, as 8-bit pictures hold them."""
    return np.clip(np.rint(value), 0, 255).astype(np.uint8)
