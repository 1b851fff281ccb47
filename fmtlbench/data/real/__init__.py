"""The real datasets: NYUD-v2 in two layouts and PASCAL-Context, read from the archives of the multi-task literature."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .dataset import RealDataset

__all__ = ["open_real", "prepare", "reader_of"]


def open_real(
    domain: str,
    split: str,
    root: str | Path | None,
    size: tuple[int, int] | None = None,
    tasks: Iterable[str] | None = None,
    *,
    layout: str | None = None,
    limit: int | None = None,
    edges: str | None = None,
    complete: bool = True,
    progress: Callable[[int, int], None] | None = None,
    resize: str = "none",
) -> RealDataset:
    """Find and open a split of a real dataset; refuses at once if files are missing.

    Args:
        domain: "nyud" or "pascal".
        split: "train" or "test".
        root: What --data-root says; without it $FMTLBENCH_DATA or the user's config file decides.
        size: Height and width that batches are brought to; samples keep their own, so looking needs none.
        tasks: Labels to read; by default all.
        layout: "NYUDv2" or "NYUD_MT", to prefer one where both are there.
        limit: Only the first images of the list.
        edges: "training" or "scoring"; by default what the split is for.
        complete: Refuse an archive in which files are missing.
        progress: Called with (done, total) where something takes long.
        resize: How batches are brought to `size`: "none" pads and crops, "fixed" stretches.
    """
    from .roots import find_archive

    folder, archive = find_archive(domain, root, layout)
    return reader_of(archive)(
        folder, split, size, tasks=tasks, limit=limit, edges=edges, complete=complete, progress=progress, resize=resize
    )


def reader_of(archive: str) -> type[RealDataset]:
    """The reader of an archive, by its folder's name."""
    from .nyud import NyudDataset
    from .nyud_mt import NyudMtDataset
    from .pascal import PascalDataset

    return {reader.archive: reader for reader in (NyudDataset, NyudMtDataset, PascalDataset)}[archive]


@cache
def prepare() -> None:
    """Load or compile the readers' pixel loops now: worker processes that are forked later find them ready."""
    import numpy as np

    from .edges import training_edges
    from .kernels import clear_untrusted
    from .nyud import decode_normals

    normals = decode_normals(np.zeros((4, 4, 3), np.uint8))
    for kind in (np.uint8, np.uint16):  # what MATLAB files hold, and as it lies in them
        segments = np.zeros((4, 4), kind, order="F")
        training_edges(segments)
        clear_untrusted(normals, segments, np.zeros(1, bool))
