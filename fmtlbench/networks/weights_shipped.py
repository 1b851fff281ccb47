"""Find the encoder weights that come with the package; weights/manifest.json tells how they were trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError
from ..base.files import sha256_file

FOLDER = Path(__file__).parents[1] / "weights"
MANIFEST = "manifest.json"
REMEDY = "install fmtlbench anew (`make weights` trains them again), or --set model.pretrained=false"


def read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """Return a folder's manifest, one entry per backbone; an empty one if the folder has none."""
    path = folder / MANIFEST
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise FmtlbenchError(f"{path} cannot be read: {error}") from None


def shipped_entry(backbone: str) -> dict[str, Any]:
    """Return the entry of a backbone's weights in the package's manifest."""
    entry = read_manifest(FOLDER).get(backbone)
    if entry is None:
        raise FmtlbenchError(f"model.pretrained: {FOLDER / MANIFEST} lists no weights of {backbone}; {REMEDY}")
    return entry


def shipped_path(backbone: str) -> Path:
    """Return the file with a backbone's weights, which must exist."""
    entry = shipped_entry(backbone)
    path = FOLDER / entry["file"]
    if not path.is_file():
        raise FmtlbenchError(
            f"model.pretrained: no such file: {path}, the weights of {backbone} (sha256 {entry['sha256']}); {REMEDY}"
        )
    return path


def shipped_sha256(backbone: str) -> str:
    """Return the sha256 of a backbone's file, which must be the one in the manifest."""
    path, expected = shipped_path(backbone), shipped_entry(backbone)["sha256"]
    found = sha256_file(path)
    if found != expected:
        raise FmtlbenchError(
            f"model.pretrained: {path} has sha256 {found}, expected {expected}: it was changed; {REMEDY}"
        )
    return found
