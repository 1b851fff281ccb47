"""What holds for every architecture: shapes, subsets of tasks, parts, gradients; and the encoders' maps."""

from __future__ import annotations

import pytest
import torch
from nets import PAIRS, SMALL, network, shapes_only
from torch import nn
from torchvision.models.segmentation.deeplabv3 import DeepLabHead

from fmtlbench.base.errors import UsageError
from fmtlbench.networks._unet import decoder_widths
from fmtlbench.networks.backbones import Encoder
from fmtlbench.networks.catalog import BACKBONES

IMAGE = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("size", [(64, 64), (32, 64)])
@pytest.mark.parametrize("architecture, backbone", PAIRS)
def test_outputs_have_the_images_size(architecture, backbone, size):
    raw = network(architecture, backbone, size)(IMAGE[:, :, : size[0]])
    assert {task: tuple(z.shape) for task, z in raw.items()} == {task: (2, n, *size) for task, n in SMALL.items()}


@pytest.mark.parametrize("architecture, backbone", PAIRS)
def test_a_subset_of_tasks_is_that_part_of_all_of_them(architecture, backbone):
    model = network(architecture, backbone).eval()
    passes = []
    model.encoder.register_forward_hook(lambda *_: passes.append(1))
    with torch.no_grad():
        everything, some = model(IMAGE), model(IMAGE, tasks=("edge", "semseg"))
    assert list(everything) == list(SMALL) == list(model.tasks) and list(some) == ["edge", "semseg"]
    assert all(torch.equal(z, everything[task]) for task, z in some.items())
    assert len(passes) == 2


@pytest.mark.parametrize("architecture, backbone", PAIRS)
def test_parts_are_the_parameters_in_their_order(architecture, backbone):
    model = network(architecture, backbone)
    parts = model.parts()
    together = [p for _, _, module in parts for p in module.parameters()]
    assert [id(p) for p in together] == [id(p) for p in model.parameters()]
    owners = [(kind, task) for kind, task, _ in parts]
    if architecture == "tc":
        assert owners == [("encoder", None), ("decoder", None)]
    else:
        assert owners == [("encoder", None), *(("decoder", t) for t in SMALL), *(("head", t) for t in SMALL)]
        for task in SMALL:
            last = list(model.heads[task].modules())[-1]
            assert isinstance(last, nn.Conv2d) and (last.out_channels, last.kernel_size) == (SMALL[task], (1, 1))


@pytest.mark.parametrize("architecture, backbone", PAIRS)
def test_every_parameter_is_trained(architecture, backbone):
    model = network(architecture, backbone).train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)  # timm starts the last one of a residual branch at 0, which hides the branch
    sum(z.square().sum() for z in model(IMAGE).values()).backward()
    # Instance norm removes what a bias adds before it: those gradients are rounding errors, or 0.
    dead = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    assert not {name for name in dead if not name.endswith("conv.bias")}


@pytest.mark.parametrize("architecture, unit", [("md", True), ("tc", True), ("fedhca2", False), ("matfl", False)])
def test_normals_have_unit_length_where_the_model_says_so(architecture, unit):
    lengths = network(architecture, "resnet_nano").eval()(IMAGE)["normals"].norm(dim=1)
    assert torch.allclose(lengths, torch.ones_like(lengths), atol=1e-5) is unit


@pytest.mark.parametrize("architecture, backbone", PAIRS)
def test_layers_of_a_decoder_lie_side_by_side(architecture, backbone):
    decoder = next(module for kind, _, module in network(architecture, backbone).parts() if kind == "decoder")
    top = {name.split(".")[0] for name, _ in decoder.named_parameters()}
    levels = [f"{kind}{i}" for kind in ("skip", "up") for i in range(5 if backbone == "resnet_nano" else 4)]
    expected = {
        "fedhca2": {"L1", "L2", "L3", "L4", "L5", "L6"},
        "md": set(levels),
        "tc": {*levels, "embedding", "last"},
        "matfl": {"aspp", "conv"},
    }
    assert top == expected[architecture]


# -- encoders --------------------------------------------------------------------------------------------------------

MAPS = {
    ("resnet18", "pyramid"): ([64, 128, 256, 512], [4, 8, 16, 32]),
    ("resnet18", "all"): ([64, 64, 128, 256, 512], [2, 4, 8, 16, 32]),
    ("resnet18", "dilated"): ([512], [8]),
    ("resnet_nano", "pyramid"): ([16, 32, 64, 128], [4, 8, 16, 32]),
    ("resnet_nano", "all"): ([16, 16, 32, 64, 128], [2, 4, 8, 16, 32]),
    ("resnet_nano", "dilated"): ([128], [8]),
    ("swin_nano", "all"): ([24, 48, 96, 192], [4, 8, 16, 32]),
    ("swin_tiny", "pyramid"): ([96, 192, 384, 768], [4, 8, 16, 32]),
    ("swin_base", "all"): ([128, 256, 512, 1024], [4, 8, 16, 32]),
}


@pytest.mark.parametrize("backbone, maps", list(MAPS))
def test_maps_have_the_announced_channels_and_strides(backbone, maps):
    channels, strides = MAPS[backbone, maps]
    with torch.device("meta"):
        encoder = Encoder(backbone, (64, 96), maps=maps)
        found = encoder(torch.empty(1, 3, 64, 96))
    assert (encoder.channels, encoder.strides, encoder.stride) == (channels, strides, strides[-1])
    assert [tuple(m.shape) for m in found] == [(1, c, 64 // s, 96 // s) for c, s in zip(channels, strides)]


def test_the_map_of_stride_2_follows_the_stems_relu():
    first = Encoder("resnet18", (64, 64), maps="all").eval()(IMAGE)[0]
    assert first.min() == 0 and first.max() > 0


@pytest.mark.parametrize("maps", ["pyramid", "all", "dilated"])
def test_the_maps_asked_for_do_not_change_the_parameters(maps):
    with torch.device("meta"):
        mine, plain = (Encoder("resnet18", (64, 64), maps=m) for m in (maps, "pyramid"))
    shapes = lambda encoder: [(name, p.shape) for name, p in encoder.named_parameters()]
    assert shapes(mine) == shapes(plain)


def test_the_dilated_resnet_keeps_layers_3_and_4_at_stride_8():
    with torch.device("meta"):
        encoder = Encoder("resnet18", (64, 64), maps="dilated")
    convs = {
        name.removeprefix("body."): (m.dilation[0], m.padding[0], m.stride[0])
        for name, m in encoder.named_modules()
        if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)
    }
    found = {name: convs[name] for name in convs if name.startswith(("layer3", "layer4"))}
    assert found == {
        "layer3.0.conv1": (1, 1, 1),  # formerly strided: half of its layer's dilation
        "layer3.0.conv2": (2, 2, 1),
        "layer3.1.conv1": (2, 2, 1),
        "layer3.1.conv2": (2, 2, 1),
        "layer4.0.conv1": (2, 2, 1),  # likewise
        "layer4.0.conv2": (4, 4, 1),
        "layer4.1.conv1": (4, 4, 1),
        "layer4.1.conv2": (4, 4, 1),
    }
    assert convs["layer2.0.conv1"] == (1, 1, 2)


@pytest.mark.parametrize("backbone", ["swin_nano", "swin_tiny"])
def test_a_dilated_swin_is_refused(backbone):
    with pytest.raises(
        UsageError, match=rf"model\.backbone: .* dilated .*'{backbone}'.*valid: .*resnet18, resnet_nano"
    ):
        Encoder(backbone, (64, 64), maps="dilated")


@pytest.mark.parametrize("architecture", ["fedhca2", "md", "tc", "matfl"])
@pytest.mark.parametrize("backbone", sorted(set(BACKBONES) - {"swin_small", "swin_base"}))
def test_every_backbone_fits_every_architecture(backbone, architecture):
    if architecture == "matfl" and "dilated" not in BACKBONES[backbone].maps:
        pytest.skip("no dilated form, and the refusal has its own test")
    model = shapes_only(architecture, backbone, (64, 96), SMALL)
    raw = model(torch.empty(2, 3, 64, 96, device="meta"), ("semseg",))
    assert raw["semseg"].shape == (2, 7, 64, 96)
    assert model.encoder.stride == (8 if architecture == "matfl" else 32) and len(model.encoder.strides) in (1, 4, 5)


@pytest.mark.parametrize(
    "backbone, widths",
    [
        ("resnet18", [64, 128, 256, 256, 512]),
        ("resnet_nano", [16, 32, 64, 64, 128]),
        ("swin_tiny", [96, 192, 384, 768]),
        ("swin_nano", [24, 48, 96, 192]),
    ],
)
def test_decoder_widths(backbone, widths):
    with torch.device("meta"):
        assert decoder_widths(Encoder(backbone, (64, 64), maps="all")) == widths


# -- sizes that cannot work ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture, backbone", PAIRS)
def test_images_of_other_multiples_are_refused(architecture, backbone):
    stride = 8 if architecture == "matfl" else 32
    with pytest.raises(UsageError, match=f"multiples of {stride}, got 60×64"):
        network(architecture, backbone)(IMAGE[:, :, :60])


def test_a_deepest_map_of_one_position_is_refused():
    with pytest.raises(UsageError, match=r"data\.size.*got \[32, 32\]; the smallest size is \[32, 64\]"):
        network("md", "resnet_nano", (32, 32))


def test_maps_that_are_not_a_factor_of_two_apart_are_noticed():
    model = network("md", "resnet_nano")
    maps = model.encoder(IMAGE)
    maps[-1] = maps[-1][:, :, :1]
    with pytest.raises(AssertionError, match="factor of 2"):
        model.decode(maps, "edge", (64, 64))


def test_swin_at_the_papers_size_doubles_exactly():
    raw = shapes_only("md", "swin_tiny")(torch.empty(1, 3, 448, 576, device="meta"), ("depth",))
    assert raw["depth"].shape == (1, 1, 448, 576)


# -- MaT-FL ----------------------------------------------------------------------------------------------------------


def test_matfl_decodes_as_torchvisions_deeplab():
    model = network("matfl", "resnet_nano").eval()
    theirs = DeepLabHead(128, SMALL["semseg"])
    theirs[0] = model.decoders["semseg"].aspp
    theirs[1], theirs[2], _ = model.decoders["semseg"].conv
    theirs[4] = model.heads["semseg"]  # now all layers are ours, and only the wiring is theirs
    theirs.eval()
    with torch.no_grad():
        expected = nn.functional.interpolate(theirs(model.encoder(IMAGE)[-1]), (64, 64), mode="bilinear")
        assert torch.equal(model(IMAGE)["semseg"], expected)


def test_matfls_decoder_at_full_size_is_torchvisions():
    with torch.device("meta"):
        theirs = DeepLabHead(512, 40)
    mine = shapes_only("matfl", "resnet18")
    shapes = [p.shape for part in (mine.decoders["semseg"], mine.heads["semseg"]) for p in part.parameters()]
    assert shapes == [p.shape for p in theirs.parameters()]
    aspp = [m for m in mine.decoders["semseg"].modules() if isinstance(m, nn.Conv2d)]
    assert [m.dilation[0] for m in aspp] == [1, 12, 24, 36, 1, 1, 1]
    assert [m.p for m in mine.decoders["semseg"].modules() if isinstance(m, nn.Dropout)] == [0.5]


def test_matfl_cannot_train_on_single_images():
    model = network("matfl", "resnet_nano").train()
    with pytest.raises(UsageError, match=r"train\.batch_size"):
        model(IMAGE[:1])
    assert model.eval()(IMAGE[:1])["edge"].shape == (1, 1, 64, 64)
