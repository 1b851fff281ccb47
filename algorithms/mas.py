"""MAS (merge and split): one model for all tasks first, then one for each group of tasks that help each other.

Merge: in the first `merge` = 0.3 of the rounds, FedAvg by training images: one encoder for all, one decoder per task.
In the first `affinity_rounds` = 10 of them a client with several tasks looks at every ρ-th batch (`affinity_every` =
10): for each task a the encoder alone makes a step of plain SGD, θ' = θ − η (∇L_a + λθ), λ = `weight_decay` = 1e-4, and
z_{a→r} = (1 − L_r(θ') / L_r(θ)) / η tells what it did to task r; then θ is put back. z is averaged over batches, over
the clients that hold both tasks, then over rounds.

Split: tasks are parted into at most x = `groups` groups so that the mean score of a task is highest. In a group of
several, task r scores the mean of z_{a→r} over the others in it; alone, the mean of all z that it has a part in. All
partitions are tried; of equal ones that with fewest groups is taken, then the first by the names of the tasks.

Continue: each group is a FedAvg run of its own, from the merged model. A client takes part in every group that has some
of its tasks, with a model for each, which trains these tasks alone and is what they are scored with. For each of these
models an encoder and the decoders of its tasks travel both ways; beside them |T_i|² affinities in measuring rounds, and
once the groups. A client that missed rounds is sent what is common now when it returns, billed beside rows as well.

Zhuang et al., ICCV 2023, arXiv:2307.11285, whose clients all have all tasks. Here a pair of tasks that no client holds
counts as the mean of those that were measured; where tasks fall apart into sets that no client connects, this says
next to nothing, so that it must be asked for (`unknown=mean`). 30 of 100 rounds is the paper's setting (its published
command merges for 70), x is 2 or 3 there. What a client copies from its merged model are parameters: the further models
start with an optimiser and running statistics of their own. Networks with one decoder for all tasks have one per group.

The public code (weimingwill/EasyFL, applications/mas) measures in the midst of training, with BatchNorm in training
mode; here it is done after it, as in scoring, with the last learning rate and on batches that are not augmented. Its
step is plain SGD, too, though a comment promises momentum: it looks for the buffer where it never is. It adds z up over
local epochs, and so loses what is negative (a Counter drops it); it divides by a number of batches that need not be
whole; dividing by η gives late rounds of a falling rate more weight, which is kept here. L_a has its task's fixed
weight, as there. Its overlapping groups, off by default, are left out: a task has one model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import TRAVELLING_KINDS, Party, Round, Rows
from ..exchange.algebra import rows_by_kind
from ._base import ALGORITHMS, Algorithm, Batch, Kinds, Local, RowName, Workbench
from ._mean import Weighting, means_by_label

if TYPE_CHECKING:
    from torch import Tensor

    from ..config.run_config import FederationConfig
    from ..scenarios import Scenario

TRACKS = ("main", "second", "third")  # a client's models, in the order of the groups that its tasks are in
MOST_TASKS = 12  # of which all partitions into three groups are tried within seconds
Pair = tuple[str, str]  # the task that acts, and the one it acts on


@ALGORITHMS.register("mas")
class MAS(Algorithm):
    """FedAvg of all tasks, then of each group of tasks that help each other."""

    title = "MAS"
    paper = "Zhuang et al., ICCV 2023, arXiv:2307.11285"
    roles = ("shares",)
    tracks: tuple[str, ...] = TRACKS[:2]  # by default; an instance has as many as groups are asked for
    # Nothing is left to the engine's way of bringing returning clients up to date: it knows no groups.
    common = ()

    @dataclass(frozen=True)
    class Params:
        groups: int = limits(2, low=2, high=3, doc="x: into how many groups tasks are split at most")
        merge: float = limits(0.3, above=0, below=1, doc="share of the rounds before the split; at least one")
        affinity_rounds: int = limits(10, low=1, doc="in how many of these, from the first, affinities are measured")
        affinity_every: int = limits(10, low=1, doc="ρ: affinities are measured on one batch in so many")
        weight_decay: float = limits(1e-4, low=0, doc="λ of the look-ahead step")
        unknown: Literal["refuse", "mean"] = limits(
            "refuse", doc="tasks that no chain of clients connects: no run, or the mean of measured pairs"
        )
        weighting: Weighting = limits("samples", doc="clients count by their training images, or alike")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.tracks = TRACKS[: params.groups]
        self.tasks = sorted({task for party in parties for task in party.tasks})
        # Of every pair that was measured: the sum over rounds of the clients' mean, and how many rounds these are.
        self.affinities: dict[Pair, tuple[float, int]] = {}
        self.groups: list[list[str]] | None = None  # tasks by group, after the split
        self.told: set[int] = set()  # clients that know the groups
        # By what rows are the mean of: who holds the newest one, and the row itself while somebody lacks it.
        self.holders: dict[str, set[int]] = {}
        self.kept: dict[str, Tensor] = {}  # parameters, [d]

    @classmethod
    def refuses(cls, params: Any, scenario: Scenario, federation: FederationConfig) -> str | None:
        if federation.rounds < 2:
            return (
                f"one round to merge and one to continue are the least, got federation.rounds={federation.rounds}; "
                "--set federation.rounds=2"
            )
        if federation.exchange == "models":
            return (
                "decoders are averaged task by task and part ways at the split, but whole models have all of a "
                "client's in one row; exchange them one by one: --set federation.exchange=decoders"
            )
        task_sets = [spec.tasks for spec in scenario.parties()]
        tasks = {task for own in task_sets for task in own}
        if len(tasks) > MOST_TASKS:
            return f"all ways to part the tasks are tried, of {MOST_TASKS} at most; the clients have {len(tasks)}"
        apart = unconnected(task_sets)
        if params.unknown == "refuse" and len(apart) > 1:
            sets = " and ".join(f"{{{', '.join(sorted(own))}}}" for own in apart)
            return (
                f"no client connects the tasks {sets}, so nobody can measure whether they help each other; "
                "--set algo.unknown=mean counts such pairs as the mean of the others"
            )
        return None

    @property
    def merge_rounds(self) -> int:
        """How many rounds come before the split; one is left for after it."""
        return max(1, min(round(self.params.merge * self.rounds), self.rounds - 1))

    # -- on the server -------------------------------------------------------------------------------------------------

    def shared(self, index: int) -> Kinds:
        return TRAVELLING_KINDS

    def rows_sent(self, index: int, party: Party, kind: str) -> Sequence[RowName] | None:
        return None if self.groups is None else list(self._labels_of(party, kind))

    def parcel(self, client: int) -> dict[str, Tensor]:
        import torch

        party, sent = self.parties[client], dict[str, "Tensor"]()
        if self.groups is not None and client not in self.told:
            sent["groups"] = torch.tensor(self._groups_of(party), dtype=torch.uint8)
        for kind in TRAVELLING_KINDS:
            for label in self._labels_of(party, kind).values():
                if label in self.kept and client not in self.holders[label]:
                    sent[label] = self.kept[label]
        return sent

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        new: dict[str, Tensor] = {}
        for kind, rows in rows_by_kind(rnd):
            of = {i: self._labels_of(self.parties[i], kind) for i in {owner.client for owner in rows.owners}}
            labels = [of[owner.client][owner.track, owner.task] for owner in rows.owners]
            new[kind] = means_by_label(rows, labels, self.parties, self.params.weighting)
            self._keep(kind, rows, labels, new[kind])
            if self.groups is not None:
                self.told |= set(of)
        if self.groups is None:
            self._note_affinities(rnd)
            if rnd.index + 1 >= self.merge_rounds:
                self._split()
        return new

    def _groups_of(self, party: Party) -> list[int]:
        """Return the number of the group of each of a client's tasks; before the split all are one."""
        if self.groups is None:
            return [0] * len(party.tasks)
        return [number for task in party.tasks for number, group in enumerate(self.groups) if task in group]

    def _labels_of(self, party: Party, kind: str) -> dict[RowName, str]:
        return row_labels(party, self.tracks, kind, None if self.groups is None else self._groups_of(party))

    def _keep(self, kind: str, rows: Rows, labels: list[str], new: Tensor) -> None:
        """Note who holds the newest rows, and keep those that somebody who needs them does not hold."""
        width = rows.parameters
        for label in dict.fromkeys(labels):
            self.holders[label] = {owner.client for owner, own in zip(rows.owners, labels) if own == label}
            self.kept.pop(label, None)
            if self._lack(kind, label):
                self.kept[label] = new[labels.index(label), :width].clone()

    def _lack(self, kind: str, label: str) -> set[int]:
        """Return the clients that need the row of a label and do not hold it as it is now."""
        need = {party.index for party in self.parties if label in self._labels_of(party, kind).values()}
        return need - self.holders[label]

    def _note_affinities(self, rnd: Round) -> None:
        found: dict[Pair, list[float]] = {}
        for client, told in rnd.measured.items():
            if "affinity" in told:
                for pair, value in self._told_pairs(client, told, rnd.index):
                    found.setdefault(pair, []).append(value)
        for pair, values in found.items():
            total, rounds = self.affinities.get(pair, (0.0, 0))
            mean = math.fsum(values) / len(values)  # the same in any order of the clients
            self.affinities[pair] = total + mean, rounds + 1

    def _told_pairs(self, client: int, told: Mapping[str, Tensor], index: int) -> Iterator[tuple[Pair, float]]:
        party, shape = self.parties[client], (len(self.parties[client].tasks),) * 2
        if tuple(told["affinity"].shape) != shape:
            raise ValueError(
                f"round {index + 1}: client {party.id} told affinities of shape {tuple(told['affinity'].shape)}, "
                f"expected {shape}: a row for each of {', '.join(party.tasks)}"
            )
        values = told["affinity"].tolist()
        known = told["known"].tolist() if "known" in told else np.ones(shape, dtype=bool).tolist()
        for a, acting in enumerate(party.tasks):
            for r, other in enumerate(party.tasks):
                if a != r and known[a][r]:
                    yield (acting, other), values[a][r]

    def _split(self) -> None:
        """Part the tasks; whoever holds the merged rows holds the first ones of each group."""
        matrix, _ = self._affinity_matrix()
        numbers = best_partition(matrix, self.params.groups)
        self.groups = [[t for t, n in zip(self.tasks, numbers) if n == number] for number in range(max(numbers) + 1)]
        for kind in TRAVELLING_KINDS:
            if kind not in self.holders:  # decoders by task: nothing changes
                continue
            holders, row = self.holders.pop(kind), self.kept.pop(kind, None)
            labels = {label for party in self.parties for label in self._labels_of(party, kind).values()}
            for label in labels:
                self.holders[label] = set(holders)
                if row is not None and self._lack(kind, label):
                    self.kept[label] = row.clone()  # a checkpoint takes no tensor twice

    def _affinity_matrix(self) -> tuple[list[list[Fraction]], list[Pair]]:
        """Return z_{a→r} by the places of a and r, 0 for a task itself, and the pairs that nobody measured.

        These have the mean of the others. All numbers are exact, so that equal scores of partitions are equal.
        """
        means = {pair: Fraction(total) / rounds for pair, (total, rounds) in self.affinities.items()}
        usual = sum(means.values(), Fraction()) / max(len(means), 1)
        pairs = [(a, r) for a in self.tasks for r in self.tasks if a != r]
        values = {pair: means.get(pair, usual) for pair in pairs}
        matrix = [[values.get((a, r), Fraction()) for r in self.tasks] for a in self.tasks]
        return matrix, [pair for pair in pairs if pair not in means]

    # -- on the client -------------------------------------------------------------------------------------------------

    def tasks_by_track(self, local: Local) -> dict[str, tuple[str, ...]]:
        tasks = local.party.tasks
        return tasks_of_tracks(self.tracks, tasks, local.memory.get("groups", [0] * len(tasks)))

    def adopt(self, local: Workbench) -> None:
        if "groups" in local.received:
            local.memory["groups"] = local.received["groups"].tolist()
            for track in list(self.tasks_by_track(local))[1:]:
                local.vector(track).copy_(local.vector("main"))
        for kind in TRAVELLING_KINDS:
            labels = row_labels(local.party, self.tracks, kind, local.memory.get("groups"))
            for (track, task), label in labels.items():
                if label in local.received:
                    place = 0 if task is None else local.party.tasks.index(task)
                    local.rows(kind, track)[place].copy_(local.received[label])

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        import torch

        over = local.round >= min(self.merge_rounds, self.params.affinity_rounds)
        if over or len(local.party.tasks) < 2 or local.lr == 0:  # a step of no length shows nothing
            return {}
        count = math.ceil(local.batch / self.params.affinity_every)  # of the batches that were trained on
        looks = [look_ahead(local, batch, self.params.weight_decay) for batch in local.batches(max(count, 1))]
        found = np.stack(looks)  # [batches, m, m]
        known = np.isfinite(found)
        mean = np.where(known, found, 0).sum(0) / known.sum(0).clip(min=1)
        told = {"affinity": torch.tensor(mean, dtype=torch.float32)}
        if not known.any(0).all():
            told["known"] = torch.from_numpy(known.any(0))
        return told

    # -- telling and keeping -------------------------------------------------------------------------------------------

    def diagnostics(self) -> dict[str, Any]:
        affinity: dict[str, dict[str, float]] = {}
        for (acting, other), (total, rounds) in sorted(self.affinities.items()):
            affinity.setdefault(acting, {})[other] = total / rounds
        return {"affinity": affinity, "task_groups": self.groups}

    def notes(self) -> list[str]:
        if self.groups is None or len(self.tasks) == 1:
            return [] if len(self.tasks) > 1 else ["all clients have the same one task: there is nothing to split"]
        notes, unknown = [], self._affinity_matrix()[1]
        if not self.affinities:
            notes.append("nobody with two tasks measured an affinity before the split, so all tasks stay together")
        elif unknown:
            pairs = ", ".join(f"{a}→{r}" for a, r in unknown)
            notes.append(f"affinities that nobody measured, which count as the mean of the others: {pairs}")
        if len(self.groups) == 1:
            notes.append("no split has a better score than all tasks in one group: the run goes on as FedAvg")
        return notes

    def state_dict(self) -> dict[str, Any]:
        return {
            "affinities": [[*pair, *value] for pair, value in self.affinities.items()],
            "groups": self.groups,
            "told": sorted(self.told),
            "holders": {label: sorted(clients) for label, clients in self.holders.items()},
            "kept": dict(self.kept),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.affinities = {(acting, other): (total, rounds) for acting, other, total, rounds in state["affinities"]}
        self.groups = state["groups"]
        self.told = set(state["told"])
        self.holders = {label: set(clients) for label, clients in state["holders"].items()}
        self.kept = dict(state["kept"])


def look_ahead(local: Workbench, batch: Batch, weight_decay: float) -> np.ndarray:
    """Return z_{a→r} on a batch: what a step of the encoder for task a does to the loss of task r. [m, m].

    Not finite where a loss is 0 or not finite. The encoder is left as it was.
    """
    import torch

    row = local.rows("encoder")[0]
    own = row.clone()
    with torch.enable_grad():
        losses = local.losses(batch)
        # All gradients first: the parameters that the graph was made of must not change before.
        weighted = losses * local.loss_weights()
        gradients = [local.row_gradients(loss, "encoder")[0] for loss in weighted]
    after = []
    with torch.no_grad():
        for gradient in gradients:
            row.copy_(own).sub_(gradient.add(own, alpha=weight_decay), alpha=local.lr)
            after.append(local.losses(batch))
        row.copy_(own)
    then, now = torch.stack(after).cpu().numpy().astype(float), losses.detach().cpu().numpy().astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        gains: np.ndarray = (1 - then / now) / local.lr
    return gains


def tasks_of_tracks(tracks: Sequence[str], tasks: Sequence[str], groups: Sequence[int]) -> dict[str, tuple[str, ...]]:
    """Return the tasks that each model of a client has, from the numbers of their groups: the lowest is the first's."""
    numbers = sorted(set(groups))
    return {
        track: tuple(task for task, own in zip(tasks, groups, strict=True) if own == number)
        for track, number in zip(tracks, numbers)
    }


def row_labels(party: Party, tracks: Sequence[str], kind: str, groups: Sequence[int] | None) -> dict[RowName, str]:
    """Return the rows of a kind that a client exchanges, each with the name of what it is averaged to.

    That is the kind, after the split the kind with the number of the group; or for decoders of a task the task.
    """
    labels: dict[RowName, str] = {}
    numbers = sorted(set(groups)) if groups is not None else []
    by_track = tasks_of_tracks(tracks, party.tasks, groups or [0] * len(party.tasks))
    for place, (track, tasks) in enumerate(by_track.items()):
        if kind == "encoder" or party.merged:
            labels[track, None] = kind if groups is None else f"{kind}/{numbers[place]}"
        else:
            labels |= {(track, task): f"{kind}/{task}" for task in tasks}
    return labels


def best_partition(affinity: Sequence[Sequence[Fraction]], most: int) -> tuple[int, ...]:
    """Return the number of each task's group in the best partition into `most` groups or fewer, by z_{a→r}. [T]."""
    scores: dict[tuple[int, ...], Fraction] = {}

    def score(numbers: tuple[int, ...]) -> Fraction:
        total = Fraction()
        for number in set(numbers):
            group = tuple(task for task, own in enumerate(numbers) if own == number)
            if group not in scores:
                scores[group] = sum((score_in_group(affinity, task, group) for task in group), Fraction())
            total += scores[group]
        return total

    return max(partitions(len(affinity), most), key=lambda numbers: (score(numbers), -max(numbers)))


def score_in_group(affinity: Sequence[Sequence[Fraction]], task: int, group: Sequence[int]) -> Fraction:
    """Return what the others in its group do for a task; of a task alone, the mean of all affinities it has."""
    others = [other for other in group if other != task]
    if others:
        return sum((affinity[other][task] for other in others), Fraction()) / len(others)
    strangers = [other for other in range(len(affinity)) if other != task]
    both = [value for other in strangers for value in (affinity[task][other], affinity[other][task])]
    return sum(both, Fraction()) / max(len(both), 1)


def partitions(count: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to part things into groups: numbers of groups, which begin with 0 and leave out none."""
    if not count:
        yield ()
        return
    for numbers in partitions(count - 1, most):
        for number in range(min(max(numbers, default=-1) + 2, most)):
            yield (*numbers, number)


def unconnected(task_sets: Sequence[Sequence[str]]) -> list[set[str]]:
    """Return the sets of tasks that chains of clients with common tasks connect; one set if all are connected."""
    found: list[set[str]] = []
    for tasks in task_sets:
        meeting = [own for own in found if own & set(tasks)]
        found = [own for own in found if own not in meeting] + [set(tasks).union(*meeting)]
    return sorted(found, key=min)
