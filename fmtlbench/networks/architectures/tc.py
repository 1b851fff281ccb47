"""FMTL-Bench's TC (task-conditioned) network: one U-shaped decoder for all tasks, conditioned on a task embedding.

Its encoder does not depend on the task, so all tasks can be learned in one optimiser step. The paper learns them one
after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...base.schema import limits
from ._base import ARCHITECTURES, Architecture


@ARCHITECTURES.register("tc")
class TaskConditioned(Architecture):
    """One decoder for all tasks."""

    title = "TC"
    description = "one U-shaped decoder for all tasks, steered by an embedding of the task (AdaIN)"
    paper = "FMTL-Bench (Yang et al., ICMR 2024), section 3.2.2"
    maps = "all"
    one_decoder = True

    @dataclass(frozen=True)
    class Params:
        task_steps: Literal["joint", "sequential", "public"] = limits(
            "joint",
            doc="joint: one encoder pass and one optimiser step for all tasks; sequential: one per task; public: "
            "sequential, without clearing the gradients in between, as the FMTL-Bench code does",
        )

    @classmethod
    def refuses(cls, params, config):
        if params.task_steps == "public" and config.train.amp == "fp16":
            return (
                "model.options.task_steps=public adds up gradients over steps, which fp16 scales differently; "
                "try train.amp=bf16"
            )
        return None

    def build(self, encoder, outputs, federation_outputs):
        from ..fmtl_tc import TCNet

        return TCNet(encoder, outputs, tuple(federation_outputs), max(federation_outputs.values()))

    def task_steps(self, tasks):
        return [tasks] if self.params.task_steps == "joint" else [(task,) for task in tasks]

    @property
    def adds_up_gradients(self):
        return self.params.task_steps == "public"
