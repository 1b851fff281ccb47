"""Every rule deals every image once, by the seed, and leaves nobody empty-handed."""

from __future__ import annotations

import gc
from dataclasses import replace

import archives
import numpy as np
import pytest
from archives import open_real
from fake_data import FakeReader, Images
from hypothesis import given, settings
from hypothesis import strategies as st

from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.base.seeds import stream
from fmtlbench.config.run_config import DataConfig
from fmtlbench.data.cache import build_cache
from fmtlbench.data.open import open_split
from fmtlbench.data.partitions import _histograms, deal, equal_sizes, histograms, linear_sizes
from fmtlbench.scenarios import Partition

CLASSES = 6


class Labelled(FakeReader):
    """Images of 4×4 pixels, each with two classes; every fifth is not labelled at all."""

    info = replace(FakeReader.info, name="labelled", class_names={"semseg": tuple(map(str, range(CLASSES)))})

    def __init__(self, length, seed=0):
        rng = np.random.default_rng(seed)
        pairs = rng.integers(CLASSES, size=(length, 2))
        self.labels = np.take_along_axis(pairs, rng.integers(2, size=(length, 16)), 1).reshape(length, 4, 4)
        self.labels[::5] = 255
        self.read = []

    def __len__(self):
        return len(self.labels)

    def batch(self, indices, keys):
        assert keys == ("semseg",)
        self.read += indices.tolist()
        return {"semseg": self.labels[indices].astype(np.uint8)}


def rules():
    skewed = st.sampled_from([1e-3, 0.05, 1.0, 1e6]).map(lambda alpha: Partition("dirichlet", alpha))
    return st.one_of(st.sampled_from([Partition("equal"), Partition("linear")]), skewed)


def dealt(rule, dataset, clients, seed, least=1):
    images = Images(len(dataset)) if isinstance(dataset, range) else dataset
    parts = deal(rule.kind, images, clients, stream(seed, "partition", "nyud"), least, rule.alpha)
    return [part.tolist() for part in parts]


@settings(max_examples=150, deadline=None)
@given(rules(), st.integers(1, 12), st.integers(1, 2), st.integers(0, 60), st.integers(0, 3))
def test_disjoint_complete_seeded_and_nobody_without(rule, clients, least, spare, seed):
    dataset = Labelled(clients * least + spare)
    parts = dealt(rule, dataset, clients, seed, least)
    assert len(parts) == clients
    assert sorted(i for part in parts for i in part) == list(range(len(dataset)))
    assert all(part == sorted(part) and len(part) >= least for part in parts)
    assert parts == dealt(rule, dataset, clients, seed, least)


@pytest.mark.parametrize("rule", [Partition("equal"), Partition("linear"), Partition("dirichlet", 0.5)])
def test_another_seed_deals_otherwise(rule):
    dataset = Labelled(40)
    assert dealt(rule, dataset, 4, 0) != dealt(rule, dataset, 4, 1)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(1, 2), st.integers(0, 500))
def test_sizes(clients, least, spare):
    count = clients * least + spare
    equal = [len(part) for part in dealt(Partition("equal"), range(count), clients, 0)]
    assert equal == equal_sizes(count, clients)
    assert max(equal) - min(equal) <= 1
    linear = [len(part) for part in dealt(Partition("linear"), range(count), clients, 0, least)]
    assert linear == linear_sizes(count, clients, least)
    whole = clients * (clients + 1) / 2
    if count >= least * whole:  # everybody's exact share is enough
        assert all(abs(size - count * (i + 1) / whole) < 1 for i, size in enumerate(linear))


def test_linear_sizes_by_hand():
    assert linear_sizes(100, 4) == [10, 20, 30, 40]
    assert linear_sizes(795, 4) == [80, 159, 238, 318]  # NYUD-v2: exact shares 79.5, 159, 238.5, 318
    assert linear_sizes(5, 4) == [1, 1, 1, 2]
    assert linear_sizes(8, 4, least=2) == [2, 2, 2, 2]


def distance_from_even(alpha):
    """Mean over clients and seeds of ½ Σ |class shares of the client − of everybody|, and the spread of the sizes."""
    dataset = Labelled(1500)
    total = histograms(dataset).sum(0) / histograms(dataset).sum()
    skew, spread = [], []
    for seed in range(5):
        parts = dealt(Partition("dirichlet", alpha), dataset, 5, seed)
        for part in parts:
            mine = histograms(dataset)[part].sum(0)
            skew.append(abs(mine / max(mine.sum(), 1) - total).sum() / 2)
        sizes = np.array([len(part) for part in parts])
        spread.append(sizes.std() / sizes.mean())
    return np.mean(skew), np.mean(spread)


def test_alpha_decides_how_skewed():
    (even_skew, even_spread), (skew, spread) = distance_from_even(1e4), distance_from_even(0.05)
    # 300 images per client: the class shares of a fair deal wander by a few percent, the sizes by 1/√300.
    assert even_skew < 0.06 and even_spread < 0.12
    assert skew > 0.25 and spread > 0.25
    assert skew > distance_from_even(1.0)[0] > even_skew


def test_an_image_follows_its_classes():
    dataset = Labelled(60)
    dataset.labels[:] = np.repeat(np.arange(60) % 2, 16).reshape(60, 4, 4)  # one class per image
    parts = dealt(Partition("dirichlet", 1e-3), dataset, 3, 0)
    owners = [{index % 2 for index in part} for part in parts if len(part) > 1]
    assert owners and all(len(classes) == 1 for classes in owners)  # tiny alpha: a class lies with one client


def test_histograms_count_labelled_pixels_and_are_read_once():
    dataset = Labelled(150)
    counts = histograms(dataset)
    assert counts.shape == (150, CLASSES) and (counts[::5] == 0).all()
    assert (counts.sum(1)[1:5] == 16).all() and counts[7, 3] == (dataset.labels[7] == 3).sum()
    assert histograms(dataset) is counts and dataset.read == list(range(150))
    key = id(dataset)
    assert key in _histograms._histograms
    del dataset
    gc.collect()
    assert key not in _histograms._histograms


def test_a_dataset_without_semantic_labels_is_refused():
    class Depth(Labelled):
        info = replace(FakeReader.info, name="depth-only", tasks=("depth",), class_names={})

    with pytest.raises(FmtlbenchError, match=r"depth-only has no semantic labels.*partition\.kind=equal"):
        dealt(Partition("dirichlet", 1.0), Depth(10), 2, 0)


def test_embedded_data_can_be_dealt_by_class(cache):
    from fmtlbench.data.datasets.synth import SynthDataset

    dataset = SynthDataset("synth-nyud", "train", 24, (32, 32))
    assert histograms(dataset).sum(1).max() <= 32 * 32 and (histograms(dataset).sum(1) > 0).all()
    parts = dealt(Partition("dirichlet", 0.1), dataset, 3, 0)
    assert sorted(i for part in parts for i in part) == list(range(24))


# -- real data -------------------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_CACHE", str(tmp_path / "cache"))
    archives.write_nyudv2(tmp_path)
    archives.write_pascal(tmp_path)
    return tmp_path


@pytest.mark.parametrize("domain", ["nyud", "pascal"])
def test_real_data_are_counted_once_and_kept_on_disk(archive, domain, monkeypatch):
    told = []
    dataset = open_real(domain, "train", archive, progress=lambda *done: told.append(done))
    counts = histograms(dataset)
    for index in range(3):
        labels = dataset.sample(index, ("semseg",))["semseg"]
        assert counts[index].tolist() == [(labels == c).sum() for c in range(dataset.info.classes["semseg"])]
    assert told == [(3, 3)]
    with monkeypatch.context() as patch:
        patch.setattr(type(dataset), "sample", None)  # another run, with other tasks, decodes nothing
        again = open_real(domain, "train", archive, tasks=("edge", "semseg"))
        assert np.array_equal(histograms(again), counts)
    assert len(histograms(open_real(domain, "train", archive, limit=2))) == 2
    (kept,) = (p for p in (archive / "cache").glob("histograms-*.json") if dataset.digest_of("semseg")[:32] in p.name)
    whole = kept.read_text()
    for damage in ("", "{}", whole.replace("[[", "[[-"), whole[:-9], whole.replace("[[", "[[1, ")):
        assert damage != whole
        kept.write_text(damage)
        assert np.array_equal(histograms(open_real(domain, "train", archive)), counts)
        assert kept.read_text() == whole


def test_real_data_from_the_cache_are_dealt_alike(archive):
    config = DataConfig("real", {"nyud": (32, 32)})
    read = open_split(config, "nyud", "train", archive)
    parts = dealt(Partition("dirichlet", 0.3), read, 2, 0)
    assert sorted(i for part in parts for i in part) == [0, 1, 2] and all(parts)
    build_cache(read)
    cached = open_split(config, "nyud", "train", archive)
    assert type(cached) is not type(read)
    assert dealt(Partition("dirichlet", 0.3), cached, 2, 0) == parts
