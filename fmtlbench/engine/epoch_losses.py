"""Keep the losses and gradient norms of an epoch on the device, and stop a run that has left the real numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from ..base.errors import FmtlbenchError
from ..networks.flat import FlatModel


class DivergedError(FmtlbenchError):
    """A loss or gradient became NaN or infinite."""


class EpochLosses:
    """One epoch of one client. On a CPU every step is looked at; on a GPU the epoch is, to spare a sync per step."""

    def __init__(
        self, client: str, round_index: int, steps: list[tuple[str, ...]], batches: int, device: torch.device
    ) -> None:
        """Watch `batches` batches; `steps` are the tasks of each optimiser step on one, together all tasks."""
        self.client, self.round, self.steps = client, round_index, steps
        self.tasks = tuple(task for step in steps for task in step)
        self.columns = [slice(self.tasks.index(step[0]), self.tasks.index(step[-1]) + 1) for step in steps]
        self.losses = torch.zeros(batches * len(steps), len(self.tasks), device=device)  # 0: not of this step
        self.norms = torch.zeros(len(self.losses), device=device)
        self.each_step = device.type == "cpu"
        self.done = 0

    def step(self, losses: list[Tensor], norm: Tensor, flat: FlatModel, scaled: bool) -> None:
        """Book one step. `scaled`: infinite gradients are the loss scaler's business, which skips them."""
        self.losses[self.done, self.columns[self.done % len(self.steps)]] = torch.stack(losses).detach()
        self.norms[self.done] = norm
        self.done += 1
        if self.each_step:
            self._check(self.done - 1, self.done, flat, scaled)

    def latest(self) -> dict[str, float]:
        """Return the losses of the last step."""
        step = (self.done - 1) % len(self.steps)
        return dict(zip(self.steps[step], self.losses[self.done - 1, self.columns[step]].tolist()))

    def finish(self, flat: FlatModel, scaled: bool) -> tuple[dict[str, float], float | None]:
        """Return (mean loss by task, mean gradient norm) of the epoch; no norm if every step was skipped."""
        if not self.each_step:
            self._check(0, self.done, flat, scaled)
        means = (self.losses[: self.done].cpu().double().mean(0) * len(self.steps)).tolist()
        norms = self.norms[: self.done].cpu()
        norms = norms[norms.isfinite()]
        return dict(zip(self.tasks, means)), norms.double().mean().item() if len(norms) else None

    def _where(self) -> str:
        return f"client {self.client}, round {self.round + 1}"

    def _check(self, first: int, last: int, flat: FlatModel, scaled: bool) -> None:
        losses, norms = self.losses[first:last].cpu(), self.norms[first:last].cpu()
        bad_loss = ~losses.isfinite()
        bad = bad_loss.any(1) if scaled else bad_loss.any(1) | ~norms.isfinite()
        if not bad.any():
            return
        k = int(bad.nonzero()[0])
        tasks = [task for task, is_bad in zip(self.tasks, bad_loss[k].tolist()) if is_bad]
        what = "loss" if tasks else "gradient"
        tasks = tasks or _tasks_with_bad_gradients(flat) or list(self.tasks)
        raise DivergedError(
            f"{self._where()}, step {first + k + 1}: the {what} of {', '.join(tasks)} is not a finite number; "
            "the checkpoint of the last good round is kept (a lower train.lr or train.clip_norm may help, as a new run)"
        )


def _tasks_with_bad_gradients(flat: FlatModel) -> list[str]:
    bad: list[str] = []
    for _, task, module in flat.model.parts():
        if task is not None and any(p.grad is not None and not p.grad.isfinite().all() for p in module.parameters()):
            bad.append(task)
    return list(dict.fromkeys(bad))
