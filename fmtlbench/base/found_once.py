"""Keep in the user's cache folder what takes long to find out about a dataset."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cache_folder import cache_root
from .files import write_text


def find_once(
    what: str,
    about: dict[str, Any],
    digest: str,
    fits: Callable[[Any], bool],
    find: Callable[[], Any],
    cache_dir: Path | None = None,
) -> Any:
    """Return what an earlier call stored; if that is missing, damaged or about other data, call `find` and store it.

    Args:
        what: The file's name begins with it.
        about: Says which data it was found in; compared with what was kept.
        digest: Of the data: the file is named after it.
        fits: Whether a value read from disk can be one of `find`.
        find: Gives a value that JSON can hold.
        cache_dir: By default $FMTLBENCH_CACHE or the user's cache folder.
    """
    file = cache_root(cache_dir) / f"{what}-{digest[:32]}.json"
    about = {**about, "data": digest}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        value = content.pop("found")
        if content == about and fits(value):
            return value
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        pass  # not there, or damaged: found again
    value = find()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps({**about, "found": value}) + "\n")
    except OSError as error:
        warnings.warn(f"{file}: cannot be written, so it will be found out again the next time ({error})", stacklevel=3)
    return value
