"""What the two embedded domains offer: tasks, classes, and the version of their pixels."""

from __future__ import annotations

from dataclasses import dataclass

from ....base.errors import UsageError, unknown
from ...machine_limits import check_image_memory

VERSION = 1  # raise it whenever a pixel or a label changes: caches and run hashes depend on it

# `pretrain` is for the weights that benchmarks/make_weights.py makes: no run trains or is scored on it.
SPLITS = ("train", "test", "pretrain")
MIN_SIDE = 16  # below this a person or a chair is smaller than a pixel
IGNORE = 255

ROOM_CLASSES = (
    "wall",
    "floor",
    "ceiling",
    "cabinet",
    "bed",
    "chair",
    "sofa",
    "table",
    "door",
    "window",
    "bookshelf",
    "picture",
    "lamp",
)
OUTDOOR_CLASSES = ("background", "person", "car", "bus", "horse", "dog", "pottedplant", "chair")
PART_CLASSES = ("background", "head", "torso", "upper arms", "lower arms", "upper legs", "lower legs")


@dataclass(frozen=True)
class SynthSpec:
    """One domain. `classes` holds the number of output classes of the tasks that have classes."""

    name: str
    tasks: tuple[str, ...]
    class_names: dict[str, tuple[str, ...]]
    stands_for: str  # the domain of scenarios
    edge_tolerance: float  # of odsF, as a fraction of the diagonal: that of the dataset whose place it takes
    fov: float  # degrees across the shorter image side
    description: str

    @property
    def classes(self) -> dict[str, int]:
        return {task: len(names) for task, names in self.class_names.items()}


DOMAINS: dict[str, SynthSpec] = {
    spec.name: spec
    for spec in (
        SynthSpec(
            name="synth-nyud",
            tasks=("semseg", "depth", "normals", "edge"),
            class_names={"semseg": ROOM_CLASSES},
            stands_for="nyud",
            edge_tolerance=0.011,
            fov=68.0,
            description="procedural furnished rooms; small props are unlabelled (255) in semseg",
        ),
        SynthSpec(
            name="synth-pascal",
            tasks=("semseg", "human_parts", "sal", "normals", "edge"),
            class_names={"semseg": OUTDOOR_CLASSES, "human_parts": PART_CLASSES},
            stands_for="pascal",
            edge_tolerance=0.0075,
            fov=50.0,
            description="procedural outdoor scenes with people, vehicles, animals and garden things",
        ),
    )
}


def domain(name: str) -> SynthSpec:
    if name not in DOMAINS:
        raise unknown("embedded dataset", name, DOMAINS)
    return DOMAINS[name]


def check_split(split: str) -> str:
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    return split


def check_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return image height and width as plain ints; refuse anything else, and sizes that are too small."""
    try:
        height, width = (_whole(side) for side in size)
    except (TypeError, ValueError):
        raise UsageError(f"size must be two whole numbers (height, width), got {size!r}") from None
    if min(height, width) < MIN_SIDE:
        raise UsageError(f"size must be at least {MIN_SIDE}x{MIN_SIDE}, got {height}x{width}")
    check_image_memory(1, (height, width), "size")
    return height, width


def check_count(value: int, what: str, least: int) -> int:
    try:
        number = _whole(value)
    except TypeError:
        raise UsageError(f"{what} must be a whole number, got {value!r}") from None
    if number < least:
        raise UsageError(f"{what} must be at least {least}, got {number}")
    return number


def _whole(value: int) -> int:
    """Accept ints and numpy ints; refuse floats, strings and bools."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(value)
    return value.__index__()


def focal(name: str, size: tuple[int, int]) -> float:
    """Return the focal length in pixels, the same for every sample of a domain at a given size.

    Camera coordinates are right-handed: x right, y up, z towards the viewer. Pixel (row v, column u) with depth d
    lies at d * ((u + 0.5 - W/2) / f, (H/2 - v - 0.5) / f, -1). Normals point towards the viewer's side.
    """
    from math import radians, tan

    height, width = check_size(size)
    return 0.5 * min(height, width) / tan(radians(domain(name).fov) / 2)
