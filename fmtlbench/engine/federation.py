"""The federated round: train, gather, aggregate, scatter. Which method runs is nobody's business here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..algorithms import ALGORITHMS, Algorithm, Evaluation
from ..algorithms._linear import gram
from ..config import RunConfig
from ..cost.clock import OTHER, stopwatch
from ..data.views import ClientData, newcomers, parties
from ..exchange import Round, Rows
from ..hooks import Hooks, build_options
from ..seeds import stream
from .client import Client, TrainReport
from .executor import SerialExecutor
from .ledger import Ledger
from .trees import to_device


def make_algorithm(config: RunConfig, members: list) -> Hooks:
    """The configured method with its options."""
    chosen = ALGORITHMS.resolve(config.algorithm.file or config.algorithm.name)
    return Hooks(chosen, build_options(chosen, config.algorithm.options, {}), members)


class Newcomer(Algorithm):
    """What a client does that takes part in nothing: fit fresh decoders and heads to the encoder it was given."""

    name = "newcomer"

    @dataclass(frozen=True)
    class Params:
        epochs: int

    def evaluation_model(self):
        return Evaluation(finetune=(("decoder", "head"),) * self.params.epochs)


@dataclass(frozen=True)
class Trained:
    """A round half-way: its clients have trained and sent nothing yet."""

    index: int
    kinds: tuple[str, ...]  # that travel in it
    present: list[int]
    before: dict[str, torch.Tensor]  # what the clients started from, by kind
    reports: list[TrainReport]


class Federation:
    """The clients, the method between them, and the phases of a round with their times."""

    def __init__(self, config: RunConfig, data: list[ClientData], device: torch.device) -> None:
        self.config, self.device = config, device
        self.parties, self.newcomers = parties(config, data), newcomers(config, data)
        self.algorithm = make_algorithm(config, self.parties)
        alone = Hooks(Newcomer, Newcomer.Params(config.evaluation.unseen_epochs), self.newcomers)
        members = [*((p, self.algorithm) for p in self.parties), *((p, alone) for p in self.newcomers)]
        self.executor = SerialExecutor(
            lambda i: Client(config, members[i][0], data[i], members[i][1], device), len(members)
        )
        self.clock = stopwatch(device)
        self.common: dict[str, torch.Tensor] = {}  # what a returning client is brought up to date with, [d] by kind
        self.behind: set[int] = set()

    @property
    def clients(self) -> list[Client]:
        """Those that take part."""
        return self.executor.clients[: len(self.parties)]

    @property
    def unseen(self) -> list[Client]:
        """Those that never do."""
        return self.executor.clients[len(self.parties) :]

    def present(self, index: int) -> list[int]:
        """Who takes part in round `index`: everybody, or a seeded sample of the configured share."""
        count, share = len(self.parties), self.config.federation.participation
        if share == 1:
            return list(range(count))
        rng = stream(self.config.seed, "participation", index)
        return sorted(rng.choice(count, size=max(1, round(share * count)), replace=False).tolist())

    def round(self, index: int, on_step: Callable | None = None, describe: bool = False) -> dict[str, Any]:
        """Run round `index`; returns its row for metrics.jsonl, without scores. Absent clients keep their models."""
        return self.exchange(self.train(index, on_step), describe)

    def train(self, index: int, on_step: Callable | None = None) -> Trained:
        """The first half of round `index`: local training."""
        self.clock.start()
        self.ledger = Ledger(self.algorithm.billed_copies())
        kinds, present = self.algorithm.shared(index), self.present(index)
        self._catch_up(present)
        before = self._gather(present, kinds)
        with self.clock.phase("train"):
            reports = self.executor.call(present, "train", index, kinds, on_step)
        return Trained(index, kinds, present, before, reports)

    def exchange(self, trained: Trained, describe: bool = False, last: bool = False) -> dict[str, Any]:
        """The second half: upload, the server's step, download; returns the round's row, without scores.

        `describe` adds the inner products of the clients' updates, from which they can be drawn. After the `last` round
        unseen clients get their encoder.
        """
        kinds, present = trained.kinds, trained.present
        with self.clock.phase("upload"):
            after = self._gather(present, kinds)
            rows = {kind: self._rows(present, kind, trained.before[kind], after[kind]) for kind in kinds}
            self._book("up", rows, after)
        with self.clock.phase("aggregate"), torch.no_grad():
            new = self.algorithm.aggregate(Round(trained.index, tuple(self.parties), **rows)) if kinds else {}
        with self.clock.phase("download"):
            self._scatter(rows, new)
            self._remember(new, present)
            if last:
                self._welcome()
        ids = [self.parties[i].id for i in present]
        return {
            "round": trained.index + 1,
            **({"present": ids} if len(present) < len(self.parties) else {}),
            "losses": {name: r.losses for name, r in zip(ids, trained.reports)},
            "grad_norm": {name: r.grad_norm for name, r in zip(ids, trained.reports)},
            "bytes_up": self.ledger.total("up"),
            "bytes_down": self.ledger.total("down"),
            "ledger": self.ledger.clients,
            "algorithm": self.algorithm.diagnostics(),
            **({"updates": self._describe(rows)} if describe and rows else {}),
        }

    def _describe(self, rows: dict[str, Rows]) -> dict[str, Any]:
        return {
            kind: {
                "owners": [[self.parties[o.client].id, o.task] for o in r.owners],
                "gram": gram(r.after, r.before).tolist(),
            }
            for kind, r in rows.items()
        }

    def _book(self, direction: str, rows: dict[str, Rows], values: dict[str, torch.Tensor]) -> None:
        for kind, matrix in values.items():
            for owner, row in zip(rows[kind].owners, matrix):
                self.ledger.book(self.parties[owner.client].id, direction, kind, [row])

    def evaluate(self, index: int) -> list[dict[str, Any]]:
        """Every client's scores as its model is now: after round `index`, or between its halves."""
        with self.clock.phase("evaluate"):
            everybody = self.executor.call(range(len(self.parties)), "evaluate", index)
        return [record for records in everybody for record in records]

    def evaluate_unseen(self, index: int) -> list[dict[str, Any]]:
        """The scores of the clients that never took part, each fitted to the encoder that `exchange` handed out."""
        if not self.newcomers:
            return []
        with self.clock.phase("evaluate"):
            everybody = self.executor.call([party.index for party in self.newcomers], "evaluate", index)
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
            for owner, value in zip(rows[kind].owners, values):
                replies.setdefault(owner.client, {}).setdefault(kind, []).append(value)
        self._book("down", rows, new)
        self.executor.send("download", replies)

    def _catch_up(self, present: list[int]) -> None:
        """Send the common model to clients that missed a round."""
        returning = self.behind.intersection(present)
        copies = {i: {"encoder": 1, "decoder": self.parties[i].decoders} for i in returning}
        replies = {i: {kind: [row] * copies[i][kind] for kind, row in self.common.items()} for i in sorted(returning)}
        self.executor.send("download", replies)
        self.behind -= returning
        for i, reply in replies.items():
            for kind, sent in reply.items():
                self.ledger.book(self.parties[i].id, "down", kind, sent)

    def _remember(self, new: dict[str, torch.Tensor], present: list[int]) -> None:
        absent = set(range(len(self.parties))).difference(present)
        if self.config.federation.participation < 1:
            self.common |= {kind: new[kind][0].clone() for kind in self.algorithm.common if kind in new}
            self.behind |= absent

    @torch.no_grad()
    def _welcome(self) -> None:
        """Send the unseen clients the encoder that the method has for them, where encoders travel at all."""
        rounds = range(self.config.federation.rounds)
        if not self.newcomers or not any("encoder" in self.algorithm.shared(index) for index in rounds):
            return
        # The server has every participant's encoder: what it sent last, or got last where it sends anchors only.
        encoders = self._gather(list(range(len(self.parties))), ("encoder",))["encoder"]
        if "encoder" in self.common:
            encoders[sorted(self.behind)] = self.common["encoder"]
        chosen = self.algorithm.newcomer_encoder(encoders)
        for party in self.newcomers:
            self.ledger.book(party.id, "down", "encoder", [chosen], copies=1)
        self.executor.send("download", {party.index: {"encoder": [chosen]} for party in self.newcomers})

    def timing(self) -> dict[str, Any]:
        """Where the time since the round began went: seconds by phase, and by client and phase. Asked once a round."""
        self.clock.lap(OTHER)
        server = self.clock.read()
        everybody = [*self.parties, *self.newcomers]
        clients = {p.id: t for p, t in zip(everybody, self.executor.call([p.index for p in everybody], "times"))}
        seconds: dict[str, float] = {}
        for times in clients.values():
            for phase in ("load", "step", "warmup"):
                if phase in times:
                    seconds[phase] = seconds.get(phase, 0.0) + times[phase]
        # Between the batches of a training, and between the phases of a round.
        rest = server.pop("train", 0.0) - sum(seconds.values())
        seconds |= {phase: spent for phase, spent in server.items() if phase != OTHER}
        seconds[OTHER] = max(0.0, server.get(OTHER, 0.0) + rest)
        return {"seconds": seconds, "clients": {name: times for name, times in clients.items() if times}}

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
