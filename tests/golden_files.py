"""Find golden files: inputs and outputs of the public reference implementations (see golden/README.md).

golden/ holds a part of the full set. Where the full set lies beside the checkout, its further cases run as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent / "golden"
FULL = Path(__file__).parents[2] / "shared" / "golden"
INDEX: dict[str, str] = json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))  # file → its SHA-256


class Folder:
    """`/` leads on to a folder, or to a file of either set; where there is none it fails, and so does the test."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __truediv__(self, name: str) -> Folder | Path:
        name = f"{self.name}/{name}".lstrip("/")
        return Folder(name) if (GOLDEN / name).is_dir() else find(name)


def find(name: str) -> Path:
    """The repository's copy, else that of the full set."""
    for root in (GOLDEN, FULL):
        if (root / name).is_file():
            return root / name
    raise FileNotFoundError(f"golden file {name} is neither in {GOLDEN} nor in {FULL}")


def load(name: str) -> Any:
    """The arrays of an npz file, or what a JSON file says."""
    path = find(name)
    return json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else np.load(path)


def cases(name: str, *options: Iterable) -> list:
    """The combinations of options, put into the name's {}, whose file is in the index or in the full set.

    What the index lists is always among them, so that a file that went missing fails a test instead of losing it.
    """
    known = [c for c in product(*options) if (file := name.format(*c)) in INDEX or (FULL / file).is_file()]
    return [c[0] for c in known] if len(options) == 1 else known
