"""Find the images that show people by reading every annotation once; the result is kept in the cache folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...base.found_once import find_once
from ._person_parts import has_person

VERSION = 1


def images_with_people(
    paths: list[Path],
    digest: str,
    cache_dir: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Return the indices of the annotations with a person, in order.

    Args:
        paths: One Pascal-Part file per image.
        digest: The digest of these files, under which the result is stored.
        cache_dir: Where to store it; by default $FMTLBENCH_CACHE or the user's cache folder.
        progress: Called with (done, total) while reading, not when the stored result is used.
    """

    def find() -> list[int]:
        found = []
        for index, path in enumerate(paths):
            if has_person(path):
                found.append(index)
            if progress and ((index + 1) % 50 == 0 or index + 1 == len(paths)):
                progress(index + 1, len(paths))
        return found

    def fits(found: Any) -> bool:
        numbers = isinstance(found, list) and all(type(i) is int and 0 <= i < len(paths) for i in found)
        return numbers and sorted(set(found)) == found

    about = {"version": VERSION, "images": len(paths)}
    return np.array(find_once("people", about, digest, fits, find, cache_dir), np.int64)
