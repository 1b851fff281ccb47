"""The network's sizes, shapes and initialisation."""

from __future__ import annotations

import pytest
import torch

from fmtlbench.base.errors import UsageError
from fmtlbench.config.run_config import ModelConfig
from fmtlbench.engine.client_models import build_model
from fmtlbench.networks.backbones import Encoder
from fmtlbench.networks.fedhca2 import MultiDecoderNet
from fmtlbench.networks.flat import FlatModel

NANO = ModelConfig("fedhca2", "swin_nano", False)

# Counts of the public implementation, which the FedHCA² paper's Swin-T network must equal exactly.
PUBLISHED = {
    (512, 512): ({"semseg": 21, "human_parts": 7, "normals": 3, "edge": 1, "sal": 2}, 27520698, 878880, 116410),
    (448, 576): ({"semseg": 40, "normals": 3, "edge": 1, "depth": 1}, 27520698, 703104, 93573),
}


@pytest.mark.parametrize("size", list(PUBLISHED))
def test_parameter_counts_equal_the_public_code(size):
    outputs, encoder, decoders, heads = PUBLISHED[size]
    with torch.device("meta"):
        model = MultiDecoderNet(Encoder("swin_tiny", size), outputs)
    count = lambda module: sum(p.numel() for p in module.parameters())
    assert (count(model.encoder), count(model.decoders), count(model.heads)) == (encoder, decoders, heads)


@pytest.mark.parametrize("backbone", ["swin_nano", "resnet18"])
@pytest.mark.parametrize("size", [(64, 64), (64, 96)])
def test_outputs_have_the_input_size(backbone, size):
    model = build_model(ModelConfig("fedhca2", backbone, False), size, {"semseg": 5, "edge": 1}, seed=0)
    raw = model(torch.zeros(2, 3, *size))
    assert {task: tuple(z.shape) for task, z in raw.items()} == {"semseg": (2, 5, *size), "edge": (2, 1, *size)}


def test_decoder_has_the_papers_six_layers():
    flat = FlatModel(build_model(NANO, (64, 64), {"edge": 1, "sal": 2}, seed=0))
    layers = list(dict.fromkeys(t.layer for t in flat.layout("decoder")))
    assert layers == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert [row.numel() for row in flat.rows("decoder")] == [flat.layout("decoder")[-1].stop] * 2


def test_names_and_order_of_the_parameters_are_fixed():
    """Checkpoints and flat vectors depend on them."""
    names = [name for name, _ in build_model(NANO, (64, 64), {"edge": 1, "sal": 2}, seed=0).named_parameters()]
    encoder = [name for name in names if name.startswith("encoder.")]
    assert len(encoder) == 86
    assert (encoder[0], encoder[-1]) == ("encoder.body.patch_embed.proj.weight", "encoder.norms.3.bias")
    both = lambda stems: [f"{stem}.{p}" for stem in stems for p in ("weight", "bias")]
    decoders = both(f"decoders.{task}.L{level}" for task in ("edge", "sal") for level in range(1, 7))
    heads = both(f"heads.{task}.{layer}" for task in ("edge", "sal") for layer in range(3))
    assert names == encoder + decoders + heads


def test_clients_start_from_the_same_encoder_and_decoders():
    one = FlatModel(build_model(NANO, (64, 64), {"edge": 1}, seed=3))
    two = FlatModel(build_model(NANO, (64, 64), {"sal": 2, "edge": 1}, seed=3))
    other = FlatModel(build_model(NANO, (64, 64), {"edge": 1}, seed=4))
    assert torch.equal(one.rows("encoder")[0], two.rows("encoder")[0])
    assert torch.equal(two.rows("decoder")[0], two.rows("decoder")[1])
    assert torch.equal(one.rows("decoder")[0], two.rows("decoder")[0])
    assert torch.equal(one.rows("head")[0], two.rows("head")[1])
    assert not torch.equal(one.rows("encoder")[0], other.rows("encoder")[0])
    assert not torch.equal(one.rows("decoder")[0], other.rows("decoder")[0])


@pytest.mark.parametrize("backbone", ["swin_nano", "resnet18"])
def test_the_encoder_has_the_same_shape_for_any_image_size(backbone):
    config = ModelConfig("fedhca2", backbone, False)
    lengths = {
        FlatModel(build_model(config, size, {"edge": 1}, seed=0)).rows("encoder")[0].numel()
        for size in ((32, 32), (32, 64), (64, 64), (128, 96))
    }
    assert len(lengths) == 1


@pytest.mark.parametrize("drop_path, repeats", [(0.0, True), (0.5, False)])
def test_drop_path_is_what_the_config_says(drop_path, repeats):
    model = build_model(ModelConfig("fedhca2", "swin_nano", False, drop_path), (64, 64), {"edge": 1}, seed=0).train()
    image = torch.ones(4, 3, 64, 64)
    assert torch.equal(model(image)["edge"], model(image)["edge"]) is repeats


def test_building_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    build_model(NANO, (64, 64), {"edge": 1}, seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_parameters_are_views_of_the_vector():
    model = build_model(NANO, (64, 64), {"edge": 1}, seed=0)
    flat = FlatModel(model)
    before = model(torch.ones(1, 3, 64, 64))["edge"]
    flat.vector.mul_(0.5)
    assert not torch.equal(model(torch.ones(1, 3, 64, 64))["edge"], before)
    assert flat.vector.numel() == sum(p.numel() for p in model.parameters())
    assert sum(flat.counts().values()) == flat.vector.numel()


def test_wrong_size_and_backbone_are_named():
    with pytest.raises(UsageError, match=r"multiples of 32, got \[60, 64\]"):
        build_model(ModelConfig("fedhca2", "resnet18", False), (60, 64), {"edge": 1}, seed=0)
    with pytest.raises(UsageError, match="swin_tiny"):
        build_model(ModelConfig("fedhca2", "swin_tin", False), (64, 64), {"edge": 1}, seed=0)
