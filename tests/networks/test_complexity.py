"""Sizes and operations equal those of the public code and of FMTL-Bench's Table 1."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch
from nets import NYUD, network, shapes_only

from fmtlbench.networks.complexity import flops, parameters, step_flops, table1_operations
from fmtlbench.networks.net import DenseNet

SIZE = (448, 576)

# Encoder, decoder (with heads), task embedding; then Table 1's millions and GFLOPs (per task for TC).
PUBLISHED = {
    ("md", "resnet18"): ((11176512, 26211437, 0), ("11.18", "26.21", "", "37.39"), 272.14),
    ("tc", "resnet18"): ((11176512, 7092328, 116160), ("11.18", "7.09", "0.12", "18.39"), 75.47),
    ("md", "swin_tiny"): ((27520698, 52275213, 0), ("27.52", "52.28", "", "79.80"), 211.13),
    ("tc", "swin_tiny"): ((27520698, 13762792, 116160), ("27.52", "13.76", "0.12", "41.40"), 71.01),
}
HEADS = {"resnet18": [2600, 195, 65, 65], "swin_tiny": [3880, 291, 97, 97]}
DECODERS = {"resnet18": 6552128, "swin_tiny": 13067712}


@pytest.fixture(scope="module", params=list(PUBLISHED), ids="-".join)
def case(request):
    """(architecture, backbone) and its network, without storage."""
    return request.param, shapes_only(*request.param)


def test_parameters_equal_the_public_code(case):
    (architecture, backbone), model = case
    exact, millions, _ = PUBLISHED[architecture, backbone]
    counts = parameters(model)
    parts = (counts["encoder"], counts["decoder"] + counts.get("head", 0), counts.get("task_embedding", 0))
    assert parts == exact
    assert sum(counts.values()) == sum(p.numel() for p in model.parameters()) == sum(exact)
    # Table 1 rounds 18.385 up: decimal halves, not binary ones
    rounded = tuple(f"{(n + 5000) // 10000 / 100:.2f}" if n else "" for n in (*parts, sum(parts)))
    assert rounded == millions
    if architecture == "md":
        count = lambda module: sum(p.numel() for p in module.parameters())
        assert [count(head) for head in model.heads.values()] == HEADS[backbone]
        assert {count(decoder) for decoder in model.decoders.values()} == {DECODERS[backbone]}
        assert list(counts) == ["encoder", "decoder", "head"]


def test_matfl_and_fedhca2_sizes():
    assert parameters(shapes_only("matfl", "resnet18")) == {"encoder": 11176512, "decoder": 4 * 4722176, "head": 11565}
    assert parameters(shapes_only("fedhca2", "swin_tiny")) == {"encoder": 27520698, "decoder": 703104, "head": 93573}


def test_tensors_equal_the_reference(case, reference):
    (architecture, backbone), model = case
    golden = json.loads((reference / "E_models" / "param_counts.json").read_text())
    entry = golden[f"{architecture.upper()}_{backbone.replace('swin_tiny', 'swin-t')}_nyud4"]
    shapes = lambda *modules: [list(p.shape) for module in modules for p in module.parameters()]
    expected = lambda key: [tensor["shape"] for tensor in entry[key]]
    assert sum(parameters(model).values()) == entry["total"]
    if architecture == "md":
        assert shapes(model.decoders["semseg"], model.heads["semseg"]) == expected("decoder_tensors_semseg")
        totals = {t: sum(p.numel() for p in model.decoders[t].parameters()) for t in NYUD}
        assert {t: totals[t] + entry["conv_last_per_task"][t] for t in NYUD} == entry["decoder_per_task"]
    else:
        assert shapes(model.decoder.embedding) == expected("task_embedding_tensors")
        blocks = [m for name, m in model.decoder.named_children() if name.startswith(("skip", "up"))]
        assert shapes(*blocks, model.decoder.last) == expected("decoder_tensors")
    buffers = sum(b.numel() for n, b in model.encoder.named_buffers() if n in model.encoder.state_dict())
    if backbone == "resnet18":
        assert buffers == entry["buffers"]


def test_the_literals_are_the_published_table():
    published = Path(__file__).parents[2] / "reports" / "papers" / "published"
    with (published / "fmtlbench_table1_model_size.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(PUBLISHED)
    for row in rows:
        _, millions, gflops = PUBLISHED[row["arch"].lower(), row["backbone"].replace("swin-t", "swin_tiny")]
        cells = [row[k] for k in ("encoder_M", "decoder_M", "task_condition_M", "total_M")]
        assert [float(c) if c else None for c in cells] == [float(m) if m else None for m in millions]
        assert float(row["gflops_per_task"] or row["gflops_total"]) == gflops
        if row["arch"] == "TC":
            assert float(row["gflops_total"]) == pytest.approx(4 * gflops, abs=0.005)


def test_operations_agree_with_table_1(case):
    (architecture, backbone), model = case
    gflops = PUBLISHED[architecture, backbone][2]
    if architecture == "md":
        assert flops(model, SIZE) / 2e9 == pytest.approx(gflops, rel=0.02)
    else:
        each = {task: flops(model, SIZE, (task,)) / 2e9 for task in ("semseg", "normals", "edge")}
        assert each["semseg"] == pytest.approx(gflops, rel=0.02)
        # Tasks with few outputs are a little cheaper here, as their pooling is folded into the last filters.
        total = each["semseg"] + each["normals"] + 2 * each["edge"]  # depth has one output, as edge has
        assert total == pytest.approx(4 * gflops, rel=0.02) and total < 4 * each["semseg"]


def test_table_1_to_the_last_digit(case):
    (architecture, backbone), model = case
    gflops = PUBLISHED[architecture, backbone][2]
    asked = [None] if architecture == "md" else [("semseg",), ("normals",), ("edge",)]  # TC: whatever the task
    assert {round(table1_operations(model, SIZE, tasks) / 1e9, 2) for tasks in asked} == {gflops}


@pytest.mark.parametrize("architecture", ["md", "tc"])
def test_what_table_1_adds_is_interpolation_and_norms(architecture):
    """By hand, from the maps of ResNet-18."""
    positions = [SIZE[0] * SIZE[1] // 4 ** (i + 1) for i in range(5)]  # of the five maps
    channels, widths, below = [64, 64, 128, 256, 512], [64, 128, 256, 256, 512], [128, 256, 256, 512, 512]
    interpolated = sum(c * 4 * n for c, n in zip(below, positions))
    normalised = sum((c + 4 * d) * n for c, d, n in zip(channels, widths, positions))
    in_encoder = sum(k * n for k, n in zip((64, 4 * 64, 5 * 128, 5 * 256, 5 * 512), positions))
    model = shapes_only(architecture, "resnet18")
    if architecture == "md":
        total = flops(model, SIZE) / 2 + 4 * (11 * interpolated + 4 * normalised)
        assert table1_operations(model, SIZE) == total + 4 * in_encoder
    else:
        total = flops(model, SIZE, ("semseg",)) / 2 + 11 * interpolated + 2 * normalised
        assert table1_operations(model, SIZE, ("semseg",)) == total + 4 * in_encoder


class OneOfEach(DenseNet):
    """A layer of every kind that has a rule, and products that have none."""

    def __init__(self):
        super().__init__(torch.nn.Identity(), ("edge",))
        self.grow = torch.nn.ConvTranspose2d(3, 4, 2, stride=2)
        self.shrink = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2)
        self.plain, self.scaled = torch.nn.InstanceNorm2d(8), torch.nn.LayerNorm(16)
        self.linear = torch.nn.Linear(8, 5)

    def forward(self, image, tasks):
        x = self.plain(self.shrink(self.grow(image))).flatten(2)  # [1, 8, 16]
        attended = torch.softmax(x @ x.transpose(1, 2), -1) @ self.scaled(x)
        doubled = torch.nn.functional.interpolate(attended.unflatten(2, (4, 4)), scale_factor=2, mode="bilinear")
        return {"edge": self.linear(torch.nn.functional.relu(doubled).flatten(2).transpose(1, 2))}


def test_table_1s_rules_by_hand():
    layers = 3 * 16 * (4 * 4) + 8 * 16 * (2 * 9) + 64 * 8 * 5
    assert table1_operations(OneOfEach(), (4, 4)) == layers + 2 * 8 * 16 + 4 * 8 * 16 + 3 * 8 * 8 + 11 * 8 * 64


def test_a_convolution_counts_two_per_multiply_accumulate():
    model = network("fedhca2", "resnet_nano")
    model.encoder.body = torch.nn.Identity()
    model.encoder.forward = lambda image: [image] * 4
    for level in range(1, 5):
        setattr(model.decoders["edge"], f"L{level}", torch.nn.Linear(3, 16))
    head = 2 * 64 * (16 * 8 * 4 + 8 * 4 * 4 * 4 + 4 * 1 * 16)  # two doublings, then the 1×1 convolution
    decoder = 2 * 64 * (4 * 3 * 16 + 64 * 16)
    model.encoder.stride = 8
    assert flops(model, (8, 8), ("edge",)) == head + decoder


def test_counting_changes_nothing_and_scales_with_the_batch():
    model = network("tc", "resnet_nano").train()
    model.decoder.last.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    one, four = (flops(model, (64, 64), batch=b, backward=True) for b in (1, 4))
    assert 3.98 * one < four < 4 * one  # only what is computed from the task's code does not depend on the batch
    assert model.training and not model.decoder.last.weight.requires_grad
    assert all(p.grad is None and p.device.type == "cpu" for p in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_training_step_in_sequence_repeats_the_encoder():
    model = network("tc", "resnet_nano", outputs={"semseg": 7, "edge": 1})
    cost = step_flops(model, (64, 64), batch=2)
    forward = flops(model, (64, 64), (), batch=2)
    stem = 2 * 2 * 32 * 32 * 3 * 8 * 9  # its input, the image, needs no gradient
    assert cost["sequential"] - cost["joint"] == 3 * forward - stem
