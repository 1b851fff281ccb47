"""Any network of timm as a backbone: names, maps, weights, drop path, and the line for those that do not fit."""

from __future__ import annotations

import copy
import subprocess
import sys
import textwrap

import pytest
import timm
import torch
from nets import SMALL, network, shapes_only
from safetensors.torch import save_file
from timm.layers import DropPath

from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.config.run_config import ModelConfig
from fmtlbench.engine.client_models import build_model
from fmtlbench.networks.backbones import Encoder, check_sizes
from fmtlbench.networks.catalog import misfit, timm_names
from fmtlbench.networks.complexity import flops
from fmtlbench.networks.timm_networks import find_form
from fmtlbench.networks.weights import check_weights, describe_weights, weights_identity

SIZE = (64, 96)
IMAGE = torch.rand(2, 3, *SIZE, generator=torch.Generator().manual_seed(1))

# The smallest of each family: plain and wrapped networks, channels first and last, with and without drop path, some
# laid out for one image size.
FAMILIES = [
    "resnet18",
    "convnext_atto",
    "efficientnet_b0",
    "mobilenetv3_small_050",
    "swin_tiny_patch4_window7_224",
    "pvt_v2_b0",
    "regnetx_002",
    "vgg11",
    "hrnet_w18_small",
    "tiny_vit_5m_224",
    "mambaout_femto",
    "twins_svt_small",
    "edgenext_xx_small",
    "efficientformerv2_s0",
    "xception41p",
]
NO_DROP_PATH = ["vgg11", "hrnet_w18_small"]


def whole_network(name: str, size=SIZE) -> torch.nn.Module:
    """timm's classifier, as the encoder of the same name is made."""
    return timm.create_model(name, **{k: v for k, v in find_form(name, size, 0.0, "pyramid").options.items()
                                      if k != "out_indices"})  # fmt: skip


# -- what fits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_families_build_run_and_learn(name):
    model = network("fedhca2", f"timm/{name}", SIZE).train()
    assert model.encoder.strides == [4, 8, 16, 32]
    maps = model.encoder(IMAGE)
    assert [tuple(m.shape[1:]) for m in maps] == [(c, 64 // s, 96 // s) for c, s in
                                                 zip(model.encoder.channels, model.encoder.strides)]  # fmt: skip
    raw = model(IMAGE)
    assert {task: tuple(z.shape) for task, z in raw.items()} == {task: (2, n, *SIZE) for task, n in SMALL.items()}
    sum(z.square().mean() for z in raw.values()).backward()
    first = next(p for p in model.encoder.parameters() if p.dim() == 4)
    assert first.grad.isfinite().all() and first.grad.any()


@pytest.mark.parametrize("name", FAMILIES)
def test_drop_path_where_there_is_one(name):
    with torch.device("meta"):
        assert not any(
            isinstance(module, DropPath) and module.drop_prob for module in Encoder(f"timm/{name}", SIZE).modules()
        )
        if name in NO_DROP_PATH:
            with pytest.raises(
                UsageError, match=rf"model\.drop_path: timm/{name} has no drop path, got 0\.2; valid: 0"
            ):
                Encoder(f"timm/{name}", SIZE, drop_path=0.2)
        else:
            rates = [
                m.drop_prob for m in Encoder(f"timm/{name}", SIZE, drop_path=0.2).modules() if isinstance(m, DropPath)
            ]
            assert max(rates) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"vgg11"}))  # the classifier of a VGG takes half a gigabyte
def test_every_tensor_of_a_file_arrives(tmp_path, name):
    whole = whole_network(name).eval()
    save_file(
        {key: value.contiguous() for key, value in whole.state_dict().items()}, file := tmp_path / "w.safetensors"
    )
    encoder = Encoder(f"timm/{name}", SIZE, str(file)).eval()
    theirs, mine = whole.state_dict(), encoder.body.state_dict()
    plain = {key.replace("_", "."): value for key, value in theirs.items()}
    stripped = {key.removeprefix("model.").removeprefix("body.").replace("_", "."): v for key, v in mine.items()}
    assert len(stripped) == len(mine) > 20 and all(torch.equal(value, plain[key]) for key, value in stripped.items())
    with torch.no_grad():
        assert encoder(IMAGE)[-1].isfinite().all()


def test_the_last_map_is_the_one_a_classifier_pools(tmp_path):
    for name in ("resnet18", "regnetx_002", "pvt_v2_b0"):
        whole = whole_network(name).eval()
        save_file(whole.state_dict(), file := tmp_path / f"{name}.safetensors")
        with torch.no_grad():
            last = Encoder(f"timm/{name}", SIZE, str(file)).eval()(IMAGE)[-1]
            assert torch.allclose(last, whole.forward_features(IMAGE), atol=1e-5)


@pytest.mark.parametrize(
    "name, maps, strides",
    [
        ("resnet50", "all", [2, 4, 8, 16, 32]),
        ("vgg11", "all", [2, 4, 8, 16, 32]),  # its map of stride 1 is left out
        ("convnext_atto", "all", [4, 8, 16, 32]),
        ("resnet50", "dilated", [8]),
        ("convnext_atto", "dilated", [8]),
    ],
)
def test_maps_of_other_architectures(name, maps, strides):
    with torch.device("meta"):
        encoder = Encoder(f"timm/{name}", SIZE, maps=maps)
        found = encoder(torch.empty(1, 3, *SIZE))
    assert encoder.strides == strides
    assert [tuple(m.shape[1:]) for m in found] == [(c, 64 // s, 96 // s) for c, s in zip(encoder.channels, strides)]


@pytest.mark.parametrize("architecture", ["fedhca2", "md", "tc", "matfl"])
@pytest.mark.parametrize("backbone", ["timm/resnet50", "timm/xception41p"])
def test_every_architecture_takes_it_and_copies_of_it(architecture, backbone):
    model = shapes_only(architecture, backbone, SIZE, SMALL)
    assert model(torch.empty(2, 3, *SIZE, device="meta"))["semseg"].shape == (2, 7, *SIZE)
    assert flops(model, SIZE) > 1e8  # of a copy


def test_a_copy_runs_by_itself():
    """Some of timm's wrappers collect maps with hooks, which must be those of the copy."""
    first = network("fedhca2", "timm/xception41p", SIZE).eval()
    second = copy.deepcopy(first)
    with torch.no_grad():
        for parameter in second.encoder.parameters():
            parameter.zero_()
        before, other, after = first(IMAGE)["edge"], second(IMAGE)["edge"], first(IMAGE)["edge"]
    assert torch.equal(before, after) and not torch.equal(before, other)


@pytest.mark.parametrize("name", ["tiny_vit_5m_224", "efficientformerv2_s0"])
def test_new_weights_count_although_it_was_evaluated_before(name):
    """These networks keep attention biases while they evaluate."""
    encoder = Encoder(f"timm/{name}", SIZE).eval()
    with torch.no_grad():
        before = encoder(IMAGE)[-1]
        for key, parameter in encoder.named_parameters():
            if "attention_biases" in key:
                parameter.normal_(std=3)
        after = encoder.eval()(IMAGE)[-1]
        fresh = Encoder(f"timm/{name}", SIZE).eval()
        fresh.load_state_dict(encoder.state_dict())
        assert torch.equal(after, fresh(IMAGE)[-1]) and not torch.equal(after, before)


@pytest.mark.parametrize("init", ["torch", "lecun"])
def test_looking_at_it_first_moves_no_random_number(init):
    """The first client's encoder is examined before it is built, the second one's is not."""
    config = ModelConfig("fedhca2", "timm/edgenext_xx_small", pretrained=False, init=init)
    find_form.cache_clear()
    first, second = (build_model(config, SIZE, SMALL, seed=3) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values()))


def test_a_listed_backbone_by_its_name_in_timm_is_the_same_network():
    listed, named = (
        build_model(ModelConfig("md", backbone, pretrained=False), SIZE, SMALL, seed=3)
        for backbone in ("resnet18", "timm/resnet18.tv_in1k")
    )
    assert list(listed.state_dict()) == list(named.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(listed.state_dict().values(), named.state_dict().values()))


# -- names -----------------------------------------------------------------------------------------------------------


def test_names_are_those_timm_lists():
    assert list(timm_names()) == sorted(timm.list_models())


def test_names_are_checked_without_torch():
    code = """\
        import sys
        from fmtlbench.base.errors import UsageError
        from fmtlbench.config.resolve import resolve
        assert resolve("fedavg", "st_mt_1", overrides={"model.backbone": "timm/resnet50"}).model.pretrained
        try:
            resolve("fedavg", "st_mt_1", overrides={"model.backbone": "timm/resnet5O"})
        except UsageError as error:
            print(error)
        heavy = [name for name in ("torch", "timm", "torchvision") if name in sys.modules]
        assert not heavy, heavy
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "model.backbone: timm has no network 'resnet5O'; did you mean 'resnet50'" in done.stdout


@pytest.mark.parametrize(
    "backbone, parts",
    [
        ("resnet50", ["no backbone 'resnet50'; timm's is 'timm/resnet50'"]),
        ("resnet50.tv_in1k", ["timm's is 'timm/resnet50.tv_in1k'"]),
        ("timm/convnext_atoo", ["timm has no network 'convnext_atoo'", "'convnext_atto'"]),
        ("timm/", ["timm has no network ''", "`fmtlbench list backbones 'timm/*'` lists them"]),
        ("timm/../resnet18", ["timm has no network ''"]),
        ("timm/timm/resnet18", ["timm has no network 'timm/resnet18'", "'resnet18'"]),
        ("swin_nan", ["did you mean 'swin_nano'"]),
    ],
)
def test_unknown_names(backbone, parts):
    reason = misfit(backbone, "pyramid")
    assert all(part in reason for part in parts) and len(reason) < 200
    with pytest.raises(UsageError, match=r"^model\.backbone: "):
        Encoder(backbone, SIZE)


def test_names_that_may_fit():
    assert [misfit(f"timm/{name}", "pyramid") for name in ("resnet50", "resnet50.tv_in1k", "vgg11")] == [None] * 3


def test_the_name_is_part_of_what_makes_a_run():
    configs = [
        resolve("fedavg", "st_mt_1", overrides={"model.backbone": name}) for name in ("resnet18", "timm/resnet18")
    ]
    assert configs[0].hash() != configs[1].hash()


# -- what does not fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, maps, reason",
    [
        ("vit_tiny_patch16_224", "pyramid", r"has maps of stride 16, expected 4, 8, 16, 32; missing: 4, 8, 32"),
        ("levit_128s", "all", r"has maps of stride 16, 32, 64, expected 4, 8, 16, 32; missing: 4, 8$"),
        ("inception_v3", "pyramid", r"cannot take images of 64×96: .*Kernel size"),
        ("nest_tiny", "pyramid", r"gives no feature maps for images of 64×96: Model only handles square inputs"),
        ("mvitv2_tiny", "pyramid", r"gives no feature maps for images of 64×96: AssertionError"),
        ("pvt_v2_b0", "dilated", r"has no dilated form"),
        ("vgg11", "dilated", r"has no dilated form"),
        ("swin_tiny_patch4_window7_224", "dilated", r"has no dilated form"),
        ("nasnetalarge", "all", r"gives maps of 96×31×47, .* for images of 64×96, expected 96×32×48"),
    ],
)
def test_maps_that_do_not_fit(name, maps, reason):
    with pytest.raises(UsageError, match=rf"^model\.backbone: timm/{name} {reason}"):
        Encoder(f"timm/{name}", SIZE, maps=maps)


def test_a_network_without_feature_maps(monkeypatch):
    def create(name, **options):
        raise RuntimeError("features_only not implemented for this network.\nTry another one.")

    monkeypatch.setattr(timm, "create_model", create)
    find_form.cache_clear()
    with pytest.raises(UsageError, match=r"timm/resnet34 gives no feature maps for .*: features_only not implemented"):
        Encoder("timm/resnet34", SIZE)


def test_unknown_weights():
    with pytest.raises(UsageError, match=r"timm/resnet50 has no weights 'tv_in2k'; did you mean .*'tv_in1k'"):
        Encoder("timm/resnet50.tv_in2k", SIZE)


@pytest.mark.parametrize("name", ["resnet18", "swin_tiny_patch4_window7_224", "pvt_v2_b0"])
def test_other_image_sizes_keep_the_shapes(name):
    check_sizes(ModelConfig("fedhca2", f"timm/{name}", pretrained=False), [(64, 64), (64, 96)], "pyramid")


def test_an_encoder_whose_shapes_depend_on_the_image_size():
    config = ModelConfig("fedhca2", "timm/efficientformerv2_s0", pretrained=False)
    check_sizes(config, [(64, 96), (64, 96)], "pyramid")
    with pytest.raises(UsageError, match=r"other shapes for images of \[64, 96\] than of \[64, 64\].*data\.size"):
        check_sizes(config, [(64, 64), (64, 96)], "pyramid")


# -- weights ---------------------------------------------------------------------------------------------------------


def test_timms_own_weights_are_asked_for_by_their_name(monkeypatch, tmp_path):
    save_file(whole_network("regnetx_002").state_dict(), file := tmp_path / "model.safetensors")
    asked = []
    monkeypatch.setattr(
        "fmtlbench.networks.weights.fetch", lambda name: asked.append(name) or (file, f"{name}.default")
    )
    config = ModelConfig("fedhca2", "timm/regnetx_002", pretrained=True)
    assert check_weights(config, SIZE, "pyramid") == [] and asked == ["regnetx_002"]
    assert weights_identity(config)["name"] == "regnetx_002.default"
    assert describe_weights(config) == "timm's regnetx_002"


def test_weights_of_another_network_are_refused(tmp_path):
    save_file(whole_network("regnetx_002").state_dict(), file := tmp_path / "w.safetensors")
    config = ModelConfig("fedhca2", "timm/pvt_v2_b0", pretrained=True, weights=str(file))
    with pytest.raises(Exception, match=r"do not fit the encoder pvt_v2_b0: \d+ missing"):
        check_weights(config, SIZE, "pyramid")


# -- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_rounds(tiny_run):
    """By its name in timm the encoder is the listed one, and so is every number."""
    listed, named = (
        tiny_run("fedavg", rounds=2, **{"model.backbone": backbone, "model.init": "torch"})
        for backbone in ("resnet18", "timm/resnet18")
    )
    assert listed.folder != named.folder
    assert [row["value"] for row in named.summary["scores"]] == [row["value"] for row in listed.summary["scores"]]


def test_a_run_is_refused_before_its_folder_is_made(tiny_run, tmp_path):
    for backbone, reason in (
        ("timm/vit_tiny_patch16_224", "has maps of stride 16"),
        ("timm/efficientformerv2_s0", "parameters of other shapes"),
    ):
        with pytest.raises(UsageError, match=rf"model\.backbone: {backbone}.*{reason}"):
            tiny_run("fedavg", **{"model.backbone": backbone})
    assert not list((tmp_path / "runs").rglob("*"))
