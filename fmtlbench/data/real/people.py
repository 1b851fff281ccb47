"""Which images show people: found by reading every annotation once, then kept in the user's cache folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ...files import write_json
from ..cache_folder import cache_root
from .person_parts import has_person

VERSION = 1


def images_with_people(
    paths: list[Path],
    fingerprint: str,
    cache_dir: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Indices of the annotations with a person, in order.

    Args:
        paths: One Pascal-Part file per image.
        fingerprint: Of the dataset: the result is kept under this name.
        cache_dir: Where to keep it; by default $FMTLBENCH_CACHE or the user's cache folder.
        progress: Called with (done, total) while reading, not when the result was kept.
    """
    file = cache_root(cache_dir) / f"people-{fingerprint[:32]}.json"
    about = {"version": VERSION, "fingerprint": fingerprint, "images": len(paths)}
    found = _kept(file, about)
    if found is None:
        found = []
        for index, path in enumerate(paths):
            if has_person(path):
                found.append(index)
            if progress and ((index + 1) % 50 == 0 or index + 1 == len(paths)):
                progress(index + 1, len(paths))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, {**about, "with_people": found})
        except OSError as error:
            warnings.warn(f"{file}: cannot keep the list of images with people ({error})", stacklevel=3)
    return np.array(found, np.int64)


def _kept(file: Path, about: dict) -> list[int] | None:
    """What an earlier call wrote, unless it is damaged or about other data."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = content.pop("with_people")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    good = isinstance(found, list) and all(type(i) is int and 0 <= i < about["images"] for i in found)
    return found if good and content == about and sorted(set(found)) == found else None
