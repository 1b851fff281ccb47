from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

OWN = Path(__file__).parents[1] / "golden" / "metrics"
SHARED = Path(__file__).parents[2].parent / "shared" / "golden"


def golden_file(name: str) -> Path:
    """The copy in the repository, else the full set beside it; skips when there is neither."""
    for root in (OWN, SHARED):
        if (root / name).is_file():
            return root / name
    pytest.skip(f"golden file {name} is neither in {OWN} nor in {SHARED}")


@pytest.fixture
def golden():
    def load(name: str):
        path = golden_file(name)
        return json.loads(path.read_text()) if path.suffix == ".json" else np.load(path)

    return load
