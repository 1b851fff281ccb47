"""The federated round: train, gather, aggregate, scatter. Which method runs is nobody's business here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from ..algorithms import Kinds
from ..base.seeds import stream
from ..cost.clock import OTHER, stopwatch
from ..data.views import newcomers, parties
from ..exchange import Owner, Party, Round, Rows
from ..exchange.algebra import gram
from ..runs.records import RoundRow, Score, UpdateProducts
from ..runs.sums_file import ScoreSums
from .checkpoint import Checkpoint, state_file, write_state
from .executor import Executor, OnStep, SerialExecutor
from .factory import ClientFactory, make_algorithm
from .faults import Attendance, attend
from .ledger import Ledger
from .messages import (
    ClientRows,
    Count,
    Evaluate,
    Install,
    Load,
    Message,
    Reply,
    RowNames,
    Save,
    Send,
    Train,
    TrainReport,
    required,
)
from .state_trees import to_device

EXTRA = "extra"  # in the ledger: what a method sends beside rows
KeepWeights = Callable[[str, dict[str, torch.Tensor]], None]  # told a client's id and its network's tensors


@dataclass(frozen=True)
class Trained:
    """A round half-way: its clients have trained, and the server has done nothing with what they sent."""

    index: int
    kinds: Kinds  # that travel in it
    attendance: Attendance
    owners: dict[str, tuple[Owner, ...]]  # whose rows, by kind
    # What the clients started from, and what they sent, by kind; also of kinds that stay, but are to be described.
    before: dict[str, torch.Tensor]
    after: dict[str, torch.Tensor]
    reports: list[TrainReport]
    names: dict[int, RowNames]  # by client and kind: which rows, where these are not all of its main track's
    measured: dict[int, dict[str, torch.Tensor]]  # by client: what it told beside its rows
    sizes: dict[int, dict[str, int]]  # by client: bytes of its rows by kind, where it compressed them

    @property
    def present(self) -> list[int]:
        """Who took part."""
        return self.attendance.present


class Federation:
    """The method between the clients, which an executor holds, and the phases of a round with their times."""

    def __init__(self, factory: ClientFactory, executor: Executor | None = None) -> None:
        config, data = factory.config, factory.opened()
        self.config, self.device, self.data = config, torch.device(factory.device), data
        self.parties, self.newcomers = parties(config, data), newcomers(config, data)
        self.algorithm = make_algorithm(config, self.parties)
        self.executor = executor or SerialExecutor()
        try:
            self.facts = self.executor.start(factory, len(self.parties) + len(self.newcomers))
        except BaseException:
            self.executor.stop()
            raise
        self.clock = stopwatch(self.device)
        # Since they were last asked for, by client: busy seconds by phase, and seconds from messages to replies.
        self.spent: dict[int, dict[str, float]] = {}
        self.waited: dict[int, float] = {}
        self.common: dict[str, torch.Tensor] = {}  # what a returning client is brought up to date with, [d] by kind
        self.behind: set[int] = set()
        self._known = KnownRows()

    def __enter__(self) -> Federation:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the clients go."""
        self.executor.stop()

    @property
    def steps_per_round(self) -> int:
        """Return the training steps of all clients together, if everybody is there."""
        return sum(facts.steps_per_round for facts in self.facts[: len(self.parties)])

    def _ask(self, messages: Mapping[int, Message], on_step: OnStep | None = None) -> Iterator[tuple[int, Reply]]:
        """Yield replies one by one, in the order of the messages; the time they took is booked."""
        for index, reply in self.executor.map(messages, on_step):
            spent = self.spent.setdefault(index, {})
            for phase, seconds in reply.spent.items():
                spent[phase] = spent.get(phase, 0.0) + seconds
            self.waited[index] = self.waited.get(index, 0.0) + reply.wall
            yield index, reply

    def _tell(self, messages: Mapping[int, Message]) -> list[Reply]:
        return [reply for _, reply in self._ask(messages)]

    def present(self, index: int) -> list[int]:
        """Return who is chosen for round `index`: all who are there, or a seeded sample of the configured share."""
        there, share = self._there(index), self.config.federation.participation
        if share == 1:
            return there
        rng = stream(self.config.seed, "participation", index)
        chosen: list[int] = rng.choice(there, size=max(1, round(share * len(there))), replace=False).tolist()
        return sorted(chosen)

    def _there(self, index: int) -> list[int]:
        """Return who has joined by round `index` and is there in it; somebody always is."""
        specs = self.config.scenario.parties()
        joined = [spec for spec in specs if index >= math.floor(spec.joins * self.config.federation.rounds)]
        if all(spec.presence == 1 for spec in joined):
            return [spec.index for spec in joined]
        draws = dict(zip((s.index for s in specs), stream(self.config.seed, "presence", index).random(len(specs))))
        there = [spec.index for spec in joined if draws[spec.index] < spec.presence]
        # In a round in which nobody would be, the one who missed it most narrowly is.
        return there or [min(joined, key=lambda spec: draws[spec.index] / spec.presence).index]

    @property
    def _somebody_misses_rounds(self) -> bool:
        always, how = all(spec.always_there for spec in self.config.scenario.parties()), self.config.federation
        faulty = how.dropout > 0 or (how.stragglers > 0 and how.straggler_work == "dropped")
        return how.participation < 1 or faulty or not always

    def round(self, index: int, on_step: OnStep | None = None, describe: bool = False) -> RoundRow:
        """Run round `index`; return its row for metrics.jsonl, without scores. Absent clients keep their models."""
        return self.exchange(self.train(index, on_step, describe), describe)

    def train(self, index: int, on_step: OnStep | None = None, describe: bool = False) -> Trained:
        """Do the first half of round `index`: local training, and what clients send afterwards.

        In a round that will be `describe`d, they also show encoders that stay at home, if the config asks for that.
        """
        self.clock.start()
        self.ledger = Ledger(self.algorithm.billed_copies())
        kinds = self.algorithm.shared(index)
        attendance = attend(self.config.federation, self.config.seed, index, self.present(index), self.parties)
        present = attendance.present
        install, parcels = self._catch_up(present), self._pack(present)
        asked = ("encoder",) if describe and self.config.evaluation.updates == "encoder" else ()
        shown = tuple(kind for kind in asked if kind not in kinds)
        names = {i: self._rows_sent(index, i, kinds) for i in present}
        owners = {kind: self._owners(kind, names) for kind in (*kinds, *shown)}
        held = {kind: self._held(kind, names) for kind in owners}
        unknown = tuple(kind for kind in held if held[kind] is None)
        before = {kind: self._room(kind, present, owners) if rows is None else rows for kind, rows in held.items()}
        messages: dict[int, Message] = {
            i: Train(index, kinds, install.get(i), unknown, shown, parcels[i], attendance.work.get(i, 1.0), names[i])
            for i in present
        }
        after = {kind: self._room(kind, present, owners) for kind in owners}
        trained = Trained(index, kinds, attendance, owners, before, after, [], names, {}, {})
        with self.clock.phase("train"):
            for i, reply in self._ask(messages, on_step):
                trained.reports.append(required(reply.report, messages[i], self.parties[i].id))
                # Copies: what came from another process lies in memory that nobody may write to.
                trained.measured[i] = {name: t.to(self.device, copy=True) for name, t in reply.measured.items()}
                trained.sizes[i] = reply.sizes
                for kind in owners:
                    _place(after[kind], owners[kind], i, reply.rows[kind])
                    if kind in reply.start:
                        _place(before[kind], owners[kind], i, reply.start[kind])
        self._known.forget(present)  # what they hold of a kind that did not travel is theirs now
        return trained

    def _rows_sent(self, index: int, client: int, kinds: Kinds) -> RowNames:
        """Return which rows of each kind a client exchanges, where these are not simply those of its main track."""
        asked = {kind: self.algorithm.rows_sent(index, self.parties[client], kind) for kind in kinds}
        return {kind: names for kind, names in asked.items() if names is not None}

    def _owners(self, kind: str, names: Mapping[int, RowNames]) -> tuple[Owner, ...]:
        """Return whose rows of a kind are exchanged: one per encoder, or per decoder, in client order."""
        found: list[Owner] = []
        for client, named in names.items():
            if kind in named:
                found += [Owner(client, task, track) for track, task in named[kind]]
            else:
                found += self.facts[client].layouts[kind].owners
        return tuple(found)

    def _held(self, kind: str, names: Mapping[int, RowNames]) -> torch.Tensor | None:
        """Return the rows that clients start from; None if they must be asked, as where they choose by themselves."""
        if self.algorithm.has("adopt") or any(kind in named for named in names.values()):
            return None
        return self._known.rows(kind, list(names))

    @torch.no_grad()
    def _pack(self, present: list[int]) -> dict[int, dict[str, torch.Tensor]]:
        """Return what the method sends each client beside rows; it is billed."""
        parcels = {i: self.algorithm.parcel(i) for i in present}
        for i, parcel in parcels.items():
            if parcel:
                self.ledger.book(self.parties[i].id, "down", EXTRA, parcel.values(), copies=1)
        return parcels

    def _room(self, kind: str, present: list[int], owners: Mapping[str, tuple[Owner, ...]]) -> torch.Tensor:
        """Return an empty matrix for the rows of these clients."""
        return torch.empty(len(owners[kind]), self.facts[present[0]].layouts[kind].width, device=self.device)

    def exchange(self, trained: Trained, describe: bool = False, last: bool = False) -> RoundRow:
        """Do the second half: upload, the server's step, download; return the round's row, without scores.

        `describe` adds the inner products of the clients' updates, from which they can be drawn. After the `last` round
        unseen clients get their encoder.
        """
        kinds, present = trained.kinds, trained.present
        with self.clock.phase("upload"):
            layouts = self.facts[present[0]].layouts
            seen = {
                kind: Rows(owners, trained.before[kind], trained.after[kind], layouts[kind].tensors)
                for kind, owners in trained.owners.items()
            }
            rows = {kind: seen[kind] for kind in kinds}
            self._book_uploads(rows, trained)
        with self.clock.phase("aggregate"), torch.no_grad():
            steps = {i: report.steps for i, report in zip(present, trained.reports)}
            both = rows.get("encoder"), rows.get("decoder")
            rnd = Round(trained.index, tuple(self.parties), *both, steps, trained.measured)
            new = self.algorithm.aggregate(rnd) if kinds else {}
        with self.clock.phase("download"):
            self._scatter(rows, new, trained.names)
            self._remember(new, trained)
            if last:
                self._welcome()
        ids = [self.parties[i].id for i in present]
        weights = {name: r.task_weights for name, r in zip(ids, trained.reports) if r.task_weights is not None}
        row = {  # in the order of the file's keys
            "round": trained.index + 1,
            **({"present": ids} if len(present) < len(self.parties) else {}),
            **self._tell_faults(trained.attendance),
            "losses": {name: r.losses for name, r in zip(ids, trained.reports)},
            "grad_norm": {name: r.grad_norm for name, r in zip(ids, trained.reports)},
            **({"task_weights": weights} if weights else {}),
            "bytes_up": self.ledger.total("up"),
            "bytes_down": self.ledger.total("down"),
            "ledger": self.ledger.clients,
            "algorithm": self.algorithm.diagnostics() if kinds else {},  # those of an earlier round are not this one's
            **({"updates": self._describe(seen)} if describe and seen else {}),
        }
        return cast(RoundRow, row)

    def _tell_faults(self, attendance: Attendance) -> dict[str, Any]:
        """Return whom faults met in a round, for its row; nothing where they met nobody."""
        dropped = [self.parties[i].id for i in attendance.dropped]
        work = {self.parties[i].id: share for i, share in attendance.work.items()}
        return {**({"dropped": dropped} if dropped else {}), **({"work": work} if work else {})}

    def _describe(self, rows: dict[str, Rows]) -> dict[str, UpdateProducts]:
        """Return the inner products of the clients' updates by kind, with the rows' owners."""
        return {
            kind: {
                "owners": [[self._name(o), o.task] for o in r.owners],
                "gram": gram(r.after, r.before).tolist(),
            }
            for kind, r in rows.items()
        }

    def _name(self, owner: Owner) -> str:
        """Return a client's id, with the track where it is not the main one."""
        name = self.parties[owner.client].id
        return name if owner.track == "main" else f"{name} ({owner.track})"

    def _book(self, direction: str, rows: dict[str, Rows], values: dict[str, torch.Tensor]) -> None:
        """Bill rows, but for tensors of them that stay home."""
        for kind, matrix in values.items():
            home = self.algorithm.kept_home(kind, rows[kind].tensors)
            free = sum(t.stop - t.start for t in home)
            for owner, row in zip(rows[kind].owners, matrix):
                self.ledger.book(self.parties[owner.client].id, direction, kind, [row[free:]])

    def _book_uploads(self, rows: dict[str, Rows], trained: Trained) -> None:
        """Bill what came: rows as they are or compressed, and what the method measured."""
        if any(trained.sizes.values()):
            for i, sizes in trained.sizes.items():
                for kind, size in sizes.items():
                    self.ledger.book_bytes(self.parties[i].id, "up", kind, self.ledger.copies * size)
        else:
            self._book("up", rows, {kind: trained.after[kind] for kind in trained.kinds})
        for i, measured in trained.measured.items():
            if measured:
                self.ledger.book(self.parties[i].id, "up", EXTRA, measured.values(), copies=1)

    def evaluate(self, index: int, keep: KeepWeights | None = None, sums: ScoreSums | None = None) -> list[Score]:
        """Return every client's scores as its model is now: after round `index`, or between its halves.

        `keep` is given each scored network, one at a time; `sums` takes what the scores were computed from.
        """
        return self._scores(index, self.parties, keep, sums)

    def evaluate_unseen(
        self, index: int, keep: KeepWeights | None = None, sums: ScoreSums | None = None
    ) -> list[Score]:
        """Return the scores of clients that never took part, each fitted to the encoder `exchange` handed out."""
        return self._scores(index, self.newcomers, keep, sums) if self.newcomers else []

    def _scores(
        self, index: int, members: Sequence[Party], keep: KeepWeights | None, sums: ScoreSums | None
    ) -> list[Score]:
        message = Evaluate(index, weights=keep is not None, sums=sums is not None)
        names = {party.index: party.id for party in members}
        scores: list[Score] = []
        with self.clock.phase("evaluate"):
            for index, reply in self._ask(dict.fromkeys(names, message)):
                scores += reply.scores
                if keep is not None:
                    keep(names[index], required(reply.weights, message, names[index]))
                if sums is not None:
                    of_client = required(reply.sums, message, names[index])
                    sums.update(((names[index], *which), found) for which, found in of_client.items())
        return scores

    def _scatter(self, rows: dict[str, Rows], new: dict[str, torch.Tensor], names: Mapping[int, RowNames]) -> None:
        """Send every client its new rows."""
        replies: dict[int, ClientRows] = {}
        for kind, values in new.items():
            for owner, value in zip(rows[kind].owners, values):
                replies.setdefault(owner.client, {}).setdefault(kind, []).append(value)
        self._book("down", rows, new)
        self._tell({i: Install(mine, names[i]) for i, mine in replies.items()})

    def _catch_up(self, present: list[int]) -> dict[int, ClientRows]:
        """Return the common model for clients that missed a round, by client."""
        returning = self.behind.intersection(present)
        copies = {i: {"encoder": 1, "decoder": self.parties[i].decoders} for i in returning}
        sent = {i: {kind: [row] * copies[i][kind] for kind, row in self.common.items()} for i in sorted(returning)}
        self.behind -= returning
        for i, by_kind in sent.items():
            for kind, rows in by_kind.items():
                home = self.algorithm.kept_home(kind, self.facts[i].layouts[kind].tensors)
                free = sum(t.stop - t.start for t in home)
                self.ledger.book(self.parties[i].id, "down", kind, [row[free:] for row in rows])
                self._known.forget([i], [kind])
        return sent

    def _remember(self, new: dict[str, torch.Tensor], trained: Trained) -> None:
        """Note what absent clients must be sent later, and what the present ones hold now."""
        absent = set(range(len(self.parties))).difference(trained.present)
        if self._somebody_misses_rounds:
            still = {kind: row for kind, row in self.common.items() if kind in self.algorithm.common}
            self.common = still | {kind: new[kind][0].clone() for kind in self.algorithm.common if kind in new}
            self.behind |= absent
        if self.config.federation.statistics == "home":  # a client may not take statistics as they were sent
            named = {kind for names in trained.names.values() for kind in names}
            for kind in trained.kinds:
                if kind in named:  # of which other rows may travel next time
                    continue
                installed = kind in new and self.algorithm.installs
                if installed or self.config.federation.compression == "none":  # else it has what it did not send
                    self._known.keep(kind, trained.present, new[kind] if installed else trained.after[kind])

    @torch.no_grad()
    def _welcome(self) -> None:
        """Send the unseen clients the encoder that the method has for them, where encoders travel at all."""
        rounds = range(self.config.federation.rounds)
        if not self.newcomers or not any("encoder" in self.algorithm.shared(index) for index in rounds):
            return
        # The server has every participant's encoder: what it sent last, or got last where it sends anchors only.
        replies = self._tell({i: Send(("encoder",)) for i in range(len(self.parties))})
        encoders = torch.stack([reply.rows["encoder"][0] for reply in replies]).to(self.device)
        if "encoder" in self.common:
            encoders[sorted(self.behind)] = self.common["encoder"]
        chosen = self.algorithm.newcomer_encoder(encoders)
        for party in self.newcomers:
            self.ledger.book(party.id, "down", "encoder", [chosen], copies=1)
        self._tell({party.index: Install({"encoder": [chosen]}) for party in self.newcomers})

    def timing(self) -> dict[str, Any]:
        """Return seconds per phase, in total and per client, since the round began. Asked once a round.

        `seconds` is the wall clock by phase of the round and adds up to it. `busy` is what clients worked, by phase and
        over all of them: more than the wall clock has where they work side by side. `clients` has it by client, and
        `wall` how long the server waited for each.
        """
        self.clock.lap(OTHER)
        everybody = [*self.parties, *self.newcomers]
        clients = {party.id: times for party in everybody if (times := self.spent.get(party.index))}
        wall = {party.id: self.waited[party.index] for party in everybody if party.index in self.waited}
        self.spent, self.waited = {}, {}
        busy: dict[str, float] = {}
        for times in clients.values():
            for phase, seconds in times.items():
                busy[phase] = busy.get(phase, 0.0) + seconds
        return {"seconds": self.clock.read(), "busy": busy, "clients": clients, "wall": wall}

    # -- saving ------------------------------------------------------------------------------------------------------

    def save(self, place: Path) -> dict[str, Any]:
        """Write everything a resumed run needs into a folder; return the entries of the checkpoint's index."""
        server = {"algorithm": self.algorithm.state_dict(), "common": self.common, "behind": sorted(self.behind)}
        entries = {"server": write_state(state_file(place, "server"), server)}
        own = self.executor.sees(place)
        messages: dict[int, Message] = {
            p.index: Save(str(state_file(place, _state_name(p.index))) if own else None) for p in self.parties
        }
        for index, reply in self._ask(messages):
            name = _state_name(index)
            if own:
                entries[name] = required(reply.saved, messages[index], self.parties[index].id)
            else:
                entries[name] = write_state(state_file(place, name), reply.state)
        return entries

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint.

        Raises:
            DamagedCheckpoint: It is not as it was written; nothing has changed.
        """
        checkpoint.check_all()
        server = to_device(checkpoint.read("server"), self.device)
        self.algorithm.load_state_dict(server["algorithm"])
        self.common, self.behind = server["common"], set(server["behind"])
        self._known = KnownRows()
        self.settle(checkpoint)
        for party in self.parties:  # one by one, since a state may have to pass through here
            self._tell({party.index: self._recalled(checkpoint, party.index)})

    def settle(self, checkpoint: Checkpoint) -> None:
        """Have the executor know that a checkpoint holds its clients as they are now."""
        takes_part = range(len(self.parties))
        self.executor.settle(lambda index: self._recalled(checkpoint, index) if index in takes_part else None)

    def _recalled(self, checkpoint: Checkpoint, index: int) -> Load:
        name = _state_name(index)
        if self.executor.sees(checkpoint.place):
            return Load(file=str(checkpoint.file(name)), skeleton=checkpoint.skeleton(name))
        return Load(checkpoint.read(name))

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return parameters by part and operations of the network of every client that takes part."""
        replies = self._tell({i: Count() for i in range(len(self.parties))})
        return {party.id: required(reply.counts, Count(), party.id) for party, reply in zip(self.parties, replies)}


def _place(matrix: torch.Tensor, owners: Sequence[Owner], client: int, rows: list[torch.Tensor]) -> None:
    """Write a client's rows where they belong in the matrix of these owners."""
    places = [place for place, owner in enumerate(owners) if owner.client == client]
    for place, row in zip(places, rows, strict=True):
        matrix[place].copy_(row)


def _state_name(index: int) -> str:
    return f"client-{index:03d}"


class KnownRows:
    """What the server knows that clients hold, because it sent or got it last and they have not trained since.

    A round then needs no second upload: where its clients start from is known.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[tuple[int, ...], torch.Tensor]] = {}  # kind → clients, their rows

    def keep(self, kind: str, clients: list[int], rows: torch.Tensor) -> None:
        """Note that these clients hold these rows; of others nothing is known any more."""
        self._of[kind] = (tuple(clients), rows)

    def forget(self, clients: list[int], kinds: Iterable[str] | None = None) -> None:
        """Note that nothing is known of these clients any more."""
        for kind in list(self._of) if kinds is None else kinds:
            if kind in self._of and set(self._of[kind][0]) & set(clients):
                del self._of[kind]

    def rows(self, kind: str, clients: list[int]) -> torch.Tensor | None:
        """Return the rows of these clients; None if they must be asked."""
        holders, rows = self._of.get(kind, ((), None))
        return rows if holders == tuple(clients) else None
