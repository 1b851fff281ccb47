"""Score predictions that were made elsewhere, as the runs of a setting are scored, into a folder like a run's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from ..algorithms import ALGORITHMS
from ..base.errors import FmtlbenchError, UsageError, unknown
from ..base.names import check_name
from ..config.run_config import AlgorithmConfig, RunConfig
from ..config.setting import digest
from ..data.batches import test_batches
from ..data.configured_tasks import task_specs
from ..data.datasets import DatasetInfo, list_by_id
from ..data.meters import make_meter
from ..data.open import open_datasets
from ..data.views import ClientData, View, client_data, parties
from ..engine.evaluate import read_sums, score_records
from ..engine.trivial import best_constant
from ..exchange import Party
from ..listeners import Listener
from ..runs.external import Listing, write_external
from ..runs.records import ClientRecord, Score, Summary
from ..runs.session import versions
from ..runs.summary import describe_client, describe_setting
from ..runs.sums_file import ScoreSums
from ..tasks import TASKS, TaskSpec
from .scoring import Findings, LabelSource, Pairs, ReaderLabels, score_pairs
from .stored_run import choose_clients, place_in_frame

CPU = torch.device("cpu")


@dataclass(frozen=True)
class ViewLabels(LabelSource):
    """The labels of a client's test images as its scores are computed from them."""

    task: TaskSpec
    view: View

    @cached_property
    def places(self) -> dict[str, int]:
        """Image id → its number in the dataset."""
        return {self.view.dataset.image_id(index): index for index in self.view.indices.tolist()}

    def place(self, image: str) -> Path:
        """Return a name for the label in messages."""
        return Path(f"{self.view.dataset.info.name} {image}")

    def target(self, image: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a label in the frame of the networks' images."""
        one = View(self.view.dataset, np.array([self.places[image]]), self.view.relabel)
        return next(iter(test_batches(one, (self.task.name,), 1, CPU)))[self.task.name][0].numpy()

    def fit(self, image: str, prediction: np.ndarray) -> np.ndarray:
        """Return a prediction of the image's own size in that frame."""
        return place_in_frame(self.view.dataset, self.places[image], prediction)


@dataclass
class ExternalResult:
    """The folder that was written, its summary, and what was odd about the predictions."""

    folder: Path
    summary: Summary
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Origin:
    """What is known of the predictions: their folder, the method's name in tables, who made them."""

    folder: Path
    name: str
    by: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "method", "--name")
        if self.name in ALGORITHMS:
            raise UsageError(f"--name {self.name}: a method of the zoo has this name; choose another")
        if self.by is not None:
            check_name(self.by, "person or group", "--by")
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder}: no such folder, expected predictions in it")


Judge = Callable[[Findings], None]  # refuses what cannot be scored, or tells what is odd


class ExternalScores:
    """Collects the scores, files and doubts of one set of predictions."""

    def __init__(self, origin: Origin, judge: Judge) -> None:
        self.origin, self.judge = origin, judge
        self.scores: list[Score] = []
        self.sums: ScoreSums = {}
        self.files: list[Path] = []
        self.doubts: list[str] = []
        self.notes: list[str] = []
        self.metrics: dict[str, dict[str, Any]] = {}

    def pair(self, task: TaskSpec, place: Path, labels: Any, ids: list[str]) -> Pairs:
        """Pair the predictions in a folder of one task with labels; refuse missing and superfluous ones."""
        if not place.is_dir():
            raise UsageError(f"{place}: no such folder, expected the predictions of {task.name}")
        pairs = Pairs(task, list_by_id(place, task.kind.suffixes), labels, set(ids), ids)
        self.judge(Findings(pairs.problems()))
        self.files += pairs.predictions.values()
        return pairs

    def score(self, pairs: Pairs, party: Party, split: str, meter: Any, batch_size: int = 1) -> list[Score]:
        """Add the scores of a client's task."""
        found = score_pairs(meter, pairs, batch_size=batch_size)
        where = f"{party.id}, {pairs.task.name}"
        try:
            self.judge(found)
        except FmtlbenchError as error:
            raise type(error)(f"{where}: {error}") from None
        self.doubts += [f"{where}: {doubt}" for doubt in found.doubts]
        self.notes += [f"{where}: {note}" for note in found.notes]
        records = score_records(party, split, pairs.task.name, meter)
        self.metrics[pairs.task.name] = {"metric": meter.name, "options": meter.options}
        self.scores += records
        self.sums[party.id, split, pairs.task.name] = read_sums(meter, party, pairs.task.name)
        return records

    def write(
        self, out: Path, about: dict[str, Any], clients: list[ClientRecord], config: str | None
    ) -> ExternalResult:
        """Write the folder; `about` are the keys of the summary that say which setting it is."""
        listing = Listing.of(self.origin.folder, self.files)
        summary = {
            "algorithm": self.origin.name,
            "title": self.origin.name,
            "options": {},
            "default_options": {},
            **about,
            "versions": versions(),
            "clients": clients,
            "scores": self.scores,
            "external": {
                "by": self.origin.by,
                "scored": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "folder": str(self.origin.folder).encode("utf-8", errors="replace").decode(),
                "files": len(listing.hashes),
                "sha256": listing.digest,
                "metrics": self.metrics,
                "doubts": self.doubts,
            },
        }
        folder = write_external(out, cast(Summary, summary), listing, self.sums, config)
        return ExternalResult(folder, cast(Summary, summary), self.notes)


def score_in_setting(
    origin: Origin,
    config: RunConfig,
    out: Path,
    judge: Judge,
    progress: Listener,
    clients: Sequence[str] | None = None,
    split: str = "global",
    data_root: Path | None = None,
) -> ExternalResult:
    """Score <client>/<task>/<image id> files against the clients' test images, as the setting's runs are scored.

    Args:
        origin: the predictions.
        config: of any run of the setting; its method counts for nothing.
        out: the folder of the runs.
        judge: is given what was found about every client's task, and may refuse it.
        progress: is told what takes long.
        clients: those to score; by default all that take part.
        split: of the scenario's evaluation.
        data_root: where real datasets lie.
    """
    config = dataclasses.replace(config, algorithm=AlgorithmConfig(origin.name, {}))
    datasets: dict[tuple[str, str], Any] = open_datasets(config, data_root, progress)
    data = client_data(config, datasets)
    members = choose_clients(parties(config, data), clients, "--client")
    found = ExternalScores(origin, judge)
    jobs = [
        (party, pairs)
        for party in members
        for pairs in _pair_client(found, config, party, _view(data[party.index], config, split))
    ]
    for number, (party, pairs) in enumerate(jobs, 1):
        view, info = data[party.index].tests[split], config.data.dataset(party.dataset)
        meter = make_meter(pairs.task, info, view.dataset.size)
        if meter.takes_raw:
            raise UsageError(f"{meter.label} of {pairs.task.name} scores a network's raw outputs, not files")
        records = found.score(pairs, party, split, meter, config.evaluation.batch_size)
        records[0]["trivial"] = best_constant(pairs.task, info, view, workers=config.data.workers)
        progress.preparing(f"scores of {origin.name}", number, len(jobs))
    about = {
        "dataset_titles": {party.dataset: config.data.dataset(party.dataset).title for party in members},
        **describe_setting(config),
        "data_fingerprints": {f"{domain}/{part}": d.fingerprint for (domain, part), d in datasets.items()},
    }
    judged = [describe_client(config, party, data[party.index].train.relabel) for party in members]
    return found.write(out, about, judged, config.dump())


def _view(data: ClientData, config: RunConfig, split: str) -> View:
    if split not in data.tests:
        raise unknown("split", split, data.tests, f"--split: {config.scenario.name}")
    return data.tests[split]


def _pair_client(found: ExternalScores, config: RunConfig, party: Party, view: View) -> list[Pairs]:
    specs = task_specs(config, party.dataset)
    place = found.origin.folder / party.id
    ids = [view.dataset.image_id(index) for index in view.indices.tolist()]
    return [found.pair(specs[task], place / task, ViewLabels(specs[task], view), ids) for task in party.tasks]


def score_on_dataset(
    origin: Origin, info: DatasetInfo, reader: Any, out: Path, judge: Judge, tasks: Iterable[str] | None = None
) -> ExternalResult:
    """Score <task>/<image id> files against all images of a split, at their own sizes.

    Args:
        origin: the predictions.
        info: the dataset.
        reader: its opened split.
        out: the folder of the runs.
        judge: is given what was found about every task, and may refuse it.
        tasks: those to score; by default those that the folder has.
    """
    chosen = [task for task in info.tasks if (origin.folder / task).is_dir()] if tasks is None else list(tasks)
    for task in chosen:
        if task not in info.tasks:
            raise unknown("task", task, info.tasks, f"--tasks: {info.name}")
    if not chosen:
        raise UsageError(f"{origin.folder}: no folder of a task of {info.name} in it; it has {', '.join(info.tasks)}")
    found = ExternalScores(origin, judge)
    party = Party(0, info.domain, info.domain, tuple(chosen), len(reader), False)
    size = reader.sample(0, (chosen[0],))[chosen[0]].shape[:2]
    pairs = [
        found.pair(TASKS[task], origin.folder / task, ReaderLabels(TASKS[task], reader), list(reader.ids))
        for task in chosen
    ]
    for each in pairs:
        found.score(each, party, "global", make_meter(each.task, info, size))
    identity = {"dataset": info.name, "split": reader.split, "data": reader.lineage}
    about = {
        "dataset_titles": {info.domain: info.title},
        "scenario": f"{info.name}-{reader.split}",
        "scenario_version": 1,
        "preset": "external",
        "data": info.source,
        "seed": 0,
        "rounds": 0,
        "device": "cpu",
        "config_hash": digest({**identity, "method": origin.name}),
        "setting": digest(identity),
        "setting_text": identity,
        "data_fingerprints": {f"{info.domain}/{reader.split}": reader.lineage},
    }
    clients: list[ClientRecord] = [{"id": info.domain, "dataset": info.domain, "tasks": chosen}]
    return found.write(out, about, clients, None)
