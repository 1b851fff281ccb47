"""Which config values may name files. In a preset, a grid or a run's file, such a file lies beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# Dotted name of a value, or of a mapping of such values → how a file's name ends there.
NAMES_FILES = {
    "model.architecture": ".py",
    "model.weights": "",
    "train.weighting": ".py",
    "evaluation.metrics": ".py",
    "data.files": "",
}


def rewrite_files(value: Any, rewrite: Callable[[str], str], path: str = "") -> Any:
    """Return config values, by dotted or nested names, in which `rewrite` has replaced the path of every file."""
    if isinstance(value, Mapping):
        return {
            key: rewrite_files(inner, rewrite, f"{path}.{key}" if path else str(key)) for key, inner in value.items()
        }
    endings = [ending for name, ending in NAMES_FILES.items() if f"{path}.".startswith(f"{name}.")]
    is_file = isinstance(value, str) and bool(value) and any(value.endswith(ending) for ending in endings)
    return rewrite(value) if is_file else value
