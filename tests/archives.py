"""Miniature archives in the real ones' on-disk formats, with labels that are known pixel by pixel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from fmtlbench.data.datasets import dataset_for, open_split

NYUD_IDS = {"train": ("0003", "0004", "0009"), "test": ("0001", "0002")}
PASCAL_IDS = {"train": ("2008_000008", "2008_000015", "2008_000019"), "test": ("2008_000002", "2008_000003")}
SIZES = ((30, 40), (24, 32), (40, 30))

NYU_CLASSES = {"wall": 21, "chair": 5, "unknown": 894, "television": 172}
CONTEXT_CLASSES = {"chair": 72, "grass": 187, "person": 284, "tvmonitor": 427, "unknown": 431, "wall": 440}


def size_of(split: str, index: int) -> tuple[int, int]:
    return SIZES[(index + (split == "test")) % len(SIZES)]


def photo(shape: tuple[int, int]) -> np.ndarray:
    """Smooth, so that JPEG changes it little."""
    rows, columns = np.indices(shape)
    return np.stack([rows * 4, columns * 4, (rows + columns) * 2], -1).astype(np.uint8)


def unit_normals(shape: tuple[int, int]) -> np.ndarray:
    """Directions that turn with the column."""
    angle = np.indices(shape)[1] / shape[1] * 3
    return np.stack([np.sin(angle), np.zeros(shape), np.cos(angle)], -1).astype(np.float32)


def nyud_labels(split: str, index: int) -> dict[str, np.ndarray]:
    """What the reader should give, but for rounding of normals."""
    shape = size_of(split, index)
    semseg = np.full(shape, index, np.uint8)
    semseg[5:9, 4:12], semseg[:3] = 39, 255
    edge = np.zeros(shape, np.uint8)
    edge[10], edge[:, 7] = 1, 1
    depth = np.full(shape, 2.5 + index, np.float32)
    depth[-4:] = 0
    normals = unit_normals(shape)
    normals[:2, :5] = 0
    return {"image": photo(shape), "semseg": semseg, "depth": depth, "normals": normals, "edge": edge}


def write_nyudv2(root: Path, name: str = "NYUDv2") -> Path:
    folder = root / name
    for split, ids in NYUD_IDS.items():
        for index, image in enumerate(ids):
            labels = nyud_labels(split, index)
            _save(folder / "images" / f"{image}.png", labels["image"])
            _save(folder / "segmentation" / f"{image}.png", nyud_numbers(labels["semseg"]))
            _save(folder / "edge" / f"{image}.png", labels["edge"] * 255)
            _save(folder / "normals" / f"{image}.png", normal_pixels(labels["normals"]))
            _npy(folder / "depth" / f"{image}.npy", labels["depth"])
    return _lists(folder, "gt_sets/{}.txt", NYUD_IDS)


def write_nyud_mt(root: Path) -> Path:
    folder = root / "NYUD_MT"
    for split, ids in NYUD_IDS.items():
        for index, image in enumerate(ids):
            labels = nyud_labels(split, index)
            _save(folder / "images" / f"{image}.jpg", labels["image"])
            _save(folder / "segmentation" / f"{image}.png", nyud_numbers(labels["semseg"]))
            _npy(folder / "edge" / f"{image}.npy", labels["edge"])
            _npy(folder / "normals" / f"{image}.npy", labels["normals"].astype(np.float16))
            _npy(folder / "depth" / f"{image}.npy", labels["depth"])
    return _lists(folder, "gt_sets/{}.txt", NYUD_IDS)


def nyud_numbers(semseg: np.ndarray) -> np.ndarray:
    """The archive counts from 1; 0 is unlabelled."""
    return (semseg + np.uint8(1)).astype(np.uint8)  # 255 wraps to 0


def normal_pixels(normals: np.ndarray) -> np.ndarray:
    return np.rint((normals + 1) * 127.5).astype(np.uint8)


# -- PASCAL-Context --------------------------------------------------------------------------------------------------


def label_map(shape: tuple[int, int], index: int) -> np.ndarray:
    """A wall, a person, a screen, on something unknown."""
    segments = np.full(shape, CONTEXT_CLASSES["unknown"], np.uint16)
    segments[4:12, 3:20] = CONTEXT_CLASSES["wall"]
    segments[10:20, 10 + index : 18] = CONTEXT_CLASSES["person"]
    segments[2:6, -8:-3] = CONTEXT_CLASSES["tvmonitor"]
    return segments


def box(shape: tuple[int, int], rows: slice, columns: slice) -> np.ndarray:
    mask = np.zeros(shape, np.uint8)
    mask[rows, columns] = 1
    return mask


def objects_of(split: str, index: int) -> list[dict]:
    """Annotated things, as Pascal-Part has them: (train) two people over each other, a dog, a person without parts;
    (test) a person of no pixels beside a dog, a person with one hand.
    """
    shape = size_of(split, index)
    body = box(shape, slice(5, 20), slice(8, 18))
    dog = {"class_ind": 12, "mask": body, "parts": {"head": box(shape, slice(5, 8), slice(8, 10))}}
    if split == "train":
        first = {
            "hair": box(shape, slice(5, 7), slice(10, 14)),
            "neck": box(shape, slice(7, 8), slice(10, 14)),
            "torso": box(shape, slice(8, 12), slice(8, 18)),
            "luarm": box(shape, slice(8, 10), slice(8, 10)),
            "rhand": box(shape, slice(10, 12), slice(16, 18)),
            "ruleg": box(shape, slice(12, 16), slice(10, 13)),
            "lfoot": box(shape, slice(18, 20), slice(10, 12)),
        }
        second = {"head": box(shape, slice(9, 11), slice(12, 15))}  # in front of the first one's torso
        people = [{"class_ind": 15, "mask": body, "parts": parts} for parts in (first, second)]
        return [people, [dog], [{"class_ind": 15, "mask": body, "parts": {}}]][index]
    hand = {"class_ind": 15, "mask": body, "parts": {"lhand": box(shape, slice(9, 10), slice(9, 12))}}
    return [[{"class_ind": 15, "mask": np.zeros(shape, np.uint8), "parts": {}}, dog], [hand]][index]


def part_labels(split: str, index: int) -> np.ndarray:
    label = np.zeros(size_of(split, index), np.uint8)
    if (split, index) == ("train", 0):
        label[5:7, 10:14], label[7, 10:14] = 1, 2
        label[8:12, 8:18], label[8:10, 8:10], label[10:12, 16:18] = 2, 3, 4
        label[12:16, 10:13], label[18:20, 10:12] = 5, 6
        label[9:11, 12:15] = 1
    if (split, index) == ("test", 1):
        label[9, 9:12] = 4
    return label


def write_pascal(root: Path) -> Path:
    folder = root / "PASCALContext"
    for split, ids in PASCAL_IDS.items():
        for index, image in enumerate(ids):
            shape = size_of(split, index)
            segments = label_map(shape, index)
            _save(folder / "JPEGImages" / f"{image}.jpg", photo(shape))
            which = "VOC12" if index == 0 else "pascal-context"
            _save(folder / "semseg" / which / f"{image}.png", voc_labels(shape), palette=True)
            if index == 0:  # both have it: VOC's own counts
                _save(folder / "semseg" / "pascal-context" / f"{image}.png", np.zeros(shape, np.uint8), palette=True)
            _save(folder / "sal_distill" / f"{image}.png", soft_saliency(shape))
            _save(folder / "normals_distill" / f"{image}.png", normal_pixels(unit_normals(shape)))
            _mat(folder / "pascal-context" / "trainval" / f"{image}.mat", {"LabelMap": segments})
            _mat(folder / "human_parts" / f"{image}.mat", {"anno": annotation(image, objects_of(split, index))})
    for name, content in (("nyu_classes", NYU_CLASSES), ("context_classes", CONTEXT_CLASSES)):
        path = folder / "json" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return _lists(folder, "ImageSets/Context/{}.txt", PASCAL_IDS)


def voc_labels(shape: tuple[int, int]) -> np.ndarray:
    labels = np.zeros(shape, np.uint8)
    labels[5:15, 5:15], labels[4, 5:15], labels[16:18] = 15, 255, 20
    return labels


def soft_saliency(shape: tuple[int, int]) -> np.ndarray:
    soft = np.zeros(shape, np.uint8)
    soft[3:10], soft[10], soft[11] = 255, 128, 127
    return soft


def annotation(image: str, things: list[dict]) -> dict:
    """Nested so that loadmat gives anno[0][0][1][0][j] = (class, class_ind, mask, parts)."""
    rows = []
    for thing in things:
        parts = [(name, mask) for name, mask in thing["parts"].items()]
        rows.append(("thing", thing["class_ind"], thing["mask"], _structs(("part_name", "mask"), parts)))
    return {"imname": image, "objects": _structs(("class", "class_ind", "mask", "parts"), rows)}


def _structs(fields: tuple[str, ...], rows: list[tuple]) -> np.ndarray:
    if not rows:
        return np.zeros((0, 0))
    array = np.zeros((1, len(rows)), dtype=[(field, object) for field in fields])
    for place, row in enumerate(rows):
        array[0, place] = row
    return array


def multiply(folder: Path, pattern: str, times: int) -> None:
    """Every listed image `times` times, under ids of their own."""
    for name in ("train", "val"):
        listing = folder / pattern.format(name)
        ids = listing.read_text().split()
        for image in ids:
            for path in [path for path in folder.rglob(f"{image}.*") if path.is_file()]:
                for copy in range(1, times):
                    shutil.copyfile(path, path.with_name(f"{image}_{copy}{path.suffix}"))
        listing.write_text("".join(f"{image}{f'_{copy}' * bool(copy)}\n" for image in ids for copy in range(times)))


# -- files -----------------------------------------------------------------------------------------------------------


def _save(path: Path, pixels: np.ndarray, palette: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(pixels)
    if palette:
        picture.putpalette(list(range(256)) * 3)
        assert picture.mode == "P"
    picture.save(path, **({"quality": 100, "subsampling": 0} if path.suffix == ".jpg" else {}))


def _npy(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def _mat(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, content, do_compression=True)


def _lists(folder: Path, pattern: str, ids: dict[str, tuple[str, ...]]) -> Path:
    for split, name in (("train", "train"), ("test", "val")):
        path = folder / pattern.format(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{image}\n" for image in ids[split]))
    return folder


def open_real(domain, split, root, size=None, tasks=None, **options):
    """Open a split of the dataset with files that stands for a domain."""
    return open_split(dataset_for(domain, "real"), split, root, size=size, tasks=tasks, **options)
