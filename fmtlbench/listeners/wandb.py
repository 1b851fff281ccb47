"""Weights & Biases: offline, in the run folder, unless $WANDB_MODE says otherwise."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Any

from ..base.files import write_text
from ..base.schema import plain
from ..runs.records import Cost
from ._base import LISTENERS, Start, import_extra
from ._rounds import RoundLogger


@LISTENERS.register("wandb")
class WeightsAndBiases(RoundLogger):
    """Every round's losses, scores, seconds, bytes and energy, in <run>/logs/wandb; offline by default."""

    def __init__(self) -> None:
        self.mode = os.environ.get("WANDB_MODE") or "offline"
        if self.mode == "offline":  # no network at all: errors of its own are not sent either
            os.environ["WANDB_ERROR_REPORTING"] = "false"
        self.wandb = import_extra("wandb", "wandb")
        self.run: Any = None
        self.exit_code = 1  # until the bill, which only a finished run has

    def open(self, start: Start, place: Path) -> None:
        config = start.config
        self.hooks = sys.exit, sys.excepthook  # it puts its own in their place and leaves them there
        self.run = self.wandb.init(
            project=os.environ.get("WANDB_PROJECT") or "fmtlbench",
            dir=str(start.logs),
            mode=self.mode,
            id=_identity(place / "run-id", config.hash()),
            resume="allow" if self.mode == "online" else None,
            name=f"{config.scenario.name} {config.method} s{config.seed}",
            group=config.scenario.name,
            job_type=config.method,
            config=plain(config),
            settings=self.wandb.Settings(
                silent=True, console="off", disable_git=True, disable_code=True, save_code=False, x_disable_stats=True
            ),
        )

    def log(self, step: int, scalars: dict[str, float]) -> None:
        self.run.log(scalars, step=step)

    def bill(self, cost: Cost) -> None:
        self.exit_code = 0

    def end(self) -> None:
        if self.run is not None:
            run, self.run = self.run, None
            try:
                run.finish(exit_code=self.exit_code)
            finally:
                sys.exit, sys.excepthook = self.hooks


def _identity(file: Path, config_hash: str) -> str:
    """Return the id of the run, the same in every session: made once and kept, so that --fresh is another run."""
    if not file.exists():
        write_text(file, f"{config_hash[:8]}-{secrets.token_hex(4)}\n")
    return file.read_text(encoding="utf-8").strip()
