"""Training images with the labels of another one: which they are, what they look like, and who is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from archives import open_real
from fake_real import FakeReal, position_sample
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import DUO, TINY
from resuming import cut_and_whole, numbers_of

from fmtlbench.base.errors import UsageError
from fmtlbench.base.seeds import stream
from fmtlbench.config.resolve import resolve
from fmtlbench.data import batches
from fmtlbench.data.label_noise import draw_label_sources
from fmtlbench.data.open import open_datasets
from fmtlbench.data.transforms import stretch_labels
from fmtlbench.data.views import View, client_data
from fmtlbench.listeners import Listener
from fmtlbench.reports.labels import client_groups

CPU = torch.device("cpu")
MINI = Path(__file__).parents[3] / "shared" / "mini"
NEWCOMER = (
    "  - {dataset: nyud, tasks: [depth, edge], id: stranger, unseen: true}\nevaluation: [global, personal, unseen]\n"
)
ROOM = ("depth", "edge")


def views(scenario, noise=None, seed=0, **more):
    config = resolve("fedavg", scenario, seed=seed, overrides=TINY | {"data.label_noise": noise} | more)
    return client_data(config, open_datasets(config, None, Listener()))


# -- the choice --------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.sets(st.integers(0, 500), min_size=2, max_size=60), st.floats(0, 1), st.integers(0, 2**32))
def test_as_many_as_asked_and_none_keeps_its_own(images, share, seed):
    indices, wrong = np.array(sorted(images)), round(share * len(images))
    if share and not wrong:
        with pytest.raises(UsageError, match="is none"):
            draw_label_sources(indices, share, stream(seed, "n"))
        return
    sources = draw_label_sources(indices, share, stream(seed, "n"))
    assert len(sources) == wrong and sources == draw_label_sources(indices, share, stream(seed, "n"))
    assert all(image != source for image, source in sources.items())
    assert sources.keys() | sources.values() <= images
    if wrong > 1:  # handed round among them: no labels are lost or doubled
        assert sorted(sources) == sorted(sources.values())


def test_every_image_may_be_chosen_and_give_its_labels_to_every_other():
    drawn = [draw_label_sources(np.arange(5), 0.4, stream(seed, "n")) for seed in range(400)]
    assert {pair for sources in drawn for pair in sources.items()} == {
        (a, b) for a in range(5) for b in range(5) if a != b
    }


def test_one_wrong_image_takes_any_other_ones_labels():
    drawn = [draw_label_sources(np.arange(4), 0.25, stream(seed, "n")) for seed in range(200)]
    assert {len(sources) for sources in drawn} == {1}
    assert len({pair for sources in drawn for pair in sources.items()}) == 12


def test_a_client_with_one_image_has_no_labels_to_take():
    with pytest.raises(UsageError, match="1 training image, and no other"):
        draw_label_sources(np.array([7]), 1.0, stream(0, "n"))


# -- whose images ------------------------------------------------------------------------------------------------------


def test_only_training_images_of_the_named_client(scenario_file):
    plain, noisy = views(scenario_file), views(scenario_file, {"nyud-multi": 0.5})
    for mine, other in zip(plain, noisy):
        assert np.array_equal(mine.train.indices, other.train.indices) and not mine.train.labels_of
        for split, view in other.tests.items():
            assert not view.labels_of and np.array_equal(view.indices, mine.tests[split].indices)
    pascal, nyud = noisy
    assert not pascal.train.labels_of
    assert len(nyud.train.labels_of) == round(0.5 * len(nyud.train))
    assert nyud.train.labels_of.keys() <= set(nyud.train.indices.tolist())
    assert set(nyud.train.labels_of.values()) <= set(nyud.train.indices.tolist())  # not of personal test images
    rng = stream(0, "label_noise", "nyud-multi")
    assert nyud.train.labels_of == draw_label_sources(nyud.train.indices, 0.5, rng)


def test_validation_images_keep_their_labels(scenario_file):
    data = views(scenario_file, {"nyud-multi": 1.0}, **{"data.validation": 0.3})[1]
    assert len(data.train.labels_of) == len(data.train)
    validation = {index for view in data.tests.values() for index in view.indices.tolist()}
    assert validation and not validation & {*data.train.labels_of, *data.train.labels_of.values()}
    assert all(not view.labels_of for view in data.tests.values())


def test_another_seed_chooses_others(scenario_file):
    chosen = {tuple(views(scenario_file, {"nyud-multi": 0.5}, seed)[1].train.labels_of.items()) for seed in (0, 1)}
    assert len(chosen) == 2


# -- what a batch holds ------------------------------------------------------------------------------------------------


def epoch(view, tasks, augment=(), workers=0, seed=0, size=4):
    return list(batches.train_batches(view, tasks, size, np.random.default_rng(seed), augment, CPU, workers))


def joined(found):
    return {key: torch.cat([batch[key] for batch in found]) for key in found[0]}


def test_embedded_images_keep_their_pixels_and_get_foreign_labels(scenario_file):
    clean, noisy = (views(scenario_file, noise)[1].train for noise in (None, {"nyud-multi": 0.5}))
    one, other = joined(epoch(clean, ROOM)), joined(epoch(noisy, ROOM))
    assert torch.equal(one["image"], other["image"])
    order = clean.indices[np.random.default_rng(0).permutation(len(clean))].tolist()
    for place, index in enumerate(order[: len(one["image"])]):
        source = clean.dataset.batch(np.array([noisy.labels_of.get(index, index)]), keys=ROOM)
        expected = batches.to_tensors(source, CPU)
        assert all(torch.equal(other[task][place], expected[task][0]) for task in ROOM)
    assert not torch.equal(one["depth"], other["depth"])


def test_mirrored_embedded_images_have_mirrored_foreign_labels(scenario_file):
    view = views(scenario_file, {"nyud-multi": 1.0})[1].train
    straight, augmented = joined(epoch(view, ROOM)), joined(epoch(view, ROOM, ("flip",)))
    mirrored = 0
    for place in range(len(straight["image"])):
        turned = torch.equal(augmented["image"][place], straight["image"][place].flip(-1))
        mirrored += turned
        for task in ROOM:
            expected = straight[task][place].flip(-1) if turned else straight[task][place]
            assert torch.equal(augmented[task][place], expected)
    assert 0 < mirrored < len(straight["image"])


class Alike(FakeReal):
    """Images of one size: labels of another one fit as they are."""

    def sample(self, index, keys=None):
        whole = position_sample(22, 36, index)
        return {key: whole[key] for key in (keys or whole)}


@pytest.mark.parametrize("augment", [(), ("scale", "crop", "flip"), ("rotate", "scale")])
def test_real_images_and_foreign_labels_move_together(augment):
    """Row and column are in the image and in the labels of every image: wherever a pixel goes, its label goes too."""
    indices = np.arange(6)
    clean, noisy = View(Alike(6), indices), View(Alike(6), indices, labels_of={i: (i + 1) % 6 for i in range(6)})
    tasks = ("semseg", "human_parts", "normals")
    one, other = joined(epoch(clean, tasks, augment)), joined(epoch(noisy, tasks, augment))
    assert all(torch.equal(one[key], other[key]) for key in one)  # they do not depend on the image's number
    depths = [joined(epoch(view, ("depth",))) for view in (clean, noisy)]  # these do: image i has i metres more
    assert torch.equal(depths[0]["image"], depths[1]["image"])
    known = depths[0]["depth"] != 255
    assert set(torch.round(depths[1]["depth"] - depths[0]["depth"])[known].tolist()) == {1.0, -5.0}


def test_foreign_labels_of_another_size_are_stretched_by_the_nearest_pixel():
    dataset = FakeReal(4, size=(32, 48))
    view = View(dataset, np.array([0]), labels_of={0: 3})
    (got,) = batches.test_batches(view, ("semseg", "depth", "normals"), 1, CPU)
    own, foreign = dataset.sample(0), dataset.sample(3)
    (height, width), (rows, columns) = own["semseg"].shape, foreign["semseg"].shape
    assert (height, width) != (rows, columns)
    body = np.s_[..., (32 - height) // 2 :, (48 - width) // 2 :]
    for task in ("semseg", "depth", "normals"):
        inside = got[task][0].numpy()[body][..., :height, :width]
        picked = foreign[task][np.arange(height) * rows // height][:, np.arange(width) * columns // width]
        assert np.array_equal(inside, np.moveaxis(picked, -1, 0) if picked.ndim == 3 else picked)
    plain = next(batches.test_batches(View(dataset, np.array([0])), ("semseg",), 1, CPU))
    assert torch.equal(got["image"], plain["image"])


def test_labels_of_the_right_size_are_left_alone():
    sample = position_sample(5, 6)
    labels = stretch_labels(sample, (5, 6))
    assert "image" not in labels and all(value is sample[key] for key, value in labels.items())


@pytest.mark.parametrize("workers", [1, 2])
def test_loading_processes_move_no_number(workers):
    view = View(FakeReal(9), np.arange(9), labels_of=draw_label_sources(np.arange(9), 0.6, stream(0, "n")))
    augment = ("scale", "crop", "flip", "photometric")
    one, other = (joined(epoch(view, ("semseg", "depth"), augment, count)) for count in (0, workers))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_what_is_wrong_with_foreign_labels_names_the_image_they_are_of():
    class Skewed(FakeReal):
        def sample(self, index, keys=None):
            sample = super().sample(index, keys)
            return {key: value[1:] if (index, key) == (2, "depth") else value for key, value in sample.items()}

    with pytest.raises(UsageError, match=r"^image 0002: depth has \d+×\d+ pixels, its image \d+×\d+$"):
        epoch(View(Skewed(3), np.array([0, 1]), labels_of={0: 2}), ("depth",))


@pytest.mark.skipif(not MINI.is_dir(), reason="the real samples are not beside this checkout")
@pytest.mark.parametrize("domain", ["nyud", "pascal"])
def test_real_samples_of_all_sizes(domain):
    dataset = open_real(domain, "train", MINI, size=(512, 640))
    indices = np.arange(len(dataset))
    view = View(dataset, indices, labels_of=draw_label_sources(indices, 1.0, stream(3, "n")))
    tasks = tuple(dataset.tasks)
    clean, noisy = (joined(list(batches.test_batches(v, tasks, 1, CPU))) for v in (View(dataset, indices), view))
    assert torch.equal(clean["image"], noisy["image"])
    for task in tasks:
        same = [torch.equal(clean[task][i], noisy[task][i]) for i in indices]
        assert not all(same)  # some may be: labels of images without people say nothing
        for index in indices:
            there = set(torch.unique(noisy[task][index]).tolist()) - {255}
            if task == "semseg":
                assert there <= set(np.unique(dataset.sample(view.labels_of[int(index)])["semseg"]).tolist())
    sizes = {dataset.sample(i, ["image"])["image"].shape for i in indices}
    assert domain == "nyud" or len(sizes) > 1
    trained = epoch(view, tasks, ("scale", "crop", "flip", "photometric"), size=2)
    assert all(batch[key].shape[-2:] == (512, 640) for batch in trained for key in batch)


# -- runs --------------------------------------------------------------------------------------------------------------


def test_a_run_says_who_has_wrong_labels_and_goes_on_as_if_never_stopped(tiny_run, shared_run, tmp_path):
    from fmtlbench.runs.folder import RunFolder

    noise = {"data.label_noise": {"nyud-multi": 0.5}}
    plain, (resumed, noisy) = shared_run("fedavg"), cut_and_whole(partial(tiny_run, "fedavg", **noise), tmp_path, 2)
    assert numbers_of(resumed) == numbers_of(noisy)
    told = {c["id"]: c.get("label_noise") for c in noisy.summary["clients"]}
    assert told == {"pascal-human_parts": None, "nyud-multi": 0.5}
    assert all("label_noise" not in client for client in plain.summary["clients"])
    assert plain.folder != noisy.folder and plain.summary["setting"] != noisy.summary["setting"]
    one, other = (RunFolder(run.folder).rounds()[0]["losses"] for run in (plain, noisy))
    assert one["pascal-human_parts"] == other["pascal-human_parts"]
    assert one["nyud-multi"] != other["nyud-multi"]


def test_nobody_with_wrong_labels_is_as_before(shared_run):
    none, zero = shared_run("fedavg"), shared_run("fedavg", **{"data.label_noise": {"nyud-multi": 0.0}})
    assert (none.folder / "metrics.jsonl").read_bytes() == (zero.folder / "metrics.jsonl").read_bytes()
    assert none.summary["clients"] == zero.summary["clients"]


def test_clients_with_wrong_labels_are_a_group_of_their_own():
    def client(number, **more):
        return {"id": f"nyud-{number}", "dataset": "nyud", "tasks": ["depth"], **more}

    clean = [client(1), client(2)]
    noisy = [client(3, label_noise=0.3), client(4, label_noise=0.3), client(5, label_noise=0.6)]
    assert client_groups(clean + noisy) == {
        "nyud-1": "nyud",
        "nyud-2": "nyud",
        "nyud-3": "nyud-noise-0.3",
        "nyud-4": "nyud-noise-0.3",
        "nyud-5": "nyud-5",
    }
    assert client_groups(noisy[:2]) == dict.fromkeys(("nyud-3", "nyud-4"), "nyud-noise-0.3")
    assert client_groups([client(1), client(2, label_noise=0.0)]) == {"nyud-1": "nyud", "nyud-2": "nyud"}


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        ({"nyud-mult": 0.5}, ["data.label_noise.nyud-mult: no client", "did you mean 'nyud-multi'"]),
        ({"stranger": 0.5}, ["'stranger' is unseen and trains in no round", "valid: nyud-multi"]),
        ({"nyud-multi": 1.5}, ["data.label_noise", "1.5"]),
        ({"nyud-multi": -0.1}, ["data.label_noise", "-0.1"]),
        ({"nyud-multi": float("nan")}, ["data.label_noise"]),
        ({"nyud-multi": "much"}, ["data.label_noise.nyud-multi", "much"]),
        (0.5, ["data.label_noise", "0.5"]),
    ],
)
def test_bad_values_are_refused_when_they_are_read(tmp_path, noise, said):
    file = tmp_path / "newcomer.yml"
    file.write_text(DUO.rpartition("evaluation")[0] + NEWCOMER)
    with pytest.raises(UsageError) as caught:
        resolve("fedavg", str(file), overrides=TINY | {"data.label_noise": noise})
    assert all(words in str(caught.value) for words in said), caught.value


def test_a_share_of_no_image_is_refused(scenario_file):
    with pytest.raises(UsageError, match=r"^data\.label_noise: client 'nyud-multi': 0\.01 of \d+ training images"):
        views(scenario_file, {"nyud-multi": 0.01})


def test_one_client_is_named_on_the_command_line(scenario_file, tiny_flags, capsys):
    from fmtlbench.cli import main

    words = ["show", "config", "--algo", "fedavg", "--scenario", scenario_file, *tiny_flags]
    main([*words, "--set", "data.label_noise.nyud-multi=0.25"])
    assert "nyud-multi: 0.25" in capsys.readouterr().out
    assert main([*words, "--set", f"data.label_noise={json.dumps({'nobody': 0.25})}"]) == 2
    assert "no client 'nobody'" in capsys.readouterr().err
