"""Runs that several files of tests only read: made once."""

from __future__ import annotations

import pytest
from made_rounds import EIGHTEEN, NINE, write_rounds


@pytest.fixture(scope="session")
def nine(tmp_path_factory):
    """Nine methods with eighteen clients, of four rounds."""
    root = tmp_path_factory.mktemp("nine")
    for name in NINE:
        write_rounds(root, name, clients=EIGHTEEN, rounds=4)
    return root
