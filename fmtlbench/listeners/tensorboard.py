"""Curves for TensorBoard: `tensorboard --logdir runs` finds them in every run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ._base import LISTENERS, Start, import_extra
from ._rounds import RoundLogger

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


@LISTENERS.register("tensorboard")
class TensorBoard(RoundLogger):
    """Event files with every round's losses, scores, seconds, bytes and energy, in <run>/logs/tensorboard."""

    def __init__(self) -> None:
        import_extra("tensorboard", "tensorboard")  # torch's own message names no extra
        self.module = import_extra("torch.utils.tensorboard", "tensorboard")
        self.writer: SummaryWriter | None = None

    def open(self, start: Start, place: Path) -> None:
        self.writer = self.module.SummaryWriter(str(place))

    def log(self, step: int, scalars: dict[str, float]) -> None:
        assert self.writer is not None, "open() comes first"
        for name, value in scalars.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()  # a killed run keeps its curves

    def end(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None
