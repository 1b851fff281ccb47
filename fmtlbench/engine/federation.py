"""The federated round: train, gather, aggregate, scatter. Which method runs is nobody's business here."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch

from ..algorithms import ALGORITHMS, Algorithm
from ..config import RunConfig
from ..data.views import ClientData, parties
from ..errors import FmtlbenchError
from ..exchange import Round, Rows
from ..schema import build
from ..seeds import stream
from .client import Client
from .executor import SerialExecutor
from .trees import to_device


def make_algorithm(config: RunConfig, members: list) -> Algorithm:
    """The configured method with its options."""
    chosen = ALGORITHMS.resolve(config.algorithm.file or config.algorithm.name)
    return chosen(build(chosen.Params, config.algorithm.options, {}, "algo"), members)


class Federation:
    """The clients, the method between them, and the phases of a round with their times."""

    def __init__(self, config: RunConfig, data: list[ClientData], device: torch.device) -> None:
        self.config, self.device = config, device
        self.parties = parties(config, data)
        self.algorithm = make_algorithm(config, self.parties)
        self.executor = SerialExecutor(
            lambda i: Client(config, self.parties[i], data[i], self.algorithm, device), len(self.parties)
        )
        self.seconds: dict[str, float] = {}
        self.common: dict[str, torch.Tensor] = {}  # what a returning client is brought up to date with, [d] by kind
        self.behind: set[int] = set()

    @property
    def clients(self) -> list[Client]:
        return self.executor.clients

    def present(self, index: int) -> list[int]:
        """Who takes part in round `index`: everybody, or a seeded sample of the configured share."""
        count, share = len(self.parties), self.config.federation.participation
        if share == 1:
            return list(range(count))
        rng = stream(self.config.seed, "participation", index)
        return sorted(rng.choice(count, size=max(1, round(share * count)), replace=False).tolist())

    def round(self, index: int, on_step: Callable | None = None) -> dict[str, Any]:
        """Run round `index`; returns its row for metrics.jsonl, without scores. Absent clients keep their models."""
        self.seconds = {}
        kinds, present = self.algorithm.shared(index), self.present(index)
        caught_up = self._catch_up(present)
        before = self._gather(present, kinds)
        with self._phase("train"):
            reports = self.executor.call(present, "train", index, kinds, on_step)
        with self._phase("upload"):
            after = self._gather(present, kinds)
            rows = {kind: self._rows(present, kind, before[kind], after[kind]) for kind in kinds}
        with self._phase("aggregate"), torch.no_grad():
            new = self.algorithm.aggregate(Round(index, tuple(self.parties), **rows)) if kinds else {}
        with self._phase("download"):
            self._scatter(rows, new)
            self._remember(new, present)
        ids = [self.parties[i].id for i in present]
        size = torch.float32.itemsize
        return {
            "round": index + 1,
            **({"present": ids} if len(present) < len(self.parties) else {}),
            "losses": {name: r.losses for name, r in zip(ids, reports)},
            "grad_norm": {name: r.grad_norm for name, r in zip(ids, reports)},
            "bytes_up": sum(r.after.numel() for r in rows.values()) * size,
            "bytes_down": (caught_up + sum(value.numel() for value in new.values())) * size,
            "algorithm": self.algorithm.diagnostics(),
        }

    def evaluate(self, index: int) -> list[dict[str, Any]]:
        with self._phase("evaluate"):
            everybody = self.executor.call(range(len(self.parties)), "evaluate", index)
        return [record for records in everybody for record in records]

    def _gather(self, clients: list[int], kinds: tuple[str, ...]) -> dict[str, torch.Tensor]:
        """One matrix per kind: a row per encoder, or per decoder in client order."""
        uploads = self.executor.call(clients, "upload", kinds)
        return {kind: torch.stack([row for u in uploads for row in u[kind]]).to(self.device) for kind in kinds}

    def _rows(self, clients: list[int], kind: str, before: torch.Tensor, after: torch.Tensor) -> Rows:
        layouts = self.executor.call(clients, "layout", kind)
        return Rows(tuple(owner for owners, _ in layouts for owner in owners), before, after, layouts[0][1])

    def _scatter(self, rows: dict[str, Rows], new: dict[str, torch.Tensor]) -> None:
        replies: dict[int, dict[str, list[torch.Tensor]]] = {}
        for kind, values in new.items():
            self._check_reply(kind, values, rows)
            for owner, value in zip(rows[kind].owners, values):
                replies.setdefault(owner.client, {}).setdefault(kind, []).append(value)
        self.executor.send("download", replies)

    def _catch_up(self, present: list[int]) -> int:
        """Send the common model to clients that missed a round; the number of values sent."""
        returning = self.behind.intersection(present)
        copies = {i: {"encoder": 1, "decoder": len(self.parties[i].tasks)} for i in returning}
        replies = {i: {kind: [row] * copies[i][kind] for kind, row in self.common.items()} for i in sorted(returning)}
        self.executor.send("download", replies)
        self.behind -= returning
        return sum(row.numel() for reply in replies.values() for rows in reply.values() for row in rows)

    def _remember(self, new: dict[str, torch.Tensor], present: list[int]) -> None:
        absent = set(range(len(self.parties))).difference(present)
        if self.config.federation.participation < 1:
            self.common |= {kind: new[kind][0].clone() for kind in self.algorithm.common if kind in new}
            self.behind |= absent

    def _check_reply(self, kind: str, values: Any, rows: dict[str, Rows]) -> None:
        """A method somebody is still writing gets one clear line."""
        who = f"{self.algorithm.name}.aggregate"
        if kind not in rows:
            raise FmtlbenchError(f"{who} returned {kind!r}, but only {', '.join(rows)} travelled in this round")
        expected = tuple(rows[kind].after.shape)
        if not isinstance(values, torch.Tensor) or tuple(values.shape) != expected:
            came = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
            raise FmtlbenchError(f"{who} returned {came} for {kind!r}, expected a tensor of shape {expected}")

    @contextmanager
    def _phase(self, name: str):
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def state(self) -> dict[str, Any]:
        """Everything a resumed run needs, by checkpoint file."""
        states = self.executor.call(range(len(self.parties)), "state_dict")
        server = {"algorithm": self.algorithm.state_dict(), "common": self.common, "behind": sorted(self.behind)}
        return {"server": server, **{f"client-{i:03d}": s for i, s in enumerate(states)}}

    def load_state(self, states: dict[str, Any]) -> None:
        server = to_device(states["server"], self.device)
        self.algorithm.load_state_dict(server["algorithm"])
        self.common, self.behind = server["common"], set(server["behind"])
        self.executor.send("load_state_dict", {i: states[f"client-{i:03d}"] for i in range(len(self.parties))})
