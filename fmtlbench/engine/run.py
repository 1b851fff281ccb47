"""From a config to a finished run folder: open data, build the federation, go on where a run stopped, score, sum up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from ..base.errors import FmtlbenchError
from ..config.keep import LAST
from ..config.request import SAME_CODE
from ..config.run_config import RunConfig
from ..cost.bill import make_bill
from ..cost.energy import EnergyChoice
from ..cost.meter import RunMeter
from ..data.open import open_datasets
from ..data.views import ClientData, client_data
from ..exchange import Party
from ..listeners import Listener, Start
from ..networks.backbones import check_sizes
from ..networks.network import network_of
from ..networks.weights import check_weights, weights_identity
from ..runs.configured_code import code_of
from ..runs.kept import available
from ..runs.recorded_code import summarize_code
from ..runs.records import ClientRecord, Cost, Manifest, RoundRow, Score, Session, Summary, TimingRow
from ..runs.result import RunResult
from ..runs.session import session, versions
from ..runs.store import RunStore, StoreError
from ..runs.summary import describe_client, describe_setting, describe_weighting
from ..runs.sums_file import ScoreSums, write_sums
from .admit import admit
from .checkpoint import Checkpoint, DamagedCheckpoint, save_checkpoint
from .executor import Executor, SerialExecutor
from .factory import ClientFactory
from .federation import Federation
from .kept_networks import NetworksWriter
from .loss_weights import clients_without_choice
from .method import Hooks
from .precision import check_amp
from .process_settings import process_settings
from .torch_compile import check_compile
from .trivial import add_constants


@dataclass(frozen=True)
class Circumstances:
    """Where and how a run is done; none of it is in its config.

    Args:
        out: The folder that runs are kept in.
        device: Of the server's steps.
        energy: Whether and how it is measured.
        data_root: Where real datasets lie.
        fresh: Throw away what an earlier run left.
        reuse: Whether an earlier run by other code will do: `same-code` or `any`.
        keep: What stays of the networks in the end (runs/kept.py).
        before_summary: What else is done with the trained networks before the run counts as finished: called with the
            folder, the config, the data of all clients and the method.
        default_options: Of the method under the config's preset, as they are when the run is asked for.
        command: Asks for the same run again.
    """

    out: Path
    device: torch.device
    energy: EnergyChoice
    data_root: Path | None = None
    fresh: bool = False
    reuse: str = SAME_CODE
    keep: str = LAST
    before_summary: Callable[[Path, RunConfig, list[ClientData], Hooks], object] | None = None
    default_options: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


def execute(config: RunConfig, how: Circumstances, progress: Listener, executor: Executor | None = None) -> RunResult:
    """Run, resume or just show: whatever the folder of this config asks for."""
    admit(config)
    device, store = how.device, RunStore(how.out, config, code_of(config), how.reuse)
    if not how.fresh and (summary := store.summary()) is not None:
        if store.chosen.is_by_other:
            progress.note(store.chosen.note)
        return RunResult(store.folder, summary, reused=True)
    if store.chosen.note:
        progress.note(store.chosen.note)
    check_amp(config.train.amp, torch.device(config.device))
    check_compile(config.train.compile, torch.device(config.device))
    store.check()
    with process_settings(config.train, device), RunMeter(how.energy, device, progress.note) as meter:
        # Everything that can refuse does so before the run folder is touched; weights first, data may take long.
        sizes = [config.data.size[domain] for domain in sorted(config.scenario.domains)]
        maps = network_of(config.model).maps
        check_sizes(config.model, sizes, maps)
        for note in check_weights(config.model, sizes[0], maps):
            progress.note(note)
        datasets = open_datasets(config, how.data_root, progress)
        factory = ClientFactory(config, str(device), how.data_root, client_data(config, datasets))
        with Federation(factory, executor or SerialExecutor()) as federation, store.opened(how.fresh):
            return _run(store, federation, datasets, how, progress, meter)


def _run(
    store: RunStore,
    federation: Federation,
    datasets: dict[tuple[str, str], Any],
    how: Circumstances,
    progress: Listener,
    meter: RunMeter,
) -> RunResult:
    """Go on where the run stopped, do its rounds, and sum it up."""
    config = store.config
    done = _resume(store, federation, progress)
    fingerprints = {f"{domain}/{split}": d.fingerprint for (domain, split), d in datasets.items()}
    now = session(str(how.device), done + 1, store.code, how.command)
    now["executor"] = federation.executor.describe()
    manifest = _write_manifest(store, now, fingerprints, progress)
    meter.include(federation.executor.use)
    meter.begin(store.timing())
    rounds = config.federation.rounds
    if untouched := clients_without_choice(config, federation.parties):
        names = ", ".join(party.id for party in untouched)
        progress.note(f"train.weighting={config.train.weighting}: one task per step, so nothing to weigh for {names}")
    progress.begin(Start(rounds, done, federation.steps_per_round, store.folder, config))
    told: set[str] = set()
    for index in range(done, rounds):
        with _kept_if_cut_off(store, meter, index + 1):
            row = _one_round(store, federation, index, progress, meter)
        for note in set(row.get("notes", ())) - told:
            told.add(note)
            progress.note(f"{federation.algorithm.name}, round {row['round']}: {note}")
    return _finish(store, federation, manifest, fingerprints, how, meter)


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
            if done == federation.config.federation.rounds and not store.files.has_networks():
                raise DamagedCheckpoint(f"{store.files.networks} lacks networks of the last round")
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


def _write_manifest(store: RunStore, now: Session, fingerprints: dict[str, str], progress: Listener) -> Manifest:
    """Add this session to the manifest and return that; refuse data that have changed since the first session."""
    manifest = store.manifest() if now["from_round"] > 1 else None
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
    return manifest


def _one_round(store: RunStore, federation: Federation, index: int, progress: Listener, meter: RunMeter) -> RoundRow:
    """Do round `index` and write its rows and, where one is due, a checkpoint.

    The last one first leaves its networks and what its scores were computed from: it counts as done only with them.
    """
    config = store.config
    last = index + 1 == config.federation.rounds
    scored = last or (index + 1) % config.evaluation.every == 0
    when = config.evaluation.when if scored else None
    trained = federation.train(index, progress.step, describe=scored)
    sums: ScoreSums | None = {} if last else None
    networks = NetworksWriter(store.files, partial(store.writing, "keep the networks")) if last else None
    kept = networks.add if networks else None
    before: list[Score] = []
    if when == "before_aggregation":
        before = federation.evaluate(index, kept, sums)
    elif when == "both":
        before = federation.evaluate(index)
    row = federation.exchange(trained, describe=scored, last=last)
    if notes := federation.algorithm.notes():
        row["notes"] = notes
    if scored:
        row["scores"] = before if when == "before_aggregation" else federation.evaluate(index, kept, sums)
    if last:
        row["scores"] += federation.evaluate_unseen(index, kept, sums)
    if networks is not None:
        networks.close()
    if sums is not None:
        with store.writing("keep what the scores were computed from"):
            write_sums(store.files.sums, sums)
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


def _finish(
    store: RunStore,
    federation: Federation,
    manifest: Manifest,
    fingerprints: dict[str, str],
    how: Circumstances,
    meter: RunMeter,
) -> RunResult:
    """Write cost.json and, last, summary.json; then what nobody needs any more is removed."""
    tail = meter.tail()  # what follows is reckoning, not the run's
    if how.before_summary is not None:
        how.before_summary(store.folder, store.config, federation.data, federation.algorithm)
    config, rows = store.config, store.rounds()
    scores, before = rows[-1]["scores"], rows[-1].get("scores_before", [])
    everybody = {party.id: party for party in (*federation.parties, *federation.newcomers)}
    add_constants(scores + before, config, everybody, federation.data)
    summary = {  # in the order of the file's keys
        "algorithm": config.algorithm.name,
        "title": federation.algorithm.title,
        "options": config.algorithm.options,
        "default_options": dict(how.default_options),
        **({"weighting": weighting} if (weighting := describe_weighting(config)) else {}),
        "dataset_titles": {p.dataset: config.data.dataset(p.dataset).title for p in everybody.values()},
        **describe_setting(config),
        "versions": versions(),
        "code": summarize_code(manifest["sessions"]),
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
    store.remove_surplus(how.keep)
    return RunResult(store.folder, written, reused=False)


def _about(federation: Federation, members: Sequence[Party]) -> list[ClientRecord]:
    """Return who these clients are."""
    rules = [federation.data[party.index].train.relabel for party in members]
    parameters = [dict(federation.facts[party.index].parameters) for party in members]
    return [
        describe_client(federation.config, party, own, parameters=counts)
        for party, own, counts in zip(members, rules, parameters)
    ]
