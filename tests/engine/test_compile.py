"""train.compile: the same network through torch.compile, with its names; refused in one line where it cannot be had."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from resuming import cut_and_whole
from safetensors import safe_open
from torch import nn

from fmtlbench import cli
from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.config.resolve import resolve
from fmtlbench.engine import torch_compile as module
from fmtlbench.engine.torch_compile import check_compile, compile_fully, compiler_errors, many_graphs
from fmtlbench.engine.track import Track

CPU = torch.device("cpu")
ALONE = "description: one\npaper: none\nversion: 1\nclients:\n  - {dataset: nyud, tasks: [depth]}\n"
COMPILED = {"train.compile": True}
has_compiler = any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++")))


@pytest.fixture(autouse=True)
def forgotten():
    """No test finds what another has compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def quick(monkeypatch):
    """All that torch.compile takes from Python, without C++, which takes minutes for a whole network."""
    monkeypatch.setattr(module, "BACKEND", "eager")


class Small(nn.Module):
    """The least that is trained: a convolution and a statistic."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU())
        self.head = nn.Conv2d(4, 1, 1)

    def parts(self):
        return [("encoder", None, self.encoder), ("head", "depth", self.head)]

    def forward(self, image, tasks):
        return {task: self.head(self.encoder(image)) for task in tasks}


def trained(compile: bool, images: torch.Tensor) -> Track:
    torch.manual_seed(0)
    train = replace(resolve("local", "st_mt_1").train, compile=compile, optimizer="sgd")  # Adam blows up rounding
    track = Track(Small(), train, CPU)
    track.flat.watch_gradients(("encoder", "head"))
    track.model.train()
    with many_graphs():
        for batch in (images, images, images[:2]):
            track.flat.gradient.zero_()
            track.network(batch, ("depth",))["depth"].square().mean().backward()
            track.optimizer.step()
    return track


# -- what it is ------------------------------------------------------------------------------------------------------


def test_it_is_part_of_the_run_and_its_default_is_not():
    plain, other = (resolve("local", "st_mt_1", overrides=given) for given in ({}, COMPILED))
    assert plain.hash() == resolve("local", "st_mt_1", overrides={"train.compile": False}).hash()
    assert plain.hash() != other.hash() and plain.setting() != other.setting()
    assert plain.setting().differences(other.setting()) == {"train.compile": (False, True)}
    assert "train.compile" not in plain.setting().values  # so runs of before have the hash they had
    assert plain.setting().value("train.compile") is False


@pytest.mark.slow
@pytest.mark.skipif(not has_compiler, reason="no C++ compiler (g++ or clang++) here, which torch.compile needs")
def test_a_small_network_compiled_for_real():
    images = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    check_compile(True, CPU)
    eager, fast, again = (trained(kind, images) for kind in (False, True, True))
    assert torch.allclose(eager.flat.vector, fast.flat.vector, atol=1e-4)
    assert torch.equal(fast.flat.vector, again.flat.vector)
    assert list(fast.model.state_dict()) == list(eager.model.state_dict())
    assert list(fast.state_dict()["buffers"]) == list(eager.state_dict()["buffers"])
    assert torch.allclose(
        fast.buffers()["encoder.1.running_mean"], eager.buffers()["encoder.1.running_mean"], atol=1e-4
    )


# -- in a run --------------------------------------------------------------------------------------------------------


def names_in(folder: Path) -> dict[str, list[str]]:
    found = {}
    for file in sorted(folder.rglob("networks/*.safetensors")):
        with safe_open(file, "pt") as tensors:
            found[file.name] = sorted(tensors.keys())
    return found


@pytest.mark.slow
def test_a_compiled_run_resumes_predicts_and_keeps_its_names(tiny_run, scenario, tmp_path, monkeypatch, quick, capsys):
    small = {"scenario": scenario(ALONE), "rounds": 2, "model.backbone": "resnet_nano"}
    eager = tiny_run("local", **small)

    def run(**given):
        torch._dynamo.reset()  # as in a new process
        return tiny_run("local", **small, **COMPILED, **given)

    resumed, whole = cut_and_whole(run, tmp_path, 2)
    assert whole.folder.name != eager.folder.name and whole.summary["setting_text"]["train.compile"] is True
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 1
    assert names_in(whole.folder) == names_in(eager.folder) != {}
    for mine, other in zip(whole.scores, eager.scores):
        assert mine["value"] == pytest.approx(other["value"], rel=0.05, abs=0.5)

    assert (resumed.folder / "metrics.jsonl").read_bytes() == (whole.folder / "metrics.jsonl").read_bytes()

    # the stored networks can be asked where nothing can be compiled
    monkeypatch.setattr(module, "BACKEND", "no such backend")
    assert cli.main(["predict", str(whole.folder), "--limit", "1"]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert json.loads((written / "predictions.json").read_text())


def test_a_batch_that_is_too_small_says_the_same(tiny_run, quick):
    small = {"data.size": {"pascal": [32, 32], "nyud": [32, 32]}, "model.backbone": "resnet_nano",
             "train.batch_size": 1, **COMPILED}  # fmt: skip
    with pytest.raises(FmtlbenchError, match="BatchNorm has nothing to average over"):
        tiny_run("local", rounds=1, **small)


# -- where it does not work ------------------------------------------------------------------------------------------


def test_without_a_compiler_it_is_refused_before_anything_is_made(
    tmp_path, monkeypatch, scenario_file, tiny_flags, capsys
):
    from torch._inductor import config
    from torch._inductor.utils import fresh_cache

    monkeypatch.setattr(config.cpp, "cxx", (None, str(tmp_path / "no-compiler")))
    words = ["run", "--algo", "local", "--scenario", scenario_file, "--out", str(tmp_path / "runs"), "--device", "cpu"]
    with fresh_cache():
        assert cli.main([*words, *tiny_flags, "--set", "train.compile=true"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("fmtlbench: train.compile=true: torch cannot compile here: ") and said.count("\n") == 1
    assert "C++ compiler" in said and "--set train.compile=false" in said
    assert not (tmp_path / "runs").exists()


def test_mps_is_refused():
    with pytest.raises(FmtlbenchError, match=r"train\.compile=true: torch does not compile for mps yet"):
        check_compile(True, torch.device("mps"))
    check_compile(False, torch.device("mps"))


def test_what_breaks_the_graph_is_one_line(quick):
    def breaks(x):
        return x + 1 if x.sum().item() > 0 else x

    cannot = r"train\.compile=true: torch cannot compile this network: "
    with pytest.raises(FmtlbenchError, match=cannot) as caught, compiler_errors():
        compile_fully(breaks)(torch.ones(3))
    assert "\n" not in str(caught.value)
    with pytest.raises(KeyError), compiler_errors():
        raise KeyError("of somebody else")
