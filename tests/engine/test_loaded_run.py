"""`fmtlbench.load` and `fmtlbench export --weights`: networks of stored runs in other hands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from kit import DUO, TINY
from safetensors.torch import load_file

import fmtlbench
from fmtlbench.base.errors import UsageError
from fmtlbench.cli import main
from fmtlbench.data.tensors import MEAN, STD
from fmtlbench.inference.stored_run import StoredRun
from fmtlbench.listeners import Listener

CPU = torch.device("cpu")


def make(folder: Path, **given):
    (folder / "duo.yml").write_text(DUO)
    arguments = {"rounds": 1, "out": folder / "runs", "device": "cpu", **TINY}
    return fmtlbench.run("fedavg", folder / "duo.yml", **{**arguments, **given})


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return make(tmp_path_factory.mktemp("loaded"))


def test_the_package_lists_what_it_offers_without_torch():
    code = (
        "import sys, fmtlbench; assert {'run', 'load', 'RunResult', 'UsageError'} <= set(dir(fmtlbench)); "
        "assert 'torch' not in sys.modules; fmtlbench.load; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(AttributeError, match="no attribute 'loads'"):
        fmtlbench.loads  # noqa: B018


def test_a_loaded_run_says_what_it_is(result):
    run = fmtlbench.load(result.folder)
    assert list(run.clients) == ["pascal-human_parts", "nyud-multi"]
    client = run.clients["nyud-multi"]
    assert (client.dataset, client.tasks) == ("nyud", ("depth", "edge")) and not client.model.training
    assert run.config.seed == 0 and run.summary == result.summary
    assert client.model is client.model and "head" in run.clients["pascal-human_parts"].class_names["human_parts"]
    with pytest.raises(TypeError):
        run.clients["other"] = client


def test_predictions_are_those_of_the_stored_run(result):
    run, stored = fmtlbench.load(result.folder), StoredRun(result.folder)
    stored.open(None, CPU, Listener())
    for party in stored.parties:
        view = stored.view(party, "global")
        images = np.stack([view.dataset.sample(int(i), ("image",))["image"] for i in view.indices])
        expected = list(stored.predictions(party, "global", party.tasks, range(len(view))))
        found = run.predict(party.id, images)
        alone = run.predict(party.id, images[1])
        tensors = run.predict(party.id, torch.from_numpy(images).movedim(3, 1))
        for task in party.tasks:
            wanted = np.stack([p.values[task] for p in expected])
            assert np.array_equal(found[task], wanted) and np.array_equal(tensors[task], wanted)
            assert alone[task].shape == wanted[1].shape and np.allclose(alone[task], wanted[1], atol=1e-4)
        ready = (
            torch.from_numpy(images).movedim(3, 1).float() / 255 - torch.tensor(MEAN)[:, None, None]
        ) / torch.tensor(STD)[:, None, None]
        for task, values in run.predict(party.id, ready).items():
            assert np.mean(np.isclose(values, found[task], atol=1e-4)) > 0.99


def test_images_of_other_sizes_come_back_at_their_own(result, tmp_path):
    run = fmtlbench.load(result.folder)  # padded to 32×64
    small = np.random.default_rng(0).integers(0, 256, (20, 50, 3), dtype=np.uint8)
    assert {v.shape for v in run.predict("nyud-multi", small).values()} == {(20, 50)}
    assert run.predict("nyud-multi", np.tile(small, (2, 2, 1)))["depth"].shape == (32, 64)  # without the border
    copy = Path(shutil.copytree(result.folder, tmp_path / "stretched"))
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(text.replace("resize: none", "resize: fixed"))
    stretched = fmtlbench.load(copy)
    assert stretched.predict("nyud-multi", np.tile(small, (2, 2, 1)))["depth"].shape == (40, 100)


def test_wrong_questions_are_one_line(result, tmp_path):
    run = fmtlbench.load(result.folder)
    with pytest.raises(UsageError, match="no client 'nyud'; did you mean 'nyud-multi'"):
        run.predict("nyud", np.zeros((4, 4, 3), np.uint8))
    for wrong in (
        np.zeros((4, 4, 3)),
        np.zeros((3, 4, 4), np.uint8),
        np.zeros((4, 4), np.uint8),
        np.zeros((0, 4, 4, 3), np.uint8),
        torch.zeros(4, 4, 3, dtype=torch.uint8),
        torch.zeros(3, 4, 4, dtype=torch.int64),
    ):
        with pytest.raises(UsageError, match=r"images: got .*expected uint8 arrays \[H, W, 3\]"):
            run.predict("nyud-multi", wrong)
    with pytest.raises(UsageError, match="no run in it"):
        fmtlbench.load(tmp_path)
    with pytest.raises(UsageError, match="--device gpu"):
        fmtlbench.load(result.folder, device="gpu")


@pytest.mark.usefixtures("checkpoints_stay")
def test_a_run_with_a_checkpoint_alone_loads_too(tiny_run):
    folder = tiny_run("fedbabu", rounds=1).folder  # fine-tunes its networks before they are scored
    image = np.full((32, 64, 3), 90, np.uint8)
    kept = fmtlbench.load(folder).predict("nyud-multi", image)["depth"]
    shutil.rmtree(folder / "networks")
    assert np.array_equal(fmtlbench.load(folder).predict("nyud-multi", image)["depth"], kept)


# -- export ------------------------------------------------------------------------------------------------------------

FEATURES = """\
import json, sys
import timm, torch
from safetensors.torch import load_file

about = json.loads(open(sys.argv[1] + "/config.json").read())["clients"][sys.argv[2]]["timm"]
encoder = timm.create_model(about["name"], features_only=True, **about["options"]).eval()
encoder.load_state_dict(load_file(f"{sys.argv[1]}/{sys.argv[2]}/encoder.safetensors"), strict=True)
with torch.no_grad():
    maps = encoder(torch.load(sys.argv[3]))
torch.save(maps, sys.argv[4])
assert not any(name.startswith("fmtlbench") for name in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["swin_nano", "resnet_nano", "resnet18"])
def test_the_encoder_loads_strictly_into_timm_and_gives_equal_features(tmp_path, capsys, backbone):
    sizes = {"pascal": [32, 32], "nyud": [64, 64]}
    result = make(tmp_path, **{"model.backbone": backbone, "data.size": sizes})
    assert main(["export", "--weights", str(result.folder), "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "out" / client / "model.safetensors") for client in ("pascal-human_parts", "nyud-multi")
    ]
    (tmp_path / "features.py").write_text(FEATURES)
    image = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    torch.save(image, tmp_path / "image.pt")
    words = [tmp_path / "features.py", tmp_path / "out", "nyud-multi", tmp_path / "image.pt", tmp_path / "maps.pt"]
    subprocess.run([sys.executable, *map(str, words)], check=True, cwd=tmp_path, timeout=300)
    model = fmtlbench.load(result.folder).clients["nyud-multi"].model
    with torch.no_grad():
        expected = model.encoder.body(image)
    for found, wanted in zip(torch.load(tmp_path / "maps.pt"), expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)


def test_an_export_has_all_tensors_and_a_card_that_can_be_followed(result, tmp_path, capsys):
    out = tmp_path / "card"
    assert main(["export", "--weights", str(result.folder), "-o", str(out), "--client", "nyud-multi"]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["README.md", "config.json", "nyud-multi"]
    tensors = load_file(out / "nyud-multi" / "model.safetensors")
    model = fmtlbench.load(result.folder).clients["nyud-multi"].model
    assert tensors.keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in model.state_dict().items())
    about = json.loads((out / "config.json").read_text())
    assert about["config"]["seed"] == 0 and about["clients"]["nyud-multi"]["tasks"]["depth"]["channels"] == 1
    card = (out / "README.md").read_text()
    for words in (
        "FedAvg",
        "one single-task and one two-task client",
        "RMSE",
        "licence:",
        str(list(MEAN)),
        "synth-nyud",
    ):
        assert words in card
    program = card.split("```python\n")[1].split("```")[0]
    assert len([line for line in program.splitlines() if line]) <= 10 and "fmtlbench" not in program
    subprocess.run([sys.executable, "-c", program], check=True, cwd=out, timeout=300)
    # again, all of them, in place of the first
    assert main(["export", "--weights", str(result.folder), "-o", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["README.md", "config.json", "nyud-multi", "pascal-human_parts"]


def test_files_of_others_in_an_export_stay(result, tmp_path, capsys):
    card = tmp_path / "card"
    command = ["export", "--weights", str(result.folder), "-o", str(card)]
    assert main(command) == 0
    assert main(command) == 0, "an export is replaced by another"
    (card / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert main(command) == 2
    assert "would remove notes.txt" in capsys.readouterr().err
    assert (card / "notes.txt").read_text() == "mine"


def test_mistakes_are_one_line_and_nothing_is_written(result, tmp_path, capsys):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "config.json").write_text("[]")
    for argv, said in (
        ((result.folder, "-o", mine), "holds other files than an earlier export"),
        ((result.folder, "-o", mine / "config.json"), "expected a folder"),
        ((result.folder, "-o", tmp_path / "new", "--client", "nyud"), "did you mean 'nyud-multi'"),
        ((tmp_path, "-o", tmp_path / "new"), "no run in it"),
    ):
        assert main(["export", "--weights", *map(str, argv)]) == 2
        err = capsys.readouterr().err
        assert said in err and len([line for line in err.splitlines() if line.startswith("fmtlbench:")]) == 1
    assert not (tmp_path / "new").exists() and (mine / "config.json").read_text() == "[]"
