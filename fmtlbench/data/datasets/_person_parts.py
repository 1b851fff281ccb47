"""Read Pascal-Part annotations, merging the 24 parts of a person into 6 classes.

A file holds one struct `anno` with a list `objects`, each with `class_ind`, a `mask` and a list `parts` of `part_name`
and `mask`. Other objects, and persons without annotated parts, are background, as in the public code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...base.errors import nearest
from ._files import DamagedFileError, Shape, fitting, read_mat

PERSON, CLASSES = 15, 20  # numbers of the PASCAL VOC classes

_GROUPS = {
    1: "head hair lear rear leye reye lebrow rebrow nose mouth",
    2: "torso neck",
    3: "luarm ruarm",
    4: "llarm rlarm lhand rhand",
    5: "luleg ruleg",
    6: "llleg rlleg lfoot rfoot",
}
PART_CLASS = {name: number for number, names in _GROUPS.items() for name in names.split()}


def read_person_parts(path: Path, shape: Shape | None) -> np.ndarray:
    """Return [H, W] uint8: 0 background, 1 head, 2 torso, 3 upper and 4 lower arms, 5 upper and 6 lower legs.

    Where parts overlap, the later one in the file is used. Without a `shape` the first object gives the size; a file
    without objects gives an empty array.
    """
    if shape is None:
        shape = next((_read_mask(path, thing["mask"]).shape for _, thing in _read_objects(path)), (0, 0))
    label = np.zeros(shape, np.uint8, order="F")  # the memory order of MATLAB's masks
    for number, thing in _read_objects(path):
        if number != PERSON:
            continue
        for part in _read_structs(path, thing["parts"], ("part_name", "mask"), "parts"):
            name = _read_single(path, part["part_name"], "U", "part_name")
            if name not in PART_CLASS:
                raise DamagedFileError(path, f"a person has no part {name!r}; {nearest(name, PART_CLASS)}")
            np.copyto(label, PART_CLASS[name], where=fitting(path, _read_mask(path, part["mask"]), shape))
    return np.ascontiguousarray(label)


def has_person(path: Path) -> bool:
    """Return whether some person covers at least one pixel."""
    return any(number == PERSON and _read_mask(path, thing["mask"]).any() for number, thing in _read_objects(path))


def _read_objects(path: Path) -> Iterator[tuple[int, np.void]]:
    """Yield every annotated object with its class number."""
    annotations = _read_structs(path, read_mat(path, "anno"), ("objects",), "anno")
    if len(annotations) != 1:
        raise DamagedFileError(path, f"{len(annotations)} structs in 'anno', expected 1")
    for thing in _read_structs(path, annotations[0]["objects"], ("class_ind", "mask", "parts"), "objects"):
        number = _read_single(path, thing["class_ind"], "uif", "class_ind")
        if number not in range(1, CLASSES + 1):
            raise DamagedFileError(path, f"an object of class {number}, expected 1 to {CLASSES}")
        yield int(number), thing


def _read_structs(path: Path, array: np.ndarray, fields: tuple[str, ...], what: str) -> np.ndarray:
    """Return the structs of a MATLAB array, in order; fields are not checked in an empty one, which has lost them."""
    if not isinstance(array, np.ndarray):
        raise DamagedFileError(path, f"{what!r} is not a MATLAB struct")
    if array.size:
        for field in fields:
            if field not in (array.dtype.names or ()):
                raise DamagedFileError(path, f"{what!r} has no field {field!r}, expected Pascal-Part annotations")
    return array.ravel()


def _read_single(path: Path, array: np.ndarray, kinds: str, what: str):
    """Return the value of a 1×1 array, which is how MATLAB stores a scalar."""
    if not isinstance(array, np.ndarray) or array.size != 1 or array.dtype.kind not in kinds:
        raise DamagedFileError(path, f"{what!r} is not one value of the expected type")
    return array.item()


def _read_mask(path: Path, array: np.ndarray) -> np.ndarray:
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "buif":
        raise DamagedFileError(path, "a 'mask' is not a matrix of numbers")
    return array.astype(bool)
