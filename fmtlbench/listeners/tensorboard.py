"""Curves for TensorBoard: `tensorboard --logdir runs` finds them in every run folder."""

from __future__ import annotations

from typing import Any

from ._base import LISTENERS, Listener, import_extra
from ._scalars import scalars_of


@LISTENERS.register("tensorboard")
class TensorBoard(Listener):
    """Event files with every round's losses, scores, seconds, bytes and energy, in <run>/logs/tensorboard."""

    def __init__(self) -> None:
        import_extra("tensorboard", "tensorboard")  # torch's own message names no extra
        self.module = import_extra("torch.utils.tensorboard", "tensorboard")
        self.writer: Any = None

    def begin(self, start):
        # Rounds after the last checkpoint are made again: readers drop what an earlier session wrote of them.
        self.writer = self.module.SummaryWriter(str(start.logs / "tensorboard"), purge_step=start.done + 1)
        if not start.done:
            self.writer.add_text("config", _as_code(start.config.dump()), 0)

    def round_done(self, row, timing):
        for name, value in scalars_of(row, timing).items():
            self.writer.add_scalar(name, value, row["round"])
        self.writer.flush()  # a killed run keeps its curves

    def end(self):
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def _as_code(text: str) -> str:
    """Indent, by which TensorBoard's Markdown leaves a text as it is."""
    return "".join(f"    {line}\n" for line in text.splitlines())
