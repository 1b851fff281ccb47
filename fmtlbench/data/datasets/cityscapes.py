"""Read Cityscapes: streets of 50 cities, with fine annotations, disparity and cameras.

Below --data-root: cityscapes/ with leftImg8bit/, gtFine/, disparity/ and (for depth) camera/, each with train/ and val/
and a folder per city, as the archives leftImg8bit_trainvaltest, gtFine_trainvaltest, disparity_trainvaltest and
camera_trainvaltest have them. The test split here is `val`, because the labels of `test` are not public.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from ...base.errors import FmtlbenchError, unknown
from ._dataset import Dataset, Sample
from ._files import DamagedFileError, fitting, image_shape, read_array, read_image
from ._info import OfficialList
from ._registry import DATASETS

# The 19 classes that are evaluated, by their number among the 34 of the annotations.
CLASSES = {
    7: "road",
    8: "sidewalk",
    11: "building",
    12: "wall",
    13: "fence",
    17: "pole",
    19: "traffic light",
    20: "traffic sign",
    21: "vegetation",
    22: "terrain",
    23: "sky",
    24: "person",
    25: "rider",
    26: "car",
    27: "truck",
    28: "bus",
    31: "train",
    32: "motorcycle",
    33: "bicycle",
}
ANNOTATED = 34
PLACES = {
    "image": ("leftImg8bit", "_leftImg8bit.png"),
    "semseg": ("gtFine", "_gtFine_labelIds.png"),
    "disparity": ("disparity", "_disparity.png"),
    "camera": ("camera", "_camera.json"),
}
BEHIND = {"depth": ("disparity", "camera")}  # the files a key is read from, if not one of its own name


@DATASETS.register("cityscapes")
class Cityscapes(Dataset):
    """2975 training and 500 validation images of 1024×2048 pixels."""

    title = "Cityscapes"
    description = "Cityscapes, 2975 train / 500 val images of streets (cityscapes/ below --data-root)"
    tasks = ("semseg", "disparity", "depth")
    class_names: ClassVar = {"semseg": tuple(CLASSES.values())}
    official: ClassVar = {"train": OfficialList(2975), "test": OfficialList(500)}
    archive = "cityscapes"
    marks = ("leftImg8bit/train", "gtFine/train")
    distributed = "the archives of www.cityscapes-dataset.com (free for research, after registration)"
    checks_itself = True
    splits: ClassVar = {"train": "train", "test": "val"}
    folder: Path

    def __init__(self, folder: Path, split: str, *arguments, **options) -> None:
        if split not in self.splits:
            raise unknown("split", split, self.splits, self.info.name)
        super().__init__(folder, split, *arguments, **options)

    def list_images(self) -> list[str]:
        place, suffix = PLACES["image" if self.with_images else BEHIND.get(self.tasks[0], self.tasks)[0]]
        found = sorted(path.name.removesuffix(suffix) for path in self._home(place).glob(f"*/*{suffix}"))
        if not found:
            raise FmtlbenchError(f"{self._home(place)}: no files <city>/*{suffix}, expected those of Cityscapes")
        return found

    def origin_of_list(self) -> str:
        return str(self._home(PLACES["image"][0]))

    def files_of(self, index: int, key: str) -> Sequence[Path]:
        image = self.ids[index]
        city = image.partition("_")[0]
        places = [PLACES[part] for part in BEHIND.get(key, (key,))]
        return [self._home(folder) / city / f"{image}{suffix}" for folder, suffix in places]

    def sample(self, index: int, keys: Iterable[str] | None = None) -> Sample:
        index, keys = self.check_index(index), self.check_keys(keys)
        shape = image_shape(self.files_of(index, "image")[0]) if self.with_images else None
        return {key: self._read(index, key, shape) for key in keys}

    def _read(self, index: int, key: str, shape: tuple[int, int] | None) -> np.ndarray:
        path, *others = self.files_of(index, key)
        if key == "image":
            return read_image(path)
        if key == "semseg":
            return fitting(path, read_classes(path), shape)
        disparity = fitting(path, read_disparity(path), shape)
        if key == "disparity":
            return disparity
        return np.divide(
            read_depth_factor(others[0]), disparity, out=np.zeros_like(disparity), where=disparity > 0
        ).astype(np.float32)

    def _home(self, folder: str) -> Path:
        return self.folder / folder / self.splits[self.split]


def read_classes(path: Path) -> np.ndarray:
    """Read class numbers: the 19 evaluated classes as 0 to 18, all others as 255."""
    numbers = read_array(path)
    if numbers.dtype != np.uint8 or numbers.ndim != 2 or numbers.max(initial=0) >= ANNOTATED:
        raise DamagedFileError(
            path, f"{numbers.dtype} up to {numbers.max(initial=0)}, expected labelIds from 0 to {ANNOTATED - 1}"
        )
    table = np.full(ANNOTATED, 255, np.uint8)
    table[list(CLASSES)] = np.arange(len(CLASSES))
    return table[numbers]


def read_disparity(path: Path) -> np.ndarray:
    """Read disparity in pixels, 0 where nothing was measured; the file stores 256 · disparity + 1, or 0."""
    codes = read_array(path)
    if codes.ndim != 2 or codes.dtype.kind not in "iu" or codes.dtype.itemsize < 2:
        raise DamagedFileError(path, f"{codes.dtype} {list(codes.shape)}, expected a grey picture of 16 bits")
    return np.where(codes > 0, (codes.astype(np.float32) - 1) / 256, 0).astype(np.float32)


def read_depth_factor(path: Path) -> np.float32:
    """Read the number that divided by disparity gives metres: the cameras' distance times the focal length."""
    try:
        camera = json.loads(path.read_text(encoding="utf-8"))
        factor = float(camera["extrinsic"]["baseline"]) * float(camera["intrinsic"]["fx"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(path, f"no baseline and focal length in it ({error!r})") from None
    if not 0 < factor < np.inf:
        raise DamagedFileError(path, f"baseline × focal length is {factor}, expected more than 0")
    return np.float32(factor)
