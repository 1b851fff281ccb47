"""What a finished run keeps of its networks, and that its one end loses nothing whenever it is killed."""

from __future__ import annotations

import errno
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from interrupt import AfterRound, Stopped, always
from kit import DUO, TINY
from resuming import NUMBERS, whole_with_copies
from safetensors.torch import load_file

import fmtlbench
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.stored import DamagedRun
from fmtlbench.cli import main
from fmtlbench.config.keep import choose_keep
from fmtlbench.engine import kept_networks
from fmtlbench.engine import run as engine_run
from fmtlbench.engine.kept_networks import KeptNetworks, NetworksWriter
from fmtlbench.inference import predict
from fmtlbench.inference.stored_run import StoredRun
from fmtlbench.listeners import Listener
from fmtlbench.runs import store as store_module
from fmtlbench.runs.folder import RunFolder
from fmtlbench.runs.kept import available, kept_in, size_on_disk
from fmtlbench.runs.lock import StoreError
from fmtlbench.runs.store import RunStore

CPU = torch.device("cpu")
UNSEEN = DUO.replace("evaluation: [global, personal]", "evaluation: [global, unseen]").replace(
    "clients:\n", "clients:\n  - {dataset: nyud, tasks: [depth], id: late, unseen: true}\n"
)


def run_of(folder: Path, **given):
    (folder / "duo.yml").write_text(DUO)
    arguments = {"rounds": 2, "out": folder / "runs", "device": "cpu", "algo": "fedavg", **TINY}
    return fmtlbench.run(scenario=folder / "duo.yml", **{**arguments, **given})


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """(where a copy of a run with predictions lies for each moment, that run, which nobody killed)."""
    folder = tmp_path_factory.mktemp("cut")
    return folder, whole_with_copies(partial(run_of, folder, save_predictions=True), folder, MOMENTS)


@pytest.fixture(scope="module")
def whole(cut):
    return cut[1]


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(whole.folder, tmp_path / "run"))


def contents(folder: Path) -> dict[str, bytes]:
    """What the config decides of a run's files."""
    files = [folder / name for name in NUMBERS]
    files += [file for top in ("networks", "predictions*") for place in folder.glob(top) for file in place.rglob("*.*")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def depth_error(folder: Path, client: str = "nyud-multi", split: str = "global") -> float:
    """The RMSE of a run's depth, from its networks as they are kept."""
    run = StoredRun(folder)
    run.open(None, CPU, Listener())
    (party,) = [party for party in run.judged(split) if party.id == client]
    view, squares, count = run.view(party, split), 0.0, 0
    for prediction in run.predictions(party, split, ["depth"], range(len(view))):
        truth = view.dataset[prediction.index]["depth"]
        squares += ((prediction.values["depth"] - truth)[truth > 0].astype(float) ** 2).sum()
        count += (truth > 0).sum()
    return float(np.sqrt(squares / count))


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_what_is_asked_is_what_stays_and_the_numbers_are_the_same(whole, cut_at, tmp_path):
    folder = cut_at("whole")
    assert kept_in(RunFolder(folder)) == "last" and not RunFolder(folder).checkpoints.exists()
    assert run_of(tmp_path, keep="none").reused
    assert contents(folder) == contents(whole.folder)  # a finished run is shown as it is


def test_a_run_without_networks_has_its_predictions_and_cannot_make_them_later(whole, tmp_path):
    result = run_of(tmp_path, keep="none", save_predictions=True)
    run = RunFolder(result.folder)
    assert kept_in(run) == "none" and not run.networks.exists() and not run.checkpoints.exists()
    assert not list(result.folder.glob(".*removed")) and not list(result.folder.rglob("*.tmp"))
    assert run_of(tmp_path, keep="none", save_predictions=True).reused  # nothing is missing
    made = {name: data for name, data in contents(whole.folder).items() if not name.startswith("networks")}
    assert contents(result.folder) == made
    shutil.rmtree(result.folder / "predictions")
    with pytest.raises(FmtlbenchError, match="keeps no networks"):
        run_of(tmp_path, keep="none", save_predictions=True)


def test_kept_networks_take_no_more_than_their_numbers(whole):
    values = sum(sum(client["parameters"].values()) for client in whole.summary["clients"])
    assert size_on_disk(whole.folder / "networks") < 0.8 * 4 * values  # FedAvg has made encoders equal


@pytest.mark.parametrize("given", [{"algo": "fedavg"}, {"algo": "fedbabu"}, {"evaluation.when": "before_aggregation"}])
def test_the_networks_are_those_that_were_scored(tiny_run, given):
    """Also fine-tuned ones, and those of before the server's step."""
    result = tiny_run(**{"algo": "fedavg", "rounds": 1, **given})
    assert depth_error(result.folder) == pytest.approx(result.value("nyud-multi", "depth"), rel=1e-6)


def test_an_unseen_clients_network_is_kept_and_can_be_asked(tmp_path, tiny_run):
    scenario = tmp_path / "late.yml"
    scenario.write_text(UNSEEN)
    result = tiny_run("fedavg", scenario=scenario, rounds=1, **{"evaluation.unseen_epochs": 1})
    assert list(fmtlbench.load(result.folder).clients) == ["pascal-human_parts", "nyud-multi", "late"]
    scored = result.value("late", "depth", "unseen")
    assert depth_error(result.folder, "late", "unseen") == pytest.approx(scored, rel=1e-6)


def test_a_run_without_networks_says_what_to_do(tmp_path, copy):
    shutil.rmtree(copy / "networks")
    with pytest.raises(FmtlbenchError, match=r"keeps no networks \(run --keep none\); .* --keep last --fresh"):
        StoredRun(copy)
    (copy / "weights.safetensors").write_bytes(b"")
    with pytest.raises(FmtlbenchError, match=r"weights\.safetensors was written by an earlier version .* --fresh"):
        fmtlbench.load(copy)
    assert kept_in(RunFolder(copy)) == "none"
    (copy / "summary.json").unlink()
    with pytest.raises(FmtlbenchError, match="unfinished, and without a checkpoint there is no network to ask"):
        StoredRun(copy)


def test_a_finished_run_of_before_that_has_a_checkpoint_can_still_be_asked(whole, cut_at):
    folder = cut_at("after the summary")
    shutil.rmtree(folder / "networks")
    assert kept_in(RunFolder(folder)) == "last" and depth_error(folder) == pytest.approx(depth_error(whole.folder))


# -- predictions -------------------------------------------------------------------------------------------------------


def test_predictions_of_a_finished_run_are_those_of_the_run_that_was_asked_for_them(whole, cut_at, tmp_path):
    folder = cut_at("whole")
    for made in folder.glob("predictions*"):
        shutil.rmtree(made)
    late = run_of(tmp_path, save_predictions=True)
    assert late.reused and contents(late.folder) == contents(whole.folder)


def test_a_methods_file_that_changes_during_the_run_does_not_stop_its_end(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from fmtlbench.algorithms import ALGORITHMS, Algorithm\n\n\n"
        '@ALGORITHMS.register("mine")\nclass Mine(Algorithm):\n    title, paper = "Mine", "none"\n'
    )

    class Edit(Listener):
        def round_done(self, row, timing):
            file.write_text("no Python any more")

    result = run_of(tmp_path, algo=str(file), rounds=1, save_predictions=True, progress=Edit())
    assert (result.folder / "predictions").is_dir() and result.summary["title"] == "Mine"


# -- words -------------------------------------------------------------------------------------------------------------


def test_the_users_config_file_may_say_what_is_kept(tmp_path, monkeypatch):
    file = tmp_path / "config.yml"
    monkeypatch.setenv("FMTLBENCH_CONFIG", str(file))
    file.write_text("keep: none\n")
    assert choose_keep(None) == "none" and choose_keep("last") == "last"
    assert kept_in(RunFolder(run_of(tmp_path, rounds=1).folder)) == "none"
    file.write_text("keep: lost\n")
    with pytest.raises(UsageError, match=r"config\.yml: keep: no way to keep networks 'lost'; did you mean 'last'"):
        choose_keep(None)
    file.write_text("{}\n")
    assert choose_keep(None) == "last"


@pytest.mark.parametrize("word", ["weights", "exact"])
def test_a_word_of_earlier_versions_is_refused_with_todays(tmp_path, monkeypatch, capsys, word):
    said = f"'{word}' was a way to keep networks in earlier versions; did you mean 'last'"
    file = tmp_path / "config.yml"
    file.write_text(f"keep: {word}\n")
    with monkeypatch.context() as patch:
        patch.setenv("FMTLBENCH_CONFIG", str(file))
        with pytest.raises(UsageError, match=rf"config\.yml: keep: {said}"):
            choose_keep(None)
    with pytest.raises(UsageError, match=f"--keep: {said}"):
        run_of(tmp_path, keep=word)
    assert main(["run", "--algo", "fedavg", "--scenario", "st_mt_1", "--keep", word]) == 2
    assert f"argument --keep: {said}" in capsys.readouterr().err
    (tmp_path / "asked.yml").write_text(f"algo: fedavg\nscenario: st_mt_1\nkeep: {word}\n")
    assert main(["run", "--config", str(tmp_path / "asked.yml")]) == 2
    assert f"asked.yml:3: keep: {said}" in capsys.readouterr().err


# -- kills -------------------------------------------------------------------------------------------------------------


def is_named(name):
    return lambda _, file, *more: Path(file).name == name


# Between any two steps of the end of a run.
MOMENTS = {
    "before the networks": (engine_run, "NetworksWriter", always),
    "a network": (kept_networks, "save_file", lambda _, tensors, file: file.stem == "nyud-multi"),
    "the networks' index": (NetworksWriter, "close", always),
    "before the sums": (engine_run, "write_sums", always),
    "before the last row": (RunStore, "append", lambda _, store, row, timing: row["round"] == 2),
    "before the last checkpoint": (engine_run, "save_checkpoint", lambda _, folder, done, write: done == 2),
    "before the predictions": (predict, "predict_run", always),
    "between two splits": (predict, "save_predictions", lambda _, run, folder, split: split == "personal"),
    "after the predictions": (engine_run, "add_constants", always),
    "before the bill": (RunStore, "write_summary", always),
    "before the summary": (store_module, "write_json", is_named("summary.json")),
    "after the summary": (RunStore, "remove_surplus", always),
    "removing the checkpoints": (store_module, "remove_folder", is_named("checkpoint")),
}
FINISHED = ("after the summary", "removing the checkpoints")


@pytest.fixture
def cut_at(cut, tmp_path):
    """`cut_at(moment)` lays that copy where `run_of(tmp_path)` looks for it, and returns the run's folder."""

    def copy(moment):
        shutil.copytree(cut[0] / moment, tmp_path / "runs")
        (folder,) = (tmp_path / "runs" / "duo" / "fedavg").iterdir()
        return folder

    return copy


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_is_cut_at_its_end_comes_to_the_same_bytes(whole, cut_at, tmp_path, moment):
    finished = moment in FINISHED
    folder = cut_at(moment)
    assert (RunFolder(folder).summary() is not None) == finished
    if finished:
        assert contents(folder) == contents(whole.folder)
    result = run_of(tmp_path, save_predictions=True)
    assert result.reused == finished and contents(folder) == contents(whole.folder)
    assert finished or not (folder / "checkpoint").exists()


def test_a_cut_right_before_the_summary_trains_nothing_again(whole, tmp_path):
    run = partial(run_of, tmp_path, keep="none", save_predictions=True)
    whole_with_copies(run, tmp_path, {"runs": MOMENTS["before the summary"]})
    (folder,) = (tmp_path / "runs" / "duo" / "fedavg").iterdir()
    rounds = []

    class Rounds(Listener):
        def round_done(self, row, timing):
            rounds.append(row["round"])

    # What is asked may have changed meanwhile: the networks are there until the summary is.
    result = run_of(tmp_path, keep="last", save_predictions=True, progress=Rounds())
    assert rounds == [] and not result.reused and contents(folder) == contents(whole.folder)


def test_a_last_round_whose_networks_are_lost_is_done_again(whole, cut_at, tmp_path):
    folder = cut_at("before the summary")
    (folder / "networks" / "index.json").unlink()
    run_of(tmp_path, save_predictions=True)
    assert contents(folder) == contents(whole.folder)


def test_a_full_disk_is_one_line_and_the_run_goes_on(cut_at, tmp_path, monkeypatch):
    cut_at("before the networks")

    def full(tensors, file):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kept_networks, "save_file", full)
        with pytest.raises(StoreError, match=r"could not keep the networks .*: No space left on device"):
            run_of(tmp_path)
    result = run_of(tmp_path)
    assert not result.reused and kept_in(RunFolder(result.folder)) == "last"


def test_a_run_that_starts_over_forgets_its_networks(cut_at, tmp_path):
    folder = cut_at("whole")
    (folder / "weights.safetensors").write_bytes(b"of an earlier version")
    with pytest.raises(Stopped):
        run_of(tmp_path, fresh=True, progress=AfterRound(1))
    assert not (folder / "networks").exists() and not (folder / "weights.safetensors").exists()
    assert available(folder / "checkpoint") == [1]


# -- the files ---------------------------------------------------------------------------------------------------------


def write_two(folder: Path) -> tuple[RunFolder, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    network = {
        "encoder.stem.weight": torch.randn(8, 3, 7, 7, generator=generator).to(memory_format=torch.channels_last),
        "encoder.stem.bias": torch.zeros(8),
        "norm.num_batches_tracked": torch.tensor(7),
        "mask": torch.tensor([True, False]),
        "half": torch.randn(3, 5, generator=generator).to(torch.bfloat16),
        "empty": torch.zeros(0, 3),
    }
    run = RunFolder(folder)
    writer = NetworksWriter(run)
    writer.add("a", network)
    writer.add("b", {**network, "encoder.stem.bias": torch.ones(8)})
    assert not run.has_networks()
    writer.close()
    return run, network


def test_each_client_has_a_plain_file_and_equal_tensors_are_there_once(tmp_path):
    run, network = write_two(tmp_path)
    first, second = (load_file(run.networks / f"{client}.safetensors") for client in "ab")
    assert first.keys() == network.keys() and second.keys() == {"encoder.stem.bias"}
    read = KeptNetworks(run)
    assert run.has_networks() and read.clients == ["a", "b"]
    for name, tensor in network.items():
        found = read.state("a")[name]
        assert torch.equal(found, tensor) and found.dtype == tensor.dtype and torch.equal(first[name], tensor)
    assert read.state("b").keys() == network.keys()
    assert torch.equal(read.state("b")["encoder.stem.weight"], network["encoder.stem.weight"])
    assert torch.equal(read.state("b")["encoder.stem.bias"], torch.ones(8))
    before = {file.name: file.read_bytes() for file in run.networks.iterdir()}
    write_two(tmp_path)
    assert {file.name: file.read_bytes() for file in run.networks.iterdir()} == before


def test_damage_is_named(tmp_path):
    run, _ = write_two(tmp_path)
    index, file = run.networks_index, run.networks / "a.safetensors"
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    for client in "ab":  # it has tensors of both
        with pytest.raises(DamagedRun, match=r"networks.a\.safetensors is not as it was written"):
            KeptNetworks(run).state(client)
    file.unlink()
    with pytest.raises(DamagedRun, match=r"networks.a\.safetensors cannot be read"):
        KeptNetworks(run).state("a")
    text = index.read_text()
    for damaged, said in (
        (text[:-20], "cannot be read"),
        ("", "is empty"),
        (json.dumps({**json.loads(text), "clients": 3}), "clients"),
        (json.dumps({**json.loads(text), "format": 99}), "newer than this version"),
    ):
        index.write_text(damaged)
        with pytest.raises(DamagedRun, match=rf"networks.index\.json.*{said}"):
            KeptNetworks(run)


def test_the_summary_is_written_last(tmp_path, monkeypatch):
    """It means finished: all else is there before."""
    written, write = [], store_module.write_json
    monkeypatch.setattr(store_module, "write_json", lambda path, *more: (written.append(path.name), write(path, *more)))
    run_of(tmp_path)
    assert written[-2:] == ["cost.json", "summary.json"]
