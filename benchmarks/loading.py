"""Loading real images on one core: training batches against decoding alone, and the decoded cache against the archive.

Run: python benchmarks/loading.py [--data-root DIR]      Without a folder of real archives, miniature ones are written:
rendered scenes with the noise of a camera, in the archives' own formats. Three ways are timed in turns, in this one
process and by its processor time, which does not count waiting for a core; the best round of each counts:

  decode    every file of a sample with its decoder (PIL; numpy for .npy, scipy for .mat) and nothing else
  archive   reader + the papers' training transforms + batches of tensors, from the files
  cache     the same from the decoded cache

At the papers' sizes with the papers' tasks, `archive` must reach 0.35 of the images per second that `decode` reaches on
the same files, and `cache` twice those of `archive`. Two cases are shown for information only: a client with two small
label maps, whose files decode in a third of the time that scaling, distorting and normalising 512×512 pixels take, and
the transforms of MaT-FL, which rotates images with bicubic interpolation.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time

import numpy as np
import torch
from PIL import Image
from scipy.io import loadmat, savemat

from fmtlbench.base.seeds import stream
from fmtlbench.data.amounts import USUAL, Amounts
from fmtlbench.data.batches import train_batches
from fmtlbench.data.cache import build_cache, open_cached
from fmtlbench.data.datasets import ArchiveDataset, dataset_for, open_split
from fmtlbench.data.datasets.synth import generate
from fmtlbench.data.transforms import AUGMENTATIONS
from fmtlbench.data.views import View

ARCHIVE_LIMIT, CACHE_LIMIT = 0.35, 2.0
IMAGES, BATCH = 16, 8
SIZES = {"nyud": (448, 576), "pascal": (512, 512)}
CASES = (
    ("nyud", ("semseg", "depth", "normals", "edge"), "none", True),
    ("pascal", ("semseg", "human_parts", "sal", "normals", "edge"), "none", True),
    ("pascal", ("semseg", "sal"), "none", False),
    ("pascal", ("semseg", "human_parts", "sal", "normals", "edge"), "fixed", False),
)
# By data.resize: the papers' transforms, or MaT-FL's of PASCAL-Context.
TRANSFORMS = {"none": (AUGMENTATIONS, USUAL), "fixed": (("rotate", "scale", "flip"), Amounts((0.75, 1.25), 20.0))}


# -- a miniature archive -----------------------------------------------------------------------------------------------


def write_archives(root: Path) -> None:
    nyud, pascal = root / "NYUDv2", root / "PASCALContext"
    names = [f"{number:04d}" for number in range(1, IMAGES + 1)]
    for folder, lists in ((nyud, "gt_sets"), (pascal, "ImageSets/Context")):
        for split in ("train", "val"):
            file = folder / lists / f"{split}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(names))
    for index, name in enumerate(names):
        _write_room(nyud, name, generate("synth-nyud", "train", index, (480, 640)), index)
        _write_scene(pascal, name, generate("synth-pascal", "train", index, (375, 500)), index)
    (pascal / "json").mkdir()
    classes = {f"class{number}": number for number in range(1, 459)} | {"tvmonitor": 459}
    for name in ("nyu", "context"):
        (pascal / "json" / f"{name}_classes.json").write_text(json.dumps(classes))


def _write_room(folder: Path, name: str, sample: dict[str, np.ndarray], seed: int) -> None:
    _save_picture(folder / "images" / f"{name}.png", _add_noise(sample["image"], seed))
    _save_picture(folder / "segmentation" / f"{name}.png", np.where(sample["semseg"] == 255, 0, sample["semseg"] + 1))
    _save_picture(folder / "edge" / f"{name}.png", sample["edge"] * 255)
    _save_picture(folder / "normals" / f"{name}.png", _paint_normals(sample["normals"], seed))
    (folder / "depth").mkdir(exist_ok=True)
    np.save(folder / "depth" / f"{name}.npy", sample["depth"])


def _write_scene(folder: Path, name: str, sample: dict[str, np.ndarray], seed: int) -> None:
    _save_picture(folder / "JPEGImages" / f"{name}.jpg", _add_noise(sample["image"], seed))
    _save_picture(folder / "semseg" / "pascal-context" / f"{name}.png", sample["semseg"])
    _save_picture(folder / "sal_distill" / f"{name}.png", sample["sal"] * 255)
    _save_picture(folder / "normals_distill" / f"{name}.png", _paint_normals(sample["normals"], seed))
    for kind, content in (
        ("pascal-context/trainval", {"LabelMap": sample["semseg"].astype(np.uint16)}),
        ("human_parts", {"anno": _make_annotation(sample["human_parts"])}),
    ):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        savemat(folder / kind / f"{name}.mat", content, do_compression=True)


def _make_annotation(parts: np.ndarray) -> np.ndarray:
    """Make the annotation of one person with left and right limbs, as Pascal-Part stores it."""
    left = np.arange(parts.shape[1]) < parts.shape[1] // 2
    names = (("head", "hair"), ("torso", "neck"), ("luarm", "ruarm"), ("llarm", "rlarm"), ("luleg", "ruleg"))
    found = [
        (name, ((parts == number) & side).astype(np.uint8))
        for number, pair in enumerate((*names, ("llleg", "rlleg")), 1)
        for name, side in zip(pair, (left, ~left))
    ]
    person = [("person", 15, (parts > 0).astype(np.uint8), _make_structs(("part_name", "mask"), found))]
    return _make_structs(("imname", "objects"), [("", _make_structs(("class", "class_ind", "mask", "parts"), person))])


def _make_structs(fields: tuple[str, ...], rows: list[tuple]) -> np.ndarray:
    array = np.empty((1, len(rows)), [(field, object) for field in fields])
    array[0] = rows
    return array


def _add_noise(image: np.ndarray, seed: int) -> np.ndarray:
    """Add the noise of a camera, which makes photographs large files."""
    noise = stream(seed, "noise").normal(0, 3, image.shape)
    return np.clip(image + noise, 0, 255)


def _paint_normals(normals: np.ndarray, seed: int) -> np.ndarray:
    """Turn normals into colours, with noise: measured or predicted ones are not as smooth as rendered ones."""
    return np.clip((normals + 1) * 127.5 + stream(seed, "normals").normal(0, 1, normals.shape), 0, 255)


def _save_picture(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path, **({"quality": 92} if path.suffix == ".jpg" else {}))


# -- what is timed -----------------------------------------------------------------------------------------------------


def decode_all(files: Iterable[Path]) -> None:
    for path in files:
        if path.suffix == ".npy":
            np.load(path)
        elif path.suffix == ".mat":
            loadmat(path)
        else:
            with Image.open(path) as picture:
                picture.load()


def load_all(dataset: ArchiveDataset, tasks: tuple[str, ...], count: int) -> None:
    view, rng = View(dataset, np.arange(count)), stream(0, "loading")
    augment, amounts = TRANSFORMS[dataset.resize]
    for _ in train_batches(view, tasks, min(BATCH, count), rng, augment, torch.device("cpu"), amounts=amounts):
        pass


def files_of(dataset: ArchiveDataset, tasks: tuple[str, ...], index: int) -> list[Path]:
    kinds = ["image", *(kind for task in tasks for kind in dataset.needs.get(task, (task,)))]
    return [dataset.path(index, kind) for kind in dict.fromkeys(kinds)]


def time_best(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Time the ways in turns; return the processor seconds of the best round of each, the first one not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            began = process_time()
            way()
            seconds[name].append(process_time() - began)
    return {name: min(times[1:]) for name, times in seconds.items()}


def measure(
    root: Path, cache: Path, domain: str, tasks: tuple[str, ...], resize: str, rounds: int
) -> tuple[float, float]:
    """Return the speed of the archive ÷ that of decoding, and that of the cache ÷ that of the archive."""
    dataset = open_split(dataset_for(domain, "real"), "train", root, size=SIZES[domain], resize=resize)
    count = min(IMAGES, len(dataset))
    count -= count % min(BATCH, count)  # whole batches
    build_cache(dataset, cache)
    cached = open_cached(dataset, cache)
    files = [path for index in range(count) for path in files_of(dataset, tasks, index)]
    seconds = time_best(
        {
            "decode": lambda: decode_all(files),
            "archive": lambda: load_all(dataset, tasks, count),
            "cache": lambda: load_all(cached, tasks, count),
        },
        rounds,
    )
    speeds = ", ".join(f"{name} {count / spent:.0f}" for name, spent in seconds.items())
    print(f"{domain} ({', '.join(tasks)}; resize={resize}), {count} images, images per second: {speeds}")
    return seconds["decode"] / seconds["archive"], seconds["archive"] / seconds["cache"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, help="folder with NYUDv2 and PASCALContext")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds of each way; default: 7")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    slow = False
    with tempfile.TemporaryDirectory() as folder:
        root = args.data_root or Path(folder) / "archives"
        if args.data_root is None:
            write_archives(root)
        for domain, tasks, resize, held in CASES:
            to_decoding, to_archive = measure(root, Path(folder) / "cache", domain, tasks, resize, args.rounds)
            limits = (f" (limit {ARCHIVE_LIMIT})", f" (limit {CACHE_LIMIT:g})") if held else (" (for information)",) * 2
            print(f"  archive / decode: {to_decoding:.2f}{limits[0]}, cache / archive: {to_archive:.2f}{limits[1]}")
            slow |= held and (to_decoding < ARCHIVE_LIMIT or to_archive < CACHE_LIMIT)
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
