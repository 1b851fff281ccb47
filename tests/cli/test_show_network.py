"""`fmtlbench show network`: sizes and operations of the clients' networks, without building their weights."""

from __future__ import annotations

import json

import pytest

from fmtlbench.cli import main
from fmtlbench.networks.weights_shipped import FOLDER, read_manifest
from fmtlbench.reports.papers.published import load_published

NANO = ["--scenario", "mt_mt", "--set", "model.backbone=resnet_nano"]


@pytest.fixture
def show(capsys):
    def call(*argv):
        code = main(["show", "network", *argv])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_one_record_per_kind_of_client(show):
    code, out, _ = show("nano", *NANO, "--json")
    three, two = json.loads(out)
    assert code == 0 and (three["client"], two["client"]) == ("pascal-multi", "nyud-multi")
    assert three["parameters"]["encoder"] == two["parameters"]["encoder"]
    assert 2 * three["parameters"]["decoder"] == 3 * two["parameters"]["decoder"]
    assert two["size"] == [64, 64] and three["flops_per_image"] > two["flops_per_image"] > 0
    assert set(two["flops_per_training_image"]) == {"joint"}


def test_what_the_encoder_starts_from_is_told_and_nothing_is_fetched(show, monkeypatch, tmp_path):
    monkeypatch.setattr("fmtlbench.networks.weights.fetch", lambda name: pytest.fail("the hub was asked"))
    scratch, own = (show("nano", *NANO, "--set", f"model.pretrained={given}")[1] for given in ("false", "true"))
    assert "encoder weights: none, it starts from scratch; --set model.pretrained=true takes the package's" in scratch
    sha256 = read_manifest(FOLDER)["resnet_nano"]["sha256"]
    assert f"encoder weights: the package's (sha256 {sha256[:8]}" in own
    assert "encoder weights: timm's resnet18.tv_in1k" in show("fmtl-bench", "--scenario", "iid1_sdmt")[1]
    file = FOLDER / "resnet_nano.safetensors"
    (record, _) = json.loads(show("nano", *NANO, "--set", f"model.weights={file}", "--json")[1])
    assert record["weights"] == f"those of {file} (sha256 {sha256[:8]})"


def test_both_ways_of_training_tc_are_told(show):
    code, out, _ = show("nano", *NANO, "--set", "model.architecture=tc")
    head, *rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    three, two = (dict(zip(head, row, strict=True)) for row in rows)
    assert code == 0 and three["total"] == two["total"]  # any client has the same network
    for row in (three, two):
        forward, joint, sequential = (float(row[k]) for k in ("forward", "training, joint", "training, sequential"))
        assert sequential > joint > 2 * forward > 0


def columns(out):
    """Of the only client."""
    head, row = [line.split("\t") for line in out.splitlines() if "\t" in line]
    return dict(zip(head, row, strict=True))


RESNET = [row for row in load_published("fmtlbench_table1_model_size").rows if row["backbone"] == "resnet18"]


@pytest.mark.parametrize("published", RESNET, ids=lambda row: row["arch"])
def test_table_1_as_printed_and_two_operations_per_multiply_accumulate(show, published):
    architecture = f"model.architecture={published['arch'].lower()}"
    code, out, _ = show("fmtl-bench", "--scenario", "iid1_sdmt", "--set", architecture)
    row = columns(out)
    assert code == 0 and f"{float(row['total']):.2f}" == f"{float(published['total_M']):.2f}"
    if published["arch"] == "MD":
        assert row["Table 1"] == published["gflops_total"]
    else:
        assert row["Table 1, per task"] == published["gflops_per_task"]
        assert float(row["Table 1, total"]) == pytest.approx(float(published["gflops_total"]), abs=0.005)
    assert float(row["forward"]) == pytest.approx(2 * float(row["MACs"]), abs=0.011)
    for words in ("MACs: multiply–accumulates", "2 per multiply–accumulate", "as FMTL-Bench's counts"):
        assert words in out


def test_both_conventions_in_json(show):
    small = ["nano", "--scenario", "iid1_sdmt", "--set", "model.backbone=resnet_nano", "--json"]
    (md,), (tc,) = (json.loads(show(*small, "--set", f"model.architecture={name}")[1]) for name in ("md", "tc"))
    for record in (md, tc):
        assert record["flops_per_image"] == 2 * record["macs_per_image"] > 0
        assert record["table1_operations_per_image"]["total"] > record["macs_per_image"]
    assert set(md["table1_operations_per_image"]) == {"total"}
    counted = tc["table1_operations_per_image"]
    assert counted["total"] == len(tc["tasks"]) * counted["per_task"]


def test_a_network_of_timm(show):
    code, out, _ = show("nano", "--scenario", "iid1_sdmt", "--set", "model.backbone=timm/edgenext_xx_small")
    assert code == 0 and "encoder weights: timm's edgenext_xx_small" in out
    assert columns(out)["network"].endswith(", timm/edgenext_xx_small") and float(columns(out)["encoder"]) > 1


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["nanno"], "did you mean 'nano'"),
        (
            ["nano", "--set", "model.backbone=resnet_nan"],
            "--set model.backbone=resnet_nan: model.backbone: no backbone",
        ),
        (
            ["nano", "--set", "model.architecture=matfl", "--set", "model.backbone=swin_nano"],
            "needs dilated maps, which 'swin_nano' lacks",
        ),
        (["nano", "--scenario", "st_mt1"], "did you mean 'st_mt_1'"),
        (["nano", "--set", "model.backbone=timm/convnext_atoo"], "timm has no network 'convnext_atoo'"),
        (["nano", "--set", "model.backbone=timm/vit_tiny_patch16_224"], "has maps of stride 16, expected 4, 8, 16, 32"),
    ],
)
def test_mistakes_are_one_line(show, argv, part):
    code, out, err = show(*argv)
    assert (code, out) == (2, "") and part in err and err.count("\n") == 1
