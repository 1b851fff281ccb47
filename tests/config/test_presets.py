"""The presets: every value says where it is from, and the papers' ones leave none of their values to a default."""

from __future__ import annotations

import re

import pytest

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.schema import build
from fmtlbench.base.yamlfile import load_yaml
from fmtlbench.config.presets import preset_files, preset_options, read_preset
from fmtlbench.config.resolve import resolve
from fmtlbench.config.run_config import RunConfig

PRESETS = sorted(preset_files())
PAPERS = {"paper", "fmtl-bench", "mat-fl"}
# What decides a number in every run; what only one schedule, network or optimiser reads is not in the list.
NAMED = {
    "federation": {"rounds", "participation"},
    "data": {"source", "size"},
    "model": {"architecture", "backbone", "pretrained", "drop_path", "init"},
    "train": {
        "optimizer", "lr", "weight_decay", "betas", "batch_size", "local_epochs", "optimizer_state", "schedule",
        "min_lr", "augment", "loss_weights", "edge_weight",
    },
    "evaluation": {"every", "batch_size"},
}  # fmt: skip


def test_the_presets():
    assert set(PRESETS) == {"nano", "probe", *PAPERS}


@pytest.mark.parametrize("name", PRESETS)
def test_every_value_has_its_source_beside_it(name):
    lines = preset_files()[name].read_text(encoding="utf-8").splitlines()
    values = [line for line in lines if re.match(r"  \w+: ", line)]
    tree = read_preset(name)
    assert len(values) == sum(len(section) for section in tree.values() if isinstance(section, dict))
    assert [line for line in values if not re.search(r" # .{3,}$", line)] == []
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_a_papers_values_are_written_out(name):
    tree = read_preset(name)
    assert [keys - set(tree[section]) for section, keys in NAMED.items()] == [set()] * len(NAMED)
    assert len({"warmup_epochs", "warmup_rounds"} & set(tree["train"])) == 1
    config = resolve("local", "st_mt_1", name)
    assert config.data.source == "real" and config.model.pretrained and config.federation.rounds == 100
    weights = {"semseg": 1, "human_parts": 2, "sal": 5, "normals": 10, "edge": 50, "depth": 1}
    assert config.train.loss_weights == (dict.fromkeys(weights, 1) if name == "mat-fl" else weights)


@pytest.mark.parametrize("name", PRESETS)
def test_what_clients_exchange_is_the_scenarios_and_no_presets(name):
    assert "exchange" not in read_preset(name)["federation"]
    found = {scenario: resolve("local", scenario, name).federation.exchange for scenario in ("st_mt_1", "iid1_sdmt")}
    assert found == {"st_mt_1": "decoders", "iid1_sdmt": "models"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_option_a_preset_gives_a_method_is_one_of_its_own(name):
    for method, given in preset_options(name).items():
        options = build(ALGORITHMS[method].Params, given, f"algorithms.{method}")
        assert {key: getattr(options, key) for key in given} == given


def test_the_papers_constants():
    """Read in the public code of FMTL-Bench and in the MaT-FL paper; the FedHCA² ones are the classes' defaults."""
    bench = preset_options("fmtl-bench")
    assert bench["fedprox"] == {"mu": 0.001} and bench["fedamp"]["lam"] == 15 and bench["ditto"] == {"lam": 0.001}
    assert preset_options("mat-fl")["matfl"] == {"variant": "voting", "friends": 8}
    assert preset_options("paper") == preset_options("nano") == {}
    for preset, mu in (("nano", 0.01), ("paper", 0.01), ("fmtl-bench", 0.001)):
        assert resolve("fedprox", "st_pascal", preset).algorithm.options["mu"] == mu
    for preset, variant in (("nano", "cluster"), ("fmtl-bench", "cluster"), ("mat-fl", "voting")):
        assert resolve("matfl", "matfl_pascal5", preset).algorithm.options["variant"] == variant


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("architecture", ["fedhca2", "md", "tc", "matfl"])
def test_what_a_run_keeps_reads_back(tmp_path, name, architecture):
    changes = {"model.architecture": architecture, "model.backbone": "resnet_nano", "scenario.clients": 3}
    config = resolve("fedhca2", "iid1_sdmt", name, seed=2, overrides={**changes, "federation.participation": 0.5})
    file = tmp_path / "config.yaml"
    file.write_text(config.dump(), encoding="utf-8")
    again = RunConfig.from_tree(load_yaml(file))
    assert again == config and again.hash() == config.hash()
