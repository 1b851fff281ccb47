"""A copy of the package's files that a test may edit, which code identities are read from instead of the real ones."""

from __future__ import annotations

import shutil
from copy import copy as copy_of
from pathlib import Path

import pytest
from rooms import BESIDE, PACKAGE, ROOT

from fmtlbench.runs import code_identity


class CopiedPackage:
    """The files, by their names below the package: `algorithms/fedper.py`, `engine/client.py`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def file(self, name: str) -> Path:
        """Return the place of a file in the copy."""
        return self.root / (name if name.split("/")[0] in BESIDE else f"{PACKAGE}/{name}")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that occurs in a file."""
        file = self.file(name)
        text = file.read_text(encoding="utf-8")
        assert old in text, (name, old)
        file.write_text(text.replace(old, new), encoding="utf-8")

    def append(self, name: str, text: str) -> None:
        """Add lines at the end of a file."""
        with self.file(name).open("a", encoding="utf-8") as file:
            file.write(text)


@pytest.fixture
def package(tmp_path, monkeypatch) -> CopiedPackage:
    """The copy; what this process executes stays the real package."""
    copy = tmp_path / "copied_package"
    ignored = shutil.ignore_patterns("__pycache__", "*.safetensors", "reports", "cli", "bench")
    for folder in (PACKAGE, *BESIDE):
        if folder != "reports":
            shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    real = code_identity._locate

    def locate(module: str) -> Path | None:
        found = real(module)
        return copy / found.relative_to(ROOT) if found is not None and found.is_relative_to(ROOT) else found

    monkeypatch.setattr(code_identity, "_locate", locate)
    for name, found in vars(code_identity.SOURCES).items():  # what is found in the copy must not outlive the test
        monkeypatch.setattr(code_identity.SOURCES, name, copy_of(found))
    return CopiedPackage(copy)
