"""The presets: every value says where it is from, and the papers' ones leave none of their values to a default."""

from __future__ import annotations

import re

import pytest

from fmtlbench.config import RunConfig, resolve
from fmtlbench.presets import preset_files, read_preset

PRESETS = sorted(preset_files())
PAPERS = {"paper", "fmtl-bench", "mat-fl"}
# What decides a number in every run; what only one schedule, network or optimiser reads is not in the list.
NAMED = {
    "federation": {"rounds", "participation", "exchange"},
    "data": {"source", "size"},
    "model": {"architecture", "backbone", "pretrained", "drop_path", "init"},
    "train": {
        "optimizer", "lr", "weight_decay", "betas", "batch_size", "local_epochs", "optimizer_state", "schedule",
        "warmup_epochs", "min_lr", "augment", "loss_weights", "edge_weight",
    },
    "evaluation": {"every", "batch_size"},
}  # fmt: skip


def test_the_presets():
    assert set(PRESETS) == {"nano", *PAPERS}


@pytest.mark.parametrize("name", PRESETS)
def test_every_value_has_its_source_beside_it(name):
    lines = preset_files()[name].read_text(encoding="utf-8").splitlines()
    values = [line for line in lines if re.match(r"  \w+: ", line)]
    tree, _ = read_preset(name)
    assert len(values) == sum(len(section) for section in tree.values() if isinstance(section, dict))
    assert [line for line in values if not re.search(r" # .{3,}$", line)] == []
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_a_papers_values_are_written_out(name):
    tree, _ = read_preset(name)
    assert [keys - set(tree[section]) for section, keys in NAMED.items()] == [set()] * len(NAMED)
    config = resolve("local", "st_mt_1", name)
    assert config.data.source == "real" and config.model.pretrained and config.federation.rounds == 100
    assert config.train.loss_weights == {
        "semseg": 1, "human_parts": 2, "sal": 5, "normals": 10, "edge": 50, "depth": 1
    }  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("architecture", ["fedhca2", "md", "tc", "matfl"])
def test_what_a_run_keeps_reads_back(tmp_path, name, architecture):
    changes = {"model.architecture": architecture, "model.backbone": "resnet_nano", "scenario.clients": 3}
    config = resolve("fedhca2", "iid1_sdmt", name, seed=2, overrides={**changes, "federation.participation": 0.5})
    file = tmp_path / "config.yaml"
    file.write_text(config.dump(), encoding="utf-8")
    again = RunConfig.from_file(file)
    assert again == config and again.hash() == config.hash()
