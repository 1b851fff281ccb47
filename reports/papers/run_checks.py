"""The kinds of checks on stored runs: what the papers read off figures, by seed, from rounds and diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from ...base.errors import UsageError
from ..collect import RunRecord
from ..delta import Delta, primary_scores
from ..plots._curves import PlotError, evaluated
from .decide import Leaf, Need, check_share, join, need

Numbers = dict[str, float]  # what is compared → a number that is positive where the claim is right


@dataclass(frozen=True)
class EvidenceOfRuns:
    """Finished runs that may be compared: of a scenario, label and seed there is one."""

    runs: Sequence[RunRecord]

    def of(self, scenario: str, label: str) -> dict[int, RunRecord]:
        """Return a method's runs on a scenario by seed.

        Raises:
            UsageError: Two runs of one seed.
        """
        found: dict[int, RunRecord] = {}
        for run in self.runs:
            if (run.summary["scenario"], run.label) == (scenario, label):
                seed = run.summary["seed"]
                if seed in found:
                    names = f"{found[seed].name} and {run.name}"
                    raise UsageError(f"{label} on {scenario} has two runs of seed {seed}, expected one: {names}")
                found[seed] = run
        return found


@dataclass(frozen=True, kw_only=True)
class RunCheck:
    """What all checks on runs have: the method's label as tables print it, and how many comparisons must hold."""

    kind: str
    method: str
    need: Any = "all"

    def verify(self, where: str) -> None:
        """Refuse what makes no sense."""
        check_share(self.need, f"{where}.need")

    def tree(self, runs: EvidenceOfRuns, scenario: str) -> Need:
        """Return the comparisons, and how many of them the claim takes."""
        return need(_gather(runs, scenario, self.method, self.numbers), self.need)

    def numbers(self, run: RunRecord) -> Numbers:
        """Return what one run says."""
        raise NotImplementedError


def _gather(runs: EvidenceOfRuns, scenario: str, label: str, numbers: Callable[[RunRecord], Numbers]) -> list[Leaf]:
    """Return a comparison for each number that a method's runs tell, by seed; what they do not tell is said."""
    mine, found, lost = runs.of(scenario, label), {}, []
    for seed, run in mine.items():
        try:
            told = numbers(run)
        except PlotError as error:
            lost.append(str(error))
            continue
        for what, number in told.items():
            if np.isfinite(number):
                found.setdefault(what, {})[seed] = float(number)
    if not mine:
        lost.append(f"no run of {label} on {scenario}")
    return [*(Leaf(what, by_seed) for what, by_seed in found.items()), *(Leaf(reason, None) for reason in lost)]


def _clients(run: RunRecord, several: bool) -> list[str]:
    """Return the clients of one task, or of several."""
    return [client["id"] for client in run.summary["clients"] if (len(client["tasks"]) > 1) == several]


# -- hyper weights -----------------------------------------------------------------------------------------------------


def _weights(run: RunRecord, round_: int | None = None) -> tuple:
    """Return what `hyperweights_data` does, which draws too."""
    from ..plots.hyperweights import hyperweights_data

    return hyperweights_data(run, round_)


@dataclass(frozen=True, kw_only=True)
class AlphaRises(RunCheck):
    """Encoder weights of single-task clients rise over rounds (the slope)."""

    kind: Literal["alpha_rises"]

    def numbers(self, run: RunRecord) -> Numbers:
        """Return the slope of each single-task client's weight, per round."""
        alpha, _ = _weights(run)
        here = [client for client in _clients(run, several=False) if client in alpha and len(alpha) > 1]
        return {f"slope of α, {client}": np.polyfit(alpha.index, alpha[client], 1)[0] for client in here}


@dataclass(frozen=True, kw_only=True)
class AlphaPeaks(RunCheck):
    """Encoder weights of multi-task clients are higher after a share of the rounds than at the start and at the end."""

    kind: Literal["alpha_peaks"]
    at: float  # of all rounds

    def numbers(self, run: RunRecord) -> Numbers:
        """Return how far the weight at that round is above the first and the last."""
        alpha, _ = _weights(run)
        found = {}
        for client in _clients(run, several=True):
            if client in alpha:
                weights = alpha[client]
                peak = weights.iloc[int(np.abs(alpha.index.to_numpy() - self.at * run.summary["rounds"]).argmin())]
                for place, at in (("first", 0), ("last", -1)):
                    found[f"α at {self.at:g} of the rounds over the {place}, {client}"] = peak - weights.iloc[at]
        return found


@dataclass(frozen=True, kw_only=True)
class BetaLowest(RunCheck):
    """In the last round, the decoders' last layer has the lowest weight, on average over decoders."""

    kind: Literal["beta_lowest"]

    def numbers(self, run: RunRecord) -> Numbers:
        """Return how far each other layer's mean weight is above the last one's."""
        mean = _weights(run)[1].mean()
        last = mean.index[-1]
        return {f"β of {layer} over {last}": mean[layer] - mean[last] for layer in mean.index[:-1]}


@dataclass(frozen=True, kw_only=True)
class BetaVaries(RunCheck):
    """In the last round, the largest weight of decoders and layers is so many times the smallest."""

    kind: Literal["beta_varies"]
    times: float = 2.0

    def numbers(self, run: RunRecord) -> Numbers:
        """Return how far the largest is beyond that, over the tasks' means and over the layers'."""
        beta = _weights(run)[1]
        sides = {"decoders": beta.mean(axis=1), "layers": beta.mean()}
        return {
            f"β beyond {self.times:g} × smallest, {side}": m.max() - self.times * m.min() for side, m in sides.items()
        }


@dataclass(frozen=True, kw_only=True)
class BetaStays(RunCheck):
    """Decoder weights of multi-task clients are higher in the last round than in the first."""

    kind: Literal["beta_stays"]

    def numbers(self, run: RunRecord) -> Numbers:
        """Return the change of each such decoder's mean weight."""
        last = _weights(run)[1].mean(axis=1)  # first: it says so where a run keeps no rounds
        first = _weights(run, min(row["round"] for row in run.rounds()))[1].mean(axis=1)
        clients = _clients(run, several=True)
        here = [decoder for decoder in last.index if decoder.split("/")[0] in clients]
        return {f"β of the last round over the first, {decoder}": last[decoder] - first[decoder] for decoder in here}


# -- updates and groups ------------------------------------------------------------------------------------------------


def _task_of(run: RunRecord) -> dict[str, tuple[str, str]]:
    """Return (dataset, task) of every single-task client."""
    alone = _clients(run, several=False)
    return {c["id"]: (c["dataset"], c["tasks"][0]) for c in run.summary["clients"] if c["id"] in alone}


@dataclass(frozen=True, kw_only=True)
class UpdatesCluster(RunCheck):
    """In the first round that tells, encoder updates of one task are more alike than those of different tasks.

    `across`: of one task on different datasets, compared with different tasks of one dataset.
    """

    kind: Literal["updates_cluster"]
    across: bool = False

    def numbers(self, run: RunRecord) -> Numbers:
        """Return the difference of mean cosines."""
        rounds = [row["updates"]["encoder"] for row in run.rounds() if "encoder" in (row.get("updates") or {})]
        if not rounds:
            raise PlotError(f"{run.name}: no updates of encoders in metrics.jsonl")
        gram, kinds = np.array(rounds[0]["gram"], float), _task_of(run)
        length = np.sqrt(np.diag(gram))
        known = [
            (i, kinds[client]) for i, (client, _) in enumerate(rounds[0]["owners"]) if client in kinds and length[i]
        ]
        alike, apart = [], []
        for (i, (data, task)), (j, (other, their)) in combinations(known, 2):
            cosine = gram[i, j] / (length[i] * length[j])
            if task == their and (data != other) == self.across:
                alike.append(cosine)
            elif task != their and (data == other or not self.across):
                apart.append(cosine)
        if not (alike and apart):
            raise PlotError(f"{run.name}: no two clients of one task to compare with others")
        pairs = "of one task on two datasets over two tasks of one" if self.across else "of one task over two tasks"
        return {f"cosine of updates {pairs}": float(np.mean(alike) - np.mean(apart))}


@dataclass(frozen=True, kw_only=True)
class Grouped(RunCheck):
    """Clients take others into their group in at least a share of rounds: those of their own task, or named ones."""

    kind: Literal["grouped"]
    at_least: float  # share of rounds
    clients: tuple[str, ...] = ()  # dataset and task; none: each client with its own kind
    take: tuple[str, ...] = ()

    def verify(self, where: str) -> None:
        """Refuse what makes no sense."""
        super().verify(where)
        if (len(self.clients), len(self.take)) not in ((0, 0), (2, 2)):
            raise UsageError(f"{where}: clients and take name a dataset and a task each, or are both left out")

    def numbers(self, run: RunRecord) -> Numbers:
        """Return by how many percent of rounds the mean frequency is above that share."""
        from ..plots.grouping import grouping_frequency

        frequency, kinds = grouping_frequency(run), _task_of(run)
        pairs = [
            (a, b)
            for a in kinds
            for b in kinds
            if a != b
            and (kinds[a] == kinds[b] if not self.clients else (kinds[a], kinds[b]) == (self.clients, self.take))
        ]
        if not pairs:
            raise PlotError(f"{run.name}: no such clients beside each other")
        mean = float(np.nanmean([frequency.loc[a, b] for a, b in pairs]))
        who = f"{'/'.join(self.clients)} with {'/'.join(self.take)}" if self.clients else "clients of one task"
        return {f"% of rounds with {who} grouped beyond {100 * self.at_least:g}": mean - 100 * self.at_least}


@dataclass(frozen=True, kw_only=True)
class VotesAgree(RunCheck):
    """Of the clients that two layers of one client vote for, at least a share are the same, on average."""

    kind: Literal["votes_agree"]
    at_least: float

    def numbers(self, run: RunRecord) -> Numbers:
        """Return how far the mean share of common votes is above that share."""
        from ..plots._diagnostics import read_diagnostics

        shares = []
        for told in read_diagnostics(run, ("votes",)).values():
            chosen = np.array(told["votes"]["votes"]) > 0  # [layers, clients, clients]
            itself = np.eye(chosen.shape[1], dtype=bool)
            chosen = (chosen & ~itself).astype(float)  # everybody resembles itself most
            common = np.einsum("lij,mij->lmi", chosen, chosen)
            votes = chosen.sum(-1).mean(0)
            apart = ~np.eye(len(chosen), dtype=bool)
            shares.append(float((common[apart] / np.maximum(votes, 1)).mean()))
        return {f"common votes of two layers beyond {self.at_least:g}": float(np.mean(shares)) - self.at_least}


# -- scores ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ScoresBetter(RunCheck):
    """A method's scores are better than others', at the end and (kind faster) on average over the evaluated rounds."""

    kind: Literal["ends_better", "faster"]
    than: tuple[str, ...]  # labels
    columns: tuple[str, ...] = ()  # dataset/task; none: all
    split: str = "global"

    def tree(self, runs: EvidenceOfRuns, scenario: str) -> Need:
        """Return the comparisons with all others by column; `need` counts columns."""
        ours = _gather(runs, scenario, self.method, self.numbers)
        columns: dict[str, list[Leaf]] = {}
        lost = [leaf for leaf in ours if leaf.value is None]
        for label in self.than:
            theirs = {leaf.what: leaf for leaf in _gather(runs, scenario, label, self.numbers)}
            lost += [leaf for leaf in theirs.values() if leaf.value is None]
            for leaf in ours:
                if leaf.value is not None and leaf.what in theirs:
                    value = join(lambda a, b: a - b, [leaf.value, theirs[leaf.what].value])
                    column = leaf.what.split(",")[0]
                    columns.setdefault(column, []).append(Leaf(f"{self.method} over {label} ({leaf.what})", value))
        tree = need([need(leaves) for leaves in columns.values()], self.need)
        return need([tree, *lost])

    def numbers(self, run: RunRecord) -> Numbers:
        """Return a run's scores by column, higher being better."""
        found = {f"{column}, at the end": value for column, value in self._scores(run.summary["scores"]).items()}
        if self.kind == "faster":
            rounds = [self._scores(records) for records in evaluated(run, self.split).values()]
            found |= {f"{c}, mean over rounds": np.mean([of[c] for of in rounds]) for c in rounds[-1]}
        return found

    def _scores(self, records: Iterable[Mapping[str, Any]]) -> Numbers:
        scores, up = primary_scores(records, self.split)
        units = Delta().units(scores)
        found = {f"{u.place}/{u.task}": v if up[u.task, u.metric] else -v for u, v in units.items()}
        return {column: value for column, value in found.items() if not self.columns or column in self.columns}


RUN_KINDS: dict[str, type[RunCheck]] = {
    "alpha_rises": AlphaRises,
    "alpha_peaks": AlphaPeaks,
    "beta_lowest": BetaLowest,
    "beta_varies": BetaVaries,
    "beta_stays": BetaStays,
    "updates_cluster": UpdatesCluster,
    "grouped": Grouped,
    "votes_agree": VotesAgree,
    **dict.fromkeys(("ends_better", "faster"), ScoresBetter),
}
