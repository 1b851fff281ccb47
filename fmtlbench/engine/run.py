"""From a config to a finished run folder: open data, build the federation, go on where a run stopped, score, sum up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import torch

from ..config import RunConfig
from ..configured_tasks import task_specs
from ..cost.bill import make_bill
from ..cost.energy import EnergyChoice
from ..cost.meter import RunMeter
from ..data.open import open_datasets
from ..data.views import client_data
from ..errors import FmtlbenchError
from ..exchange import Party
from ..listeners import Listener, Start
from ..models.weights import check_weights, weights_identity
from ..networks import network_of
from ..presets import default_options
from ..runs.records import ClientRecord, Cost, RoundRow, Summary, TimingRow
from ..runs.result import RunResult
from ..runs.session import session, versions
from ..runs.store import RunStore, StoreError
from .checkpoint import Checkpoint, DamagedCheckpoint, available, save_checkpoint
from .executor import Executor, SerialExecutor
from .factory import ClientFactory
from .federation import Federation
from .precision import check_amp
from .process_settings import process_settings
from .torch_compile import check_compile
from .trivial import best_constant


def execute(
    config: RunConfig,
    device: torch.device,
    out: Path,
    data_root: Path | None,
    fresh: bool,
    progress: Listener,
    energy: EnergyChoice,
    executor: Executor | None = None,
) -> RunResult:
    """Run, resume or just show: whatever the folder of this config asks for."""
    store = RunStore(out, config)
    if not fresh and (summary := store.summary()) is not None:
        return RunResult(store.folder, summary, reused=True)
    check_amp(config.train.amp, torch.device(config.device))
    check_compile(config.train.compile, torch.device(config.device))
    store.check()
    with process_settings(config.train, device), RunMeter(energy, device, progress.note) as meter:
        # Everything that can refuse does so before the run folder is touched; weights first, data may take long.
        for note in check_weights(config.model, next(iter(config.data.size.values())), network_of(config.model).maps):
            progress.note(note)
        datasets = open_datasets(config, data_root, progress)
        factory = ClientFactory(config, str(device), data_root, client_data(config, datasets))
        with Federation(factory, executor or SerialExecutor()) as federation, store.opened(fresh):
            return _run(store, federation, datasets, device, progress, meter)


def _run(
    store: RunStore,
    federation: Federation,
    datasets: dict[tuple[str, str], Any],
    device: torch.device,
    progress: Listener,
    meter: RunMeter,
) -> RunResult:
    """Go on where the run stopped, do its rounds, and sum it up."""
    config = store.config
    done = _resume(store, federation, progress)
    fingerprints = {f"{domain}/{split}": d.fingerprint for (domain, split), d in datasets.items()}
    _write_manifest(store, device, done, fingerprints, progress, federation.executor)
    meter.include(federation.executor.use)
    meter.begin(store.timing())
    rounds = config.federation.rounds
    progress.begin(Start(rounds, done, federation.steps_per_round, store.folder, config))
    told: set[str] = set()
    for index in range(done, rounds):
        with _kept_if_cut_off(store, meter, index + 1):
            row = _one_round(store, federation, index, progress, meter)
        for note in set(row.get("notes", ())) - told:
            told.add(note)
            progress.note(f"{federation.algorithm.name}, round {row['round']}: {note}")
    return _finish(store, federation, fingerprints, meter)


@contextmanager
def _kept_if_cut_off(store: RunStore, meter: RunMeter, number: int) -> Iterator[None]:
    """Keep what a round has cost that fails or is interrupted."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # a full disk, which the error on its way already tells
            store.set_aside([cast(TimingRow, meter.unfinished(number))])
        raise


def _resume(store: RunStore, federation: Federation, progress: Listener) -> int:
    """Load the newest intact checkpoint; return the number of rounds it had done (0: none, start at the beginning)."""
    damaged = []
    for done in reversed(available(store.checkpoints)):
        try:
            federation.load(Checkpoint(store.checkpoints, done))
        except DamagedCheckpoint as error:
            damaged.append(error)
            progress.note(f"damaged checkpoint: {error}")
            continue
        store.keep_rounds(done)
        progress.note(f"going on after round {done} of {federation.config.federation.rounds} in {store.folder}")
        return done
    if damaged:
        raise StoreError(f"{damaged[0]}, and no older checkpoint is intact; --fresh starts this run over")
    store.keep_rounds(0)
    return 0


def _write_manifest(
    store: RunStore,
    device: torch.device,
    done: int,
    fingerprints: dict[str, str],
    progress: Listener,
    executor: Executor,
) -> None:
    """Add this session to the manifest; refuse data that have changed since the first one."""
    manifest = store.manifest() if done else None
    now = session(str(device), done + 1)
    now["executor"] = executor.describe()
    if manifest is None:
        manifest = {
            "config_hash": store.config.hash(),
            "data": fingerprints,
            "weights": weights_identity(store.config.model),
            "sessions": [],
        }
    for name, fingerprint in manifest["data"].items():
        if fingerprints.get(name) != fingerprint:
            raise FmtlbenchError(f"{name} has changed since this run began; --fresh starts it over on the new data")
    if manifest["sessions"]:
        old = manifest["sessions"][-1]["versions"]
        changed = [f"{k} {old.get(k)} → {v}" for k, v in now["versions"].items() if old.get(k) != v]
        if changed:
            progress.note(f"resuming with other versions than before, so bits may differ: {', '.join(changed)}")
    manifest["sessions"].append(now)
    store.write_manifest(manifest)


def _one_round(store: RunStore, federation: Federation, index: int, progress: Listener, meter: RunMeter) -> RoundRow:
    """Do round `index` and write its rows and, where one is due, a checkpoint."""
    config = store.config
    last = index + 1 == config.federation.rounds
    scored = last or (index + 1) % config.evaluation.every == 0
    when = config.evaluation.when if scored else None
    trained = federation.train(index, progress.step)
    before = federation.evaluate(index) if when in ("before_aggregation", "both") else []
    row = federation.exchange(trained, describe=scored, last=last)
    if notes := federation.algorithm.notes():
        row["notes"] = notes
    if scored:
        row["scores"] = before if when == "before_aggregation" else federation.evaluate(index)
    if last:
        row["scores"] += federation.evaluate_unseen(index)
    if when == "both":
        row["scores_before"] = before
    timing = cast(TimingRow, meter.row({"round": index + 1, **federation.timing()}))
    store.append(row, timing)
    if last or (index + 1) % config.checkpoint_every == 0:
        began = time.perf_counter()
        with store.writing("save a checkpoint"):
            save_checkpoint(store.checkpoints, index + 1, federation.save)
        federation.settle(Checkpoint(store.checkpoints, index + 1))
        meter.carry("checkpoint", time.perf_counter() - began)
    progress.round_done(row, timing)
    return row


def _finish(store: RunStore, federation: Federation, fingerprints: dict[str, str], meter: RunMeter) -> RunResult:
    """Write summary.json, what the config decides, and cost.json, what it took."""
    tail = meter.tail()  # what follows is reckoning, not the run's
    config, rows = store.config, store.rounds()
    scores, before = rows[-1]["scores"], rows[-1].get("scores_before", [])
    everybody = {party.id: party for party in (*federation.parties, *federation.newcomers)}
    trivial: dict[tuple[str, str, str], float | None] = {}
    for record in scores + before:
        if record["primary"]:
            party = everybody[record["client"]]
            view = federation.data[party.index].tests[record["split"]]
            # Clients judged on the same images and labels share the constant.
            key = (
                record["dataset"],
                record["task"],
                record["split"] if record["split"] == "global" and not view.relabel else party.id,
            )
            if key not in trivial:
                spec, workers = task_specs(config, party.dataset)[record["task"]], config.data.workers
                info = config.data.dataset(party.dataset)
                trivial[key] = best_constant(spec, info, view, workers=workers)
            record["trivial"] = trivial[key]
    summary = {  # in the order of the file's keys
        "algorithm": config.algorithm.name,
        "title": federation.algorithm.title,
        "options": config.algorithm.options,
        "default_options": default_options(federation.algorithm, config.preset),
        "dataset_titles": {p.dataset: config.data.dataset(p.dataset).title for p in everybody.values()},
        "scenario": config.scenario.name,
        "scenario_version": config.scenario.version,
        "preset": config.preset,
        "data": config.data.source,
        "seed": config.seed,
        "rounds": config.federation.rounds,
        "device": config.device,
        "config_hash": config.hash(),
        "setting": config.setting().key,
        "setting_text": {
            "architecture": config.model.architecture,
            "backbone": config.model.backbone,
            "pretrained": config.model.pretrained,
            "exchange": config.federation.exchange,
            "participation": config.federation.participation,
            "statistics": config.federation.statistics,
            "size": {domain: list(size) for domain, size in config.data.size.items()},
            "scenario_parameters": dict(config.scenario.parameters),
            **({"when": when} if (when := config.evaluation.when) != "after_aggregation" else {}),
            **({"train.compile": True} if config.train.compile else {}),
        },
        "numerics": config.numerics,
        "versions": versions(),
        "data_fingerprints": fingerprints,
        "clients": _about(federation, federation.parties),
        **({"unseen": _about(federation, federation.newcomers)} if federation.newcomers else {}),
        "bytes_up": sum(row["bytes_up"] for row in rows),
        "bytes_down": sum(row["bytes_down"] for row in rows),
        "scores": scores,
        **({"scores_before": before} if before else {}),
    }
    counts = federation.counts()
    sizes = {what: {client: of[what] for client, of in counts.items()} for what in ("parameters", "flops")}
    bill = make_bill(store.timing(), store.repeated(), tail, summary["bytes_up"], summary["bytes_down"])
    written = store.write_summary(cast(Summary, summary), cast(Cost, {**bill, **sizes}))
    return RunResult(store.folder, written, reused=False)


def _about(federation: Federation, members: Sequence[Party]) -> list[ClientRecord]:
    """Return who these clients are."""
    records: list[ClientRecord] = []
    for party in members:
        record: ClientRecord = {
            "id": party.id,
            "dataset": party.dataset,
            "tasks": list(party.tasks),
            "samples": party.samples,
            "parameters": dict(federation.facts[party.index].parameters),
        }
        if rules := federation.data[party.index].train.relabel:
            record["relabel"] = dict(rules)
        records.append(record)
    return records
