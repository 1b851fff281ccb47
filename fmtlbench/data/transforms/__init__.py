"""Transform real samples as the papers do: an image and all of its labels together, to one size.

Training: random turn, scale, crop, mirror image and photometric distortion (those that are asked for, in this order),
then padding. Evaluation: padding only. An image still larger than the size loses its border; the papers' code would
keep it, which neither a batch nor a fixed-size encoder can take (their own images always fit).

With resize="fixed", as in MaT-FL, the whole image is stretched to the size, in evaluation too. A random scale then
magnifies the image within its frame before it is stretched.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from ...base.errors import UsageError, unknown
from ...tasks import IGNORE, TASKS, semantic_task
from ..amounts import USUAL, Amounts
from ..tensors import MEAN
from .geometry import Turn, Window, centred, draw_crop, draw_scale, resized
from .photometric import photometric

AUGMENTATIONS = ("rotate", "scale", "crop", "flip", "photometric")
Sample = dict[str, np.ndarray]

# Images are padded with the mean colour, which normalisation turns into zero; labels are padded as unlabelled.
COLOUR = np.array([255 * m for m in MEAN], np.float32)


def train_transform(
    sample: Sample,
    size: tuple[int, int],
    augment: tuple[str, ...],
    rng: np.random.Generator,
    amounts: Amounts = USUAL,
    resize: str = "none",
) -> Sample:
    """Return one training sample, randomly transformed, at `size` (height, width); the given arrays are not changed.

    Args:
        sample: 'image' uint8 [H, W, 3] and labels [H, W] or [H, W, 3], all of one height and width.
        size: of the result.
        augment: names of AUGMENTATIONS; their order does not matter.
        rng: the source of all random choices.
        amounts: strengths of scale and rotate.
        resize: "none" or "fixed".

    Returns:
        the same keys at `size`; the image as float32 between 0 and 255.
    """
    for name in augment:
        if name not in AUGMENTATIONS:
            raise unknown("augmentation", name, AUGMENTATIONS, where="train.augment")
    scale = draw_scale(rng, amounts.scales) if "scale" in augment else 1.0
    fixed = resize == "fixed"
    window = resized(_check_shape(sample), size) if fixed else centred(_check_shape(sample), size, scale)
    degrees = float(rng.uniform(-amounts.degrees, amounts.degrees)) if "rotate" in augment and amounts.degrees else 0.0
    if fixed or degrees:
        window = replace(window, turn=Turn(degrees, scale if fixed else 1.0))
    if "crop" in augment:
        window = draw_crop(window, sample.get(semantic_task(sample)), rng)
    if "flip" in augment and rng.random() < 0.5:
        window = window.mirrored()
    distorted = "photometric" in augment
    image = window.image(sample["image"], np.uint8 if distorted else np.float32)
    if distorted:
        photometric(image, rng)
    return _finish(sample, image, window, scale)


def test_transform(sample: Sample, size: tuple[int, int], resize: str = "none") -> Sample:
    """Return one test sample, centred in `size` at its own resolution, or stretched to it (resize="fixed")."""
    window = (resized if resize == "fixed" else centred)(_check_shape(sample), size)
    return _finish(sample, window.image(sample["image"], np.float32), window, 1.0)


def stretch_labels(sample: Sample, shape: tuple[int, int]) -> Sample:
    """Return the labels of a sample without its image, stretched to height and width `shape` by the nearest pixel."""
    own = _check_shape(sample)
    labels = {key: value for key, value in sample.items() if key != "image"}
    if own == shape:
        return labels
    window = resized(own, shape)
    return {key: window.label(value, TASKS[key].kind.unlabelled) for key, value in labels.items()}


@cache
def prepare() -> None:
    """Load or compile the pixel loops now, so that worker processes forked later need not."""
    rng, sample = np.random.default_rng(0), {"image": np.zeros((4, 4, 3), np.uint8)}
    for writable in (True, False):  # new arrays are writable, those of a cache are not
        sample["image"].flags.writeable = writable
        for augment in (AUGMENTATIONS, ("scale",)):
            for degrees in (0.0, 20.0):
                train_transform(sample, (3, 3), augment, rng, Amounts(degrees=degrees))
        test_transform(sample, (3, 3), "fixed")


def _finish(sample: Sample, image: np.ndarray, window: Window, scale: float) -> Sample:
    """Pad the image, move the labels as the image was moved, and mark what must be ignored."""
    canvas = np.empty((window.rows.size, window.columns.size, 3), np.float32)
    if image.shape != canvas.shape:
        canvas[:] = np.tile(COLOUR, (window.columns.size, 1))  # row by row, which is fast
    canvas[window.inside] = image
    if not window.straight:
        canvas[window.inside][window.pixels < 0] = COLOUR
    result = {"image": canvas}
    for key, value in sample.items():
        if key == "image":
            continue
        task, kind = TASKS[key], TASKS[key].kind
        label = window.label(value, kind.unlabelled)
        kind.magnify(label, scale)
        if not window.straight:
            kind.turn(label, window.turn)
        if window.columns.mirrored:
            kind.mirror(label)
        if task.ignores(label):
            label[:] = IGNORE
        result[key] = label
    return result


def _check_shape(sample: Sample) -> tuple[int, int]:
    """Return height and width; raise UsageError if a label's differ from the image's."""
    shapes = {key: value.shape[:2] for key, value in sample.items()}
    for key, shape in shapes.items():
        if shape != shapes["image"]:
            theirs, ours = ("×".join(map(str, s)) for s in (shape, shapes["image"]))
            raise UsageError(f"{key} has {theirs} pixels, its image {ours}")
    return shapes["image"]
