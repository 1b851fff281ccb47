"""Every value the readers give, on archives whose labels are known pixel by pixel."""

from __future__ import annotations

import pickle

import archives
import numpy as np
import pytest
from archives import open_real
from scipy.io import loadmat

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.config.run_config import DataConfig
from fmtlbench.data.datasets import DATASETS
from fmtlbench.data.datasets._edges import scoring_edges, training_edges
from fmtlbench.data.datasets._person_parts import PART_CLASS
from fmtlbench.data.open import open_split
from fmtlbench.metrics.edges.image import label_edges

KINDS = {"image": np.uint8, "normals": np.float32, "depth": np.float32}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    archives.write_nyudv2(folder)
    archives.write_nyud_mt(folder)
    archives.write_pascal(folder)
    return folder


def splits(root, domain, layout=None):
    for split in ("train", "test"):
        yield split, open_real(domain, split, root, layout=layout)


@pytest.mark.parametrize(("domain", "layout"), [("nyud", "NYUDv2"), ("nyud", "NYUD_MT"), ("pascal", None)])
def test_every_sample_follows_the_convention(root, domain, layout):
    for split, dataset in splits(root, domain, layout):
        assert dataset.tasks == DATASETS[domain].tasks and dataset.info is DATASETS[domain]
        for index in range(len(dataset)):
            sample = dataset.sample(index)
            assert list(sample) == ["image", *dataset.tasks]
            for key, value in sample.items():
                depth = (3,) if key in ("image", "normals") else ()
                assert value.shape == (*archives.size_of(split, index), *depth), key
                assert value.dtype == KINDS.get(key, np.uint8), key
                assert value.flags.writeable


@pytest.mark.parametrize("layout", ["NYUDv2", "NYUD_MT"])
def test_nyud_values(root, layout):
    for split, dataset in splits(root, "nyud", layout):
        assert dataset.archive == layout and dataset.ids == list(archives.NYUD_IDS[split])
        for index in range(len(dataset)):
            sample, truth = dataset.sample(index), archives.nyud_labels(split, index)
            for key in ("semseg", "edge", "depth"):
                assert np.array_equal(sample[key], truth[key]), (split, index, key)
            assert np.abs(sample["normals"] - truth["normals"]).max() < 0.005
            unknown = (truth["normals"] == 0).all(-1)
            assert unknown.any() and np.array_equal((sample["normals"] == 0).all(-1), unknown)
            off = np.abs(sample["image"].astype(int) - truth["image"]).max()
            assert off == 0 if layout == "NYUDv2" else off <= 6  # JPEG


def test_the_older_layout_is_resampled_when_only_the_resolution_differs(tmp_path):
    folder = archives.write_nyud_mt(tmp_path)
    truth = archives.nyud_labels("train", 0)
    np.save(folder / "edge" / "0003.npy", truth["edge"].repeat(2, 0).repeat(2, 1))
    np.save(folder / "depth" / "0003.npy", truth["depth"][::2, ::2])
    sample = open_real("nyud", "train", tmp_path).sample(0)
    assert np.array_equal(sample["edge"], truth["edge"])
    assert np.array_equal(sample["depth"], truth["depth"][::2, ::2].repeat(2, 0).repeat(2, 1))
    np.save(folder / "depth" / "0003.npy", truth["depth"].T)
    with pytest.raises(FmtlbenchError, match=r"0003\.npy: 40×30 pixels .* its image has 30×40"):
        open_real("nyud", "train", tmp_path).sample(0)


def test_pascal_values(root):
    for split, dataset in splits(root, "pascal"):
        for index in range(len(dataset)):
            shape = archives.size_of(split, index)
            sample, segments = dataset.sample(index), archives.label_map(shape, index)
            assert np.array_equal(sample["semseg"], archives.voc_labels(shape))
            assert np.array_equal(sample["human_parts"], archives.part_labels(split, index)), (split, index)
            assert np.array_equal(sample["sal"], archives.soft_saliency(shape) >= 128)
            trusted = np.isin(segments, [archives.CONTEXT_CLASSES[name] for name in ("wall", "tvmonitor")])
            expected = np.where(trusted[..., None], archives.unit_normals(shape), 0)
            assert np.abs(sample["normals"] - expected).max() < 0.005
            assert not sample["normals"][~trusted].any()  # people, and "unknown", which both datasets have
            draw = training_edges if split == "train" else scoring_edges
            assert np.array_equal(sample["edge"], draw(segments)) and sample["edge"].max() == 1


def test_miniature_annotations_nest_like_the_real_ones(root):
    things = loadmat(root / "PASCALContext" / "human_parts" / "2008_000008.mat")["anno"][0][0][1][0]
    assert [int(thing[1][0][0]) for thing in things] == [15, 15]
    assert str(things[0][3][0][0][0][0]) == "hair" and things[0][3][0][0][1].shape == (30, 40)


def test_the_24_parts_of_a_person_become_six():
    assert len(PART_CLASS) == 24 and set(PART_CLASS.values()) == set(range(1, 7))
    for left, number in PART_CLASS.items():
        if left.startswith("l"):
            assert PART_CLASS["r" + left[1:]] == number, left


def test_edges_are_those_of_the_public_code(reference):
    golden = np.load(reference / "D_edges" / "gt_conversion.npz")
    maps = sorted(key.split("_")[0] for key in golden.files if key.endswith("_labelmap"))
    assert maps
    differ = 0
    for name in maps:
        segments = golden[f"{name}_labelmap"]
        train, scoring = training_edges(segments), scoring_edges(segments)
        assert np.array_equal(train, golden[f"{name}_pascal_train_edge_label"] != 0)
        assert np.array_equal(scoring, golden[f"{name}_pascal_eval_gt"] != 0)
        # what odsF makes of the test split's edges is what it would make of the label map
        assert DATASETS["pascal"].metric_options["odsf"]["gt"] == "plain"
        assert np.array_equal(label_edges(scoring, "plain"), label_edges(segments, "labelmap"))
        differ += int((train != scoring).sum())
    assert differ  # else there would be no need for two


def test_edges_can_be_chosen_and_fingerprints_know(root):
    usual = open_real("pascal", "test", root)
    other = open_real("pascal", "test", root, purpose="training")
    segments = archives.label_map(archives.size_of("test", 0), 0)
    assert np.array_equal(other.sample(0, ["edge"])["edge"], training_edges(segments))
    assert usual.fingerprint != other.fingerprint


# -- the dataset as the engine uses it -------------------------------------------------------------------------------


def test_only_asked_keys_are_read(root, tmp_path):
    dataset = open_real("nyud", "train", root, tasks=("depth",))
    assert dataset.keys == ("image", "depth") and list(dataset.sample(1, ["depth"])) == ["depth"]
    with pytest.raises(UsageError, match=r"no key 'dept'.*'depth'"):
        dataset.sample(0, ["dept"])
    with pytest.raises(UsageError, match="no task 'sal'"):
        open_real("nyud", "train", root, tasks=("sal",))


def test_batches_need_one_size(root):
    dataset = open_real("nyud", "train", root)
    assert dataset.batch(np.array([0, 0]), ("image", "depth"))["image"].shape == (2, 30, 40, 3)
    with pytest.raises(UsageError, match="24×32, 30×40"):
        dataset.batch(np.array([0, 1]))


@pytest.mark.parametrize("index", [-1, 3, 1.5, "0"])
def test_a_wrong_sample_number_is_refused(root, index):
    with pytest.raises(UsageError, match="sample"):
        open_real("nyud", "train", root).sample(index)


def test_names_iteration_and_pickling(root):
    dataset = open_real("pascal", "train", root, (512, 512), progress=lambda done, total: None)
    assert [dataset.image_id(np.int64(i)) for i in range(3)] == list(archives.PASCAL_IDS["train"])
    assert len(list(dataset)) == len(dataset) == 3 and dataset.size == (512, 512)
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.fingerprint == dataset.fingerprint
    assert np.array_equal(copy.sample(1)["edge"], dataset.sample(1)["edge"])


def test_fingerprint_follows_ids_and_files(tmp_path):
    folder = archives.write_nyudv2(tmp_path)

    def fingerprint(**options):
        return open_real("nyud", "train", tmp_path, **options).fingerprint

    first = fingerprint()
    assert first == fingerprint() and len(first) == 64
    assert len({first, fingerprint(limit=2), fingerprint(tasks=("depth",))}) == 3
    moved = tmp_path / "elsewhere"
    archives.write_nyudv2(moved)
    assert open_real("nyud", "train", moved).fingerprint == first
    np.save(folder / "depth" / "0003.npy", np.zeros((30, 41), np.float32))
    assert fingerprint() != first
    assert fingerprint(tasks=("semseg",)) == open_real("nyud", "train", moved, tasks=("semseg",)).fingerprint


def test_only_images_with_people_for_a_client_that_does_parts_alone(root, tmp_path, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_CACHE", str(tmp_path))
    told = []
    train = open_real("pascal", "train", root, progress=lambda done, total: told.append((done, total)))
    assert train.eligible(("semseg", "human_parts")) is None and train.eligible(("semseg",)) is None
    assert train.eligible(("human_parts",)).tolist() == [0, 2]  # the third has a person without parts
    assert open_real("pascal", "test", root).eligible(("human_parts",)).tolist() == [1]
    assert open_real("nyud", "train", root).eligible(("semseg",)) is None
    assert told == [(3, 3)]
    with monkeypatch.context() as patch:
        patch.setattr("fmtlbench.data.datasets._people.has_person", None)  # the second time nothing is read
        assert train.eligible(("human_parts",)).tolist() == [0, 2]
    kept = tmp_path / f"people-{train.digest_of('human_parts')[:32]}.json"
    alone = open_real("pascal", "train", root, tasks=("human_parts",))
    assert alone.fingerprint != train.fingerprint and alone.digest_of("human_parts")[:32] in kept.name
    whole = kept.read_text()
    for damage in (
        "",
        "[]",
        '{"found": [7]}',
        whole.replace("[0, 2]", "[0, 9]"),
        whole.replace('"images": 3', '"images": 4'),
    ):
        assert damage != whole
        kept.write_text(damage)
        assert train.eligible(("human_parts",)).tolist() == [0, 2]
    assert kept.read_text() == whole


def test_a_cache_that_cannot_be_written_is_a_warning(root, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FMTLBENCH_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="people-.* cannot be written"):
        assert open_real("pascal", "train", root).eligible(("human_parts",)).tolist() == [0, 2]


def test_open_split_takes_real_data_and_their_first_images(root):
    config = DataConfig("real", {"nyud": (448, 576), "pascal": (512, 512)}, train_samples={"nyud": 2})
    assert open_split(config, "nyud", "train", root).ids == ["0003", "0004"]
    assert len(open_split(config, "nyud", "test", root)) == 2
    pascal = open_split(config, "pascal", "test", root, tasks=("sal",))
    assert pascal.size == (512, 512) and pascal.tasks == ("sal",)
    config = DataConfig("real", {"nyud": (448, 576)}, test_samples={"nyud": 99})
    with pytest.raises(UsageError, match=r"data\.test_samples\.nyud is 99, but .*val\.txt lists 2"):
        open_split(config, "nyud", "test", root)
