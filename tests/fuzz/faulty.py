"""A method that answers a hook with whatever it is told, and a federation of it that is built once."""

from __future__ import annotations

import json
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from cases import DEADLINE, TookTooLong, alarm, odd_value
from hypothesis import strategies as st
from kit import make_federation

from fmtlbench.engine.checkpoint import Checkpoint, save_checkpoint

METHOD = """\
from fmtlbench.algorithms import ALGORITHMS, Algorithm, Evaluation


@ALGORITHMS.register("faulty")
class Faulty(Algorithm):
    title, paper = "Faulty", "none"
    told = None  # (hook, what to answer it with)

    def answer(self, hook, good, *given):
        return self.told[1](*given) if self.told and self.told[0] == hook else good

    def shared(self, index):
        return self.answer("shared", ("encoder",), index)

    def aggregate(self, rnd):
        return self.answer("aggregate", {"encoder": rnd.encoder.after.clone()}, rnd)

    def local_objective(self, local):
        return self.answer("local_objective", None, local)

    def evaluation_model(self):
        return self.answer("evaluation_model", Evaluation())

    def billed_copies(self):
        return self.answer("billed_copies", 1)

    def diagnostics(self):
        return self.answer("diagnostics", {})

    def state_dict(self):
        return self.answer("state_dict", {})

    def load_state_dict(self, state):
        pass
"""
SCENARIO = """\
description: two alike clients
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth], count: 2}
"""
SMALL = {
    "model.backbone": "swin_nano", "model.pretrained": False,
    "data.train_samples.nyud": 2, "data.test_samples.nyud": 1, "data.size.nyud": [32, 32], "train.batch_size": 1,
    "train.local_epochs.nyud": 1, "federation.rounds": 2,
}  # fmt: skip
HOOKS = (
    "shared",
    "aggregate",
    "aggregate",
    "local_objective",
    "evaluation_model",
    "billed_copies",
    "diagnostics",
    "state_dict",
)

TENSORS = {
    "ones(3)": lambda like: torch.ones(3),
    "nan": lambda like: torch.tensor(float("nan")),
    "inf": lambda like: torch.tensor(float("inf")),
    "like it": lambda like: like.clone(),
    "like it, NaN": lambda like: torch.full_like(like, float("nan")),
    "like it, whole numbers": lambda like: like.long(),
    "like it, complex": lambda like: like.to(torch.complex64),
    "like it, half": lambda like: like.half(),
    "like it, one row": lambda like: like[:1],
    "like it, turned": lambda like: like.T if like.ndim == 2 else like[None],
    "like it, sparse": lambda like: like.to_sparse(),
    "like it, nowhere": lambda like: like.to("meta"),
}


@dataclass(frozen=True)
class HookCase:
    """Which hook answers what: a value, a tensor by name, or an exception; perhaps below a kind."""

    hook: str
    answer: Any
    how: str  # "value", "tensor", "raise"
    kind: str | None

    def __call__(self, *given: Any) -> Any:
        if self.how == "raise":
            raise self.answer("on\npurpose")
        value = self.answer
        if self.how == "tensor":
            rows = getattr(given[0], "encoder", None) if given else None
            value = TENSORS[self.answer](rows.after if rows is not None else torch.tensor(0.5))
        return value if self.kind is None else {self.kind: value}


@st.composite
def hook_cases(draw):
    hook = draw(st.sampled_from(HOOKS))
    how = draw(st.sampled_from(("value", "tensor", "tensor", "raise")))
    errors = (
        ValueError,
        RuntimeError,
        KeyError,
        SystemExit,
        OSError,
        AssertionError,
        NotImplementedError,
        StopIteration,
    )
    answers = {"value": odd_value, "tensor": st.sampled_from(sorted(TENSORS)), "raise": st.sampled_from(errors)}
    kind = draw(st.sampled_from((None, "encoder", "encoder", "decoder", "head")))
    return HookCase(hook, draw(answers[how]), how, kind)


class Patient:
    """The federation that every case is tried on, put back before each."""

    def __init__(self, folder: Path) -> None:
        (folder / "faulty.py").write_text(METHOD)
        (folder / "twins.yml").write_text(SCENARIO)
        self.federation = make_federation(str(folder / "faulty.py"), str(folder / "twins.yml"), **SMALL)
        save_checkpoint(folder, 0, self.federation.save)
        self.start = Checkpoint(folder, 0)

    def try_case(self, case: HookCase, deadline: float = DEADLINE) -> tuple[str, str]:
        """One round with the answer, as a run does it: (outcome, what was said)."""
        from fmtlbench.base.errors import FmtlbenchError

        method = getattr(self.federation.algorithm, "_method", self.federation.algorithm)
        method.told = None
        self.federation.load(self.start)
        method.told = case.hook, case
        try:
            with alarm(deadline):
                row = self.federation.round(0)
                self.federation.evaluate(0)
                json.dumps(row, allow_nan=False)  # as the store writes it
                with tempfile.TemporaryDirectory() as folder:
                    self.federation.save(Path(folder))
        except FmtlbenchError as error:
            lines = str(error).splitlines()
            return ("refused" if len(lines) == 1 and len(lines[0]) < 2000 else "untidy"), str(error)[:300]
        except TookTooLong:
            return "hang", f"longer than {deadline} s"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return "traceback", f"{type(error).__name__}: {str(error)[:100]} at {frame.filename}:{frame.lineno}"
        finally:
            method.told = None
        return "ok", ""
