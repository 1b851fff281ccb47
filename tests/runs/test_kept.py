"""What a finished run keeps of its networks: how much, how exactly, and that no kill loses it."""

from __future__ import annotations

import errno
import json
import multiprocessing
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from interrupt import AfterRound, Stopped, always, unless
from safetensors.torch import load_file
from tiny import SCENARIO, TINY

import fmtlbench
from fmtlbench.base import files
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.stored import DamagedRun
from fmtlbench.engine import change_kept as change_module
from fmtlbench.engine import kept_networks
from fmtlbench.engine.change_kept import change_kept
from fmtlbench.engine.kept_networks import KeptNetworks, keeping_networks, restore_floats, round_to_bytes
from fmtlbench.inference.stored_run import StoredRun
from fmtlbench.listeners import Listener
from fmtlbench.runs import kept
from fmtlbench.runs.folder import RunFolder
from fmtlbench.runs.kept import choose_keep, kept_in, size_on_disk
from fmtlbench.runs.lock import StoreError, locked
from fmtlbench.runs.store import RunStore
from fmtlbench.runs.weights_file import WeightsFile

CPU = torch.device("cpu")
UNSEEN = SCENARIO.replace("evaluation: [global, personal]", "evaluation: [global, unseen]").replace(
    "clients:\n", "clients:\n  - {dataset: nyud, tasks: [normals], id: late, unseen: true}\n"
)


class Notes(Listener):
    def __init__(self):
        self.said = []

    def note(self, message):
        self.said.append(message)


def run_of(folder: Path, **given):
    (folder / "duo.yml").write_text(SCENARIO)
    arguments = {"rounds": 2, "out": folder / "runs", "device": "cpu", "algo": "fedavg", **TINY}
    return fmtlbench.run(scenario=folder / "duo.yml", **{**arguments, **given})


@pytest.fixture(scope="module")
def last(tmp_path_factory):
    """A run with its last checkpoint."""
    return run_of(tmp_path_factory.mktemp("last"), keep="last")


@pytest.fixture
def copy(last, tmp_path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(last.folder, tmp_path / "run"))


def states(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    run = StoredRun(folder)
    run.open_networks(None, CPU, Listener())
    found = {}
    for party in run.members:
        with run.network(party) as model:
            found[party.id] = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return found


def is_equal(first: dict, second: dict) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[client][name])
        for client, network in first.items()
        for name, tensor in network.items()
    )


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


# -- the levels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["last", "exact", "weights", "none"])
def test_every_level_leaves_what_it_says_and_the_same_records(last, tmp_path, keep):
    result = run_of(tmp_path, keep=keep)
    run = RunFolder(result.folder)
    assert kept_in(run) == keep
    assert run.weights.is_file() == (keep in ("exact", "weights"))
    assert kept.available(run.checkpoints) == ([2] if keep == "last" else [])
    assert run.checkpoints.exists() == (keep == "last")
    for name in ("metrics.jsonl", "summary.json", "config.yaml"):
        assert (result.folder / name).read_bytes() == (last.folder / name).read_bytes()
    again = run_of(tmp_path, keep="none")
    assert again.reused and kept_in(run) == keep  # a finished run is shown as it is
    assert not list(result.folder.glob(".weights*")) and not list(result.folder.glob("*.tmp"))


def test_each_level_takes_less_than_the_one_before(last, copy):
    sizes = [size_on_disk(copy)]
    for keep in ("exact", "weights", "none"):
        change_kept(copy, keep, None, CPU, Listener())
        sizes.append(size_on_disk(copy))
    values = sum(sum(client["parameters"].values()) for client in last.summary["clients"])
    assert sizes[0] > 2.9 * sizes[1] and sizes[1] > 3 * sizes[2] > 6 * sizes[3]
    assert sizes[2] < 0.7 * values  # about a byte a value, and what FedAvg has made equal only once


def test_exact_weights_are_those_of_the_checkpoint_and_give_the_scores(last, copy):
    before = states(copy)
    change_kept(copy, "exact", None, CPU, Listener())
    assert is_equal(states(copy), before)
    score = next(s for s in last.scores if (s["client"], s["task"], s["split"]) == ("nyud-multi", "depth", "global"))
    assert depth_error(copy) == pytest.approx(score["value"], rel=1e-6)


def test_rounded_weights_are_near_and_small_tensors_exact(copy):
    before = states(copy)
    change_kept(copy, "weights", None, CPU, Listener())
    after = states(copy)
    rounded = 0
    for client, network in before.items():
        for name, tensor in network.items():
            other = after[client][name]
            if tensor.is_floating_point() and tensor.dim() > 1 and tensor.numel() >= 1024:
                rounded += 1
                steps = tensor.flatten(1).abs().amax(1) / 127
                assert ((tensor - other).flatten(1).abs().amax(1) <= 0.5001 * steps).all()
            else:
                assert torch.equal(tensor, other)
    assert rounded > 20


def test_a_run_says_the_same_whether_it_kept_or_was_pruned(last, tmp_path):
    for keep in ("exact", "weights"):
        folder = Path(shutil.copytree(last.folder, tmp_path / keep))
        change_kept(folder, keep, None, CPU, Listener())
        (tmp_path / f"direct-{keep}").mkdir()
        direct = run_of(tmp_path / f"direct-{keep}", keep=keep).folder
        assert is_equal(states(folder), states(direct))


def test_exact_weights_can_be_rounded_and_nothing_goes_backwards(copy, last, tmp_path):
    direct = Path(shutil.copytree(last.folder, tmp_path / "direct"))
    change_kept(direct, "weights", None, CPU, Listener())
    change_kept(copy, "exact", None, CPU, Listener())
    change_kept(copy, "weights", None, CPU, Listener())
    assert is_equal(states(copy), states(direct))
    for keep in ("last", "exact"):
        with pytest.raises(UsageError, match=f"keeps weights, from which {keep} cannot be made any more"):
            change_kept(copy, keep, None, CPU, Listener())
    change_kept(copy, "none", None, CPU, Listener())
    with pytest.raises(FmtlbenchError, match="no checkpoint and no weights"):
        StoredRun(copy)


def test_an_unfinished_run_keeps_its_checkpoints(copy):
    (copy / "summary.json").unlink()
    with pytest.raises(UsageError, match="not finished, so it needs its checkpoints"):
        change_kept(copy, "none", None, CPU, Listener())
    assert kept.available(copy / "checkpoint") == [2]


@pytest.mark.parametrize("keep", ["exact", "weights"])
def test_fine_tuned_networks_are_kept_as_they_were_scored(tiny_run, keep):
    result = tiny_run("fedbabu", rounds=1, keep=keep)
    tolerance = 1e-6 if keep == "exact" else 0.05
    assert depth_error(result.folder) == pytest.approx(result.value("nyud-multi", "depth"), rel=tolerance)


def test_networks_that_were_scored_before_the_servers_step_are_kept_as_such(tiny_run):
    result = tiny_run("fedavg", rounds=1, keep="exact", **{"evaluation.when": "before_aggregation"})
    assert depth_error(result.folder) == pytest.approx(result.value("nyud-multi", "depth"), rel=1e-6)


def test_an_unseen_clients_network_is_kept_and_can_be_asked(tmp_path, tiny_run):
    scenario = tmp_path / "late.yml"
    scenario.write_text(UNSEEN.replace("tasks: [normals]", "tasks: [depth]"))
    given = {"scenario": scenario, "rounds": 1, "evaluation.unseen_epochs": 1}
    result = tiny_run("fedavg", keep="exact", **given)
    assert set(KeptNetworks(result.folder / "weights.safetensors").clients) == {
        "pascal-human_parts",
        "nyud-multi",
        "late",
    }
    assert depth_error(result.folder, "late", "unseen") == pytest.approx(
        result.value("late", "depth", "unseen"), rel=1e-6
    )
    loaded = fmtlbench.load(result.folder)
    assert list(loaded.clients) == ["pascal-human_parts", "nyud-multi", "late"]


def test_predictions_are_written_before_weights_are_rounded(last, tmp_path):
    result = run_of(tmp_path, keep="weights", save_predictions=True)
    assert kept_in(RunFolder(result.folder)) == "weights"
    run = StoredRun(last.folder)
    run.open(None, CPU, Listener())
    (party,) = [party for party in run.parties if party.id == "nyud-multi"]
    exact = {p.image: p.values["depth"] for p in run.predictions(party, "global", ["depth"], range(4))}
    for name, values in exact.items():
        written = np.load(result.folder / "predictions" / "nyud-multi" / "depth" / f"{name}.npy")
        assert np.array_equal(written, values)


def test_whoever_asks_rounded_networks_is_told_once(tmp_path, copy):
    change_kept(copy, "exact", None, CPU, Listener())
    notes = Notes()
    StoredRun(copy).open(None, CPU, notes)
    assert notes.said == []
    change_kept(copy, "weights", None, CPU, Listener())
    StoredRun(copy).open(None, CPU, notes)
    assert len(notes.said) == 1 and "8 bits" in notes.said[0] and "--keep exact" in notes.said[0]


def test_the_users_config_file_may_say_what_is_kept(tmp_path, monkeypatch):
    file = tmp_path / "config.yml"
    monkeypatch.setenv("FMTLBENCH_CONFIG", str(file))
    file.write_text("keep: none\n")
    assert choose_keep(None) == "none" and choose_keep("exact") == "exact"
    assert kept_in(RunFolder(run_of(tmp_path, rounds=1).folder)) == "none"
    file.write_text("keep: weight\n")
    with pytest.raises(
        UsageError, match=r"config\.yml: keep: no way to keep networks 'weight'; did you mean 'weights'"
    ):
        choose_keep(None)
    with pytest.raises(UsageError, match="--keep: no way to keep networks 'all'"):
        run_of(tmp_path, keep="all")


def test_another_precision_asked_when_a_stopped_run_goes_on_is_what_is_kept(tmp_path):
    with pytest.raises(Stopped):
        run_of(tmp_path, keep="exact", progress=AfterRound(2))
    result = run_of(tmp_path, keep="weights")
    assert not result.reused and kept_in(RunFolder(result.folder)) == "weights"
    with pytest.raises(Stopped):
        run_of(tmp_path, seed=1, keep="last", progress=AfterRound(2))
    result = run_of(tmp_path, seed=1, keep="exact")
    assert kept_in(RunFolder(result.folder)) == "exact"


# -- kills -------------------------------------------------------------------------------------------------------------


def is_weights(file, *_):
    return Path(file).name == "weights.safetensors"


def is_checkpoints(folder):
    return folder.name == "checkpoint"


# Between any two steps of the end of a run. "finished": whether the kill leaves a finished run.
MOMENTS = {
    "before the weights file": (kept_networks, "writing_weights", always, False),
    "adding a network": (kept_networks, "_add_network", always, False),
    "joining the weights file": (kept_networks.WeightsWriter, "join", always, False),
    "after the weights file": (RunStore, "append", lambda store, row, timing: row["round"] == 2, False),
    "before the summary": (RunStore, "write_summary", always, False),
    "after the summary": (change_module, "change_kept", always, True),
    "before the checkpoints go": (change_module, "remove_surplus", always, True),
    "renaming the checkpoints": (kept, "remove_folder", is_checkpoints, True),
    "removing the checkpoints": (files.shutil, "rmtree", lambda path, **_: "removed" in Path(path).name, True),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_leaves_a_finished_run_or_one_that_goes_on(last, tmp_path, moment):
    target, name, when, finished = MOMENTS[moment]

    def doomed():
        setattr(target, name, unless(getattr(target, name), when))
        run_of(tmp_path, keep="exact")

    child = multiprocessing.get_context("fork").Process(target=doomed)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, "the kill did not happen where it was meant"
    (folder,) = (tmp_path / "runs" / "duo" / "fedavg").iterdir()
    assert (RunFolder(folder).summary() is not None) == finished
    if finished:
        assert is_equal(states(folder), states(last.folder))
    result = run_of(tmp_path, keep="exact")
    assert result.reused == finished and kept_in(RunFolder(folder)) == "exact"
    assert is_equal(states(folder), states(last.folder)) and not (folder / "checkpoint").exists()
    assert (folder / "metrics.jsonl").read_bytes() == (last.folder / "metrics.jsonl").read_bytes()


def test_a_full_disk_is_one_line_and_the_run_goes_on(tmp_path, monkeypatch):
    def full(self, file, about):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kept_networks.WeightsWriter, "join", full)
        with pytest.raises(StoreError, match=r"could not keep the networks .*: No space left on device"):
            run_of(tmp_path)
    result = run_of(tmp_path)
    assert not result.reused and kept_in(RunFolder(result.folder)) == "weights"


def test_a_run_that_somebody_works_on_is_not_changed(copy):
    with locked(copy), pytest.raises(StoreError, match="another process is working on this run"):
        change_kept(copy, "none", None, CPU, Listener())
    assert kept_in(RunFolder(copy)) == "last"


# -- the file ----------------------------------------------------------------------------------------------------------


def write_two(folder: Path, precision: str = "exact") -> tuple[Path, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    network = {
        "encoder.stem.weight": torch.randn(8, 3, 7, 7, generator=generator),
        "encoder.stem.bias": torch.zeros(8),
        "norm.num_batches_tracked": torch.tensor(7),
        "mask": torch.tensor([True, False]),
        "half": torch.randn(3, 5, generator=generator).to(torch.bfloat16),
        "empty": torch.zeros(0, 3),
    }
    other = {**network, "encoder.stem.bias": torch.ones(8)}
    file = folder / "weights.safetensors"
    with keeping_networks(file, precision, 5) as keep:
        keep("a", network)
        keep("b", other)
    return file, network


def test_the_file_is_plain_safetensors_with_equal_tensors_once(tmp_path):
    file, network = write_two(tmp_path)
    plain = load_file(file)
    assert torch.equal(plain["a/encoder.stem.weight"], network["encoder.stem.weight"])
    assert set(plain) == {f"a/{name}" for name in network} | {"b/encoder.stem.bias"}
    read = KeptNetworks(file)
    assert (read.clients, read.round, read.precision, read.is_rounded) == (["a", "b"], 5, "exact", False)
    for name, tensor in network.items():
        assert torch.equal(read.state("a")[name], tensor) and read.state("a")[name].dtype == tensor.dtype
    assert torch.equal(read.state("b")["encoder.stem.weight"], network["encoder.stem.weight"])
    assert torch.equal(read.state("b")["encoder.stem.bias"], torch.ones(8))
    assert write_two(tmp_path)[0].read_bytes() == file.read_bytes()


def test_rounding_keeps_signs_zeros_and_the_largest_value_of_a_channel():
    rows = torch.tensor([[0.0, 0.0], [1.0, -2.54], [1e-30, 1e-30]]).repeat(1, 512)
    numbers, scales = round_to_bytes(rows)
    assert numbers.dtype == torch.int8 and scales.shape == (3,)
    back = restore_floats(numbers, scales)
    assert torch.equal(back[0], rows[0]) and back[1].min() == pytest.approx(-2.54)
    assert (back[1] - rows[1]).abs().max() <= 2.54 / 127 / 2 + 1e-7
    vector = torch.randn(2, 3, 4, 5).transpose(0, 1)
    assert (restore_floats(*round_to_bytes(vector)) - vector).abs().max() < vector.abs().max() / 250


def test_what_is_not_finite_is_kept_as_it_is(tmp_path):
    strange = torch.randn(32, 64)
    strange[0, 0] = float("inf")
    with keeping_networks(tmp_path / "weights.safetensors", "weights", 1) as keep:
        keep("a", {"w": strange})
    assert torch.equal(KeptNetworks(tmp_path / "weights.safetensors").state("a")["w"], strange)


def test_an_error_while_writing_leaves_the_old_file(tmp_path):
    file, _ = write_two(tmp_path)
    before = file.read_bytes()
    with pytest.raises(RuntimeError, match="stop"), keeping_networks(file, "exact", 6) as keep:
        keep("c", {"w": torch.ones(3)})
        raise RuntimeError("stop")
    assert file.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-3], "expected"),
        (lambda data: data[:4], "cannot be read"),
        (lambda data: b"", "cannot be read"),
        (lambda data: data[:8] + b"x" + data[9:], "cannot be read"),
        (lambda data: b"\xff" * 8 + data[8:], "cut short"),
        (lambda data: data.replace(b'"format":"2"', b'"format":"9"'), "newer than this version"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, damage, said):
    file, _ = write_two(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DamagedRun, match=rf"weights\.safetensors.*{said}"):
        WeightsFile(file)


def test_a_changed_byte_is_found_when_the_networks_are_asked(copy):
    change_kept(copy, "weights", None, CPU, Listener())
    file = copy / "weights.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert kept_in(RunFolder(copy)) == "weights"  # a list does not read all of it
    with pytest.raises(DamagedRun, match="not as it was written"):
        StoredRun(copy)


def test_a_run_that_starts_over_forgets_its_weights(tmp_path):
    first = run_of(tmp_path, keep="exact")
    with pytest.raises(Stopped):
        run_of(tmp_path, keep="exact", fresh=True, progress=AfterRound(1))
    assert not (first.folder / "weights.safetensors").exists()
    assert json.loads((first.folder / "manifest.json").read_text())["sessions"]
