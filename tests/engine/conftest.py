"""What the engine's tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def scenario(tmp_path):
    """Write a scenario's text to a file; returns its path."""

    def write(text, name="mine"):
        path = tmp_path / f"{name}.yml"
        path.write_text(text)
        return str(path)

    return write
