"""Folders of predictions and labels: which files belong together, and what their pixels mean."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from fmtlbench.errors import FmtlbenchError, UsageError, unknown

from ._base import IGNORE
from ._pascal import trusted_classes
from .odsf import MAX_DIST

TASKS = ("edge", "semseg", "human_parts", "sal", "normals", "depth")
FAINT = 0.1  # 8-bit normals cannot say 0; a decoded length below this means "no normal"


class FileError(FmtlbenchError, ValueError):
    """A file that cannot be scored; the message says what is wrong, the caller names the file."""


@dataclass(frozen=True)
class Layout:
    """Where a dataset's public archive keeps its labels."""

    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    split: str = ""  # the id list of a split, with {} for its name
    classes: dict[str, int] = field(default_factory=dict)
    max_dist: float = MAX_DIST["nyud"]


LAYOUTS = {
    "nyud": Layout(
        {"edge": ("edge",), "semseg": ("segmentation",), "normals": ("normals",), "depth": ("depth",)},
        "gt_sets/{}.txt",
        {"semseg": 40},
    ),
    "pascal": Layout(
        {
            "edge": ("pascal-context/trainval",),
            "semseg": ("semseg/VOC12", "semseg/pascal-context"),
            "human_parts": ("human_parts",),
            "sal": ("sal_distill",),
            "normals": ("normals_distill",),
        },
        "ImageSets/Context/{}.txt",
        {"semseg": 21, "human_parts": 7},
        MAX_DIST["pascal"],
    ),
    "plain": Layout(),
}


def layout(dataset: str) -> Layout:
    if dataset not in LAYOUTS:
        raise unknown("dataset layout", dataset, LAYOUTS, "--dataset")
    return LAYOUTS[dataset]


def find(folders: list[Path], task: str) -> dict[str, Path]:
    """Image id → file; of several folders the first that has the image counts.

    Depth comes as .npy only, since colour pictures lie beside it.
    """
    kinds = (".npy",) if task == "depth" else (".png", ".npy", ".mat")
    found: dict[str, Path] = {}
    for folder in folders:
        here: dict[str, Path] = {}
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() not in kinds or path.name.startswith("."):
                continue
            if path.stem in here:
                raise UsageError(f"two files for image {path.stem}: {here[path.stem]} and {path}")
            here[path.stem] = path
        found = here | found
    return found


@dataclass(frozen=True)
class Files:
    """Predictions, labels, and the ids that are to be scored."""

    predictions: dict[str, Path]
    labels: dict[str, Path]
    ids: list[str]
    root: Path | None  # of the archive, where the labels lie in one

    def problems(self) -> list[str]:
        """Every file that is missing or too much, one line each."""
        lines = [f"missing label: {i}" for i in self.ids if i not in self.labels]
        lines += [f"missing prediction: {i}" for i in self.ids if i not in self.predictions]
        wanted = set(self.ids)
        return lines + [f"extra prediction: {path}" for i, path in self.predictions.items() if i not in wanted]


def collect(pred: Path, gt: Path, dataset: str, task: str, split: str = "val", ids: Path | None = None) -> Files:
    """Pair files by name.

    Args:
        pred: Folder of predictions, or a folder with one such folder per task.
        gt: The archive's root, or a folder of labels.
        dataset: A name in LAYOUTS.
        task: A name in TASKS.
        split: Whose id list to take from an archive.
        ids: File with one id per line instead. Without any list, every label is to be scored.
    """
    known = layout(dataset)
    for flag, folder in (("--pred", pred), ("--gt", gt)):
        if not folder.is_dir():
            raise UsageError(f"{flag}: no such folder: {folder}")
    if known.folders and task not in known.folders:
        raise UsageError(f"--task: {dataset} has no {task}; it has {', '.join(sorted(known.folders))}")
    inside = [gt / name for name in known.folders.get(task, ()) if (gt / name).is_dir()]
    root = gt if inside else None
    labels = find(inside or [gt], task)
    listing = ids or (gt / known.split.format(split) if root else None)
    if listing is None:
        wanted = sorted(labels)
    elif not listing.is_file():
        raise UsageError(f"no list of image ids: {listing} (choose one with --split or --ids)")
    else:
        wanted = listing.read_text(encoding="utf-8").split()
        twice = sorted({i for i in wanted if wanted.count(i) > 1}) if len(set(wanted)) < len(wanted) else []
        if twice:
            raise UsageError(f"{listing}: listed twice: {', '.join(twice)}")
    if not wanted:
        raise UsageError(f"no labels to score in {listing or gt}")
    return Files(find([pred / task if (pred / task).is_dir() else pred], task), labels, wanted, root)


def load(path: Path) -> np.ndarray:
    """The array in a .png, .npy or LabelMap .mat file."""
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        if path.suffix.lower() == ".mat":
            from scipy.io import loadmat

            return np.asarray(loadmat(path)["LabelMap"])
        from PIL import Image

        with Image.open(path) as picture:
            return np.array(picture)
    except KeyError:
        raise FileError("no LabelMap in it") from None
    except Exception as error:  # decoders raise all sorts of things for damaged files
        raise FileError(f"cannot be read: {error}") from None


def _flat(array: np.ndarray) -> np.ndarray:
    array = array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array
    array = array[0] if array.ndim == 3 and array.shape[0] == 1 else array
    if array.ndim != 2:
        raise FileError(f"shape {list(array.shape)}, expected [H, W] of one channel")
    return array


def _vectors(array: np.ndarray) -> np.ndarray:
    """[3, H, W] float64 from 8-bit (n+1)·127.5 or floating normals, channels first or last."""
    if array.ndim != 3 or 3 not in (array.shape[0], array.shape[-1]):
        raise FileError(f"shape {list(array.shape)}, expected normals [H, W, 3]")
    array = np.moveaxis(array, -1, 0) if array.shape[-1] == 3 else array
    return array / 127.5 - 1 if array.dtype == np.uint8 else array.astype(np.float64)


def read_prediction(path: Path, task: str) -> np.ndarray:
    """As the task's metric takes it, without the batch axis."""
    array = load(path)
    if task == "normals":
        return _vectors(array)
    array = _flat(array)
    if task in ("semseg", "human_parts"):
        return array.astype(np.int64) if array.dtype.kind == "u" else array
    if task == "depth":
        return array.astype(np.float64)
    return array / np.float32(255) if array.dtype == np.uint8 else array.astype(np.float32)


def read_label(path: Path, task: str, dataset: str, root: Path | None) -> np.ndarray:
    """As the task's metric takes it, without the batch axis. A LabelMap .mat for edge gives its segments."""
    array = load(path)
    if task == "normals":
        return _normals(array, path, dataset, root)
    array = _flat(array)
    if task in ("semseg", "human_parts"):
        array = array.astype(np.int64)
        return np.where(array == 0, IGNORE, array - 1) if dataset == "nyud" else array
    if task == "depth":
        return array.astype(np.float64)
    if path.suffix.lower() == ".mat":
        return array.astype(np.int32)
    if path.suffix.lower() == ".png":  # pictures hold 0 and 255; saliency maps may be soft
        if task == "edge" and not np.isin(array, (0, 255)).all():
            raise FileError(f"values from {array.min()} to {array.max()}, expected an edge map of 0 and 255")
        return (array > 127).astype(np.int64)
    return array


def _normals(array: np.ndarray, path: Path, dataset: str, root: Path | None) -> np.ndarray:
    vectors = _vectors(array)
    vectors[:, np.linalg.norm(vectors, axis=0) < FAINT] = 0.0
    if dataset == "pascal":  # distilled normals are trusted only on the classes that NYUD-v2 has too
        if root is None:
            raise FileError("normals of pascal need the archive's root as --gt, for the classes they are valid on")
        segments = load(root / "pascal-context" / "trainval" / f"{path.stem}.mat")
        if segments.shape != vectors.shape[1:]:
            raise FileError(f"size {vectors.shape[1:]}, but its LabelMap is {segments.shape}")
        vectors[:, ~np.isin(segments, _shared_classes(root))] = 0.0
    return vectors


@lru_cache(maxsize=2)
def _shared_classes(root: Path) -> tuple[int, ...]:
    try:
        nyud, context = (json.loads((root / "json" / f"{n}_classes.json").read_text()) for n in ("nyu", "context"))
        return tuple(trusted_classes(nyud, context))
    except KeyError as error:
        raise FileError(f"no class {error} in {root / 'json' / 'context_classes.json'}") from None
    except (OSError, ValueError, TypeError) as error:
        raise FileError(f"no class lists for its valid pixels: {error}") from None
