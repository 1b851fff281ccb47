from __future__ import annotations

import golden_files
import pytest


@pytest.fixture
def golden():
    """Loads a golden file by its name."""
    return golden_files.load
