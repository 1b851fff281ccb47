"""Who gets which images: disjoint, complete, even, seeded."""

from __future__ import annotations

import numpy as np
import pytest
from fake_data import Images

from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.data.views import client_data, newcomers, parties
from fmtlbench.scenarios import scenario_files


def views(train=23, test=7, seed=0, **overrides):
    """The client data of st_mt_1: five PASCAL clients and one NYUD client. A dataset here has only a length."""
    config = resolve("local", "st_mt_1", seed=seed, overrides=overrides)
    datasets = {(d, s): Images(n) for d in ("pascal", "nyud") for s, n in (("train", train), ("test", test))}
    return config, client_data(config, datasets)


# st_mt_1 with 23 images and seed 0, as dealt by version 0.1.0.
PUBLISHED = [[3, 4, 6, 12, 18], [8, 9, 13, 16, 20], [1, 10, 14, 15, 17], [0, 19, 21, 22], [2, 5, 7, 11]]
PERSONAL = {"scenario.evaluation": ["global", "personal"], "data.personal_fraction": 0.25}


def test_clients_of_a_domain_share_it():
    _, data = views()
    pascal = [d.train.indices.tolist() for d in data[:5]]
    assert sorted(i for part in pascal for i in part) == list(range(23))
    assert data[5].train.indices.tolist() == list(range(23))  # the only NYUD client has it all
    assert pascal[0] != list(range(len(pascal[0])))  # dealt at random, not cut in order
    assert all(d.tests["global"].indices.tolist() == list(range(7)) for d in data)
    assert set(data[0].tests) == {"global"}


@pytest.mark.parametrize("overrides", [{}, PERSONAL])
def test_the_seed_decides(overrides):
    def dealt(seed):
        return [d.train.indices.tolist() for d in views(seed=seed, **overrides)[1]]

    assert dealt(0) == dealt(0)
    assert dealt(0)[:5] != dealt(1)[:5]


def test_personal_images_are_a_seeded_share_that_nobody_trains_on():
    (_, without), (_, data) = views(), views(**PERSONAL)
    for before, d in zip(without, data):
        train, held = set(d.train.indices.tolist()), set(d.tests["personal"].indices.tolist())
        assert not train & held and train | held == set(before.train.indices.tolist())
        assert len(held) == round(0.25 * len(before.train))
        assert len(d.train) == len(train)
    trained = set().union(*(d.train.indices.tolist() for d in data[:5]))
    judged = set().union(*(d.tests["personal"].indices.tolist() for d in data[:5]))
    assert not trained & judged  # not by a neighbour either


@pytest.mark.parametrize("overrides", [{}, PERSONAL])
def test_validation_images_take_the_place_of_all_test_images(overrides):
    """Neither the test images nor those of `personal`, which the final run is judged on, are looked at."""
    (_, without), (_, data) = views(**overrides), views(**overrides, **{"data.validation": 0.2})
    for before, d in zip(without, data):
        train, scored = set(d.train.indices.tolist()), set(d.tests["global"].indices.tolist())
        assert not train & scored and train | scored == set(before.train.indices.tolist())
        assert len(scored) == max(1, round(0.2 * len(before.train)))
        assert all(view.dataset is d.train.dataset for view in d.tests.values())
        assert {tuple(view.indices) for view in d.tests.values()} == {tuple(sorted(scored))}
        if "personal" in before.tests:
            assert not set(before.tests["personal"].indices.tolist()) & (train | scored)
    again = views(**overrides, **{"data.validation": 0.2})[1]
    assert [d.train.indices.tolist() for d in again] == [d.train.indices.tolist() for d in data]
    other = views(seed=1, **overrides, **{"data.validation": 0.2})[1]
    assert other[5].train.indices.tolist() != data[5].train.indices.tolist()


def test_validation_is_part_of_the_config_and_its_default_moves_no_hash():
    plain, held = resolve("local", "st_mt_1"), resolve("local", "st_mt_1", overrides={"data.validation": 0.2})
    assert resolve("local", "st_mt_1", overrides={"data.validation": 0}).hash() == plain.hash() != held.hash()
    assert plain.setting() != held.setting()
    with pytest.raises(UsageError, match=r"data\.validation: expected at most 0.5"):
        resolve("local", "st_mt_1", overrides={"data.validation": 0.9})
    with pytest.raises(UsageError, match="has 1 images to train on, needs 2: one is held out"):
        views(train=5, **{"data.validation": 0.2})


def test_at_least_one_image_is_held_out():
    _, data = views(train=10, **{**PERSONAL, "data.personal_fraction": 0.01})
    assert [len(d.tests["personal"]) for d in data] == [1] * 6


@pytest.mark.parametrize(
    ("train", "overrides", "message"),
    [
        (4, {}, "st_mt_1: 5 pascal clients, but only 4 images to share; set fewer clients"),
        (9, PERSONAL, "st_mt_1: 5 pascal clients, but only 9 images to share, two each for `personal`"),
        (4, {}, "scenario.clients.<i>.count) or data.train_samples.pascal of at least 5"),
    ],
)
def test_more_clients_than_images_is_refused(train, overrides, message):
    with pytest.raises(UsageError) as caught:
        views(train=train, **overrides)
    assert message in str(caught.value)


def test_the_parameter_to_change_is_named():
    config = resolve("local", "iid1_sdmt", overrides={"scenario.clients": 8})
    with pytest.raises(UsageError, match=r"8 nyud clients, but only 15 .*fewer clients \(scenario.clients\)"):
        client_data(config, {("nyud", "train"): Images(15), ("nyud", "test"): Images(3)})


class People(Images):
    """A dataset where only every third image shows people."""

    def eligible(self, tasks):
        return np.arange(0, len(self), 3) if tasks == ("human_parts",) else None


def test_a_dataset_may_say_which_images_a_client_can_use():
    everything = {(d, s): Images(n) for d in ("pascal", "nyud") for s, n in (("train", 60), ("test", 10))}
    chosen = {**everything, ("pascal", "train"): People(60), ("pascal", "test"): People(10)}
    config = resolve("local", "st_mt_1")
    plain, data = client_data(config, everything), client_data(config, chosen)
    assert data[1].train.indices.tolist() == [i for i in plain[1].train.indices if i % 3 == 0]
    assert data[1].tests["global"].indices.tolist() == [0, 3, 6, 9]
    for index in (0, 2, 3, 4, 5):
        assert data[index].train.indices.tolist() == plain[index].train.indices.tolist()
        assert len(data[index].tests["global"]) == 10


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_client_without_a_usable_image_is_named(split):
    class Nobody(People):
        def eligible(self, tasks):
            return np.arange(0) if tasks == ("human_parts",) else None

    config = resolve("local", "st_mt_1")
    datasets = {(d, s): Nobody(20) if s == split else Images(20) for d in ("pascal", "nyud") for s in ("train", "test")}
    with pytest.raises(UsageError, match=r"client 'pascal-human_parts'.* usable for human_parts"):
        client_data(config, datasets)


def test_each_pool_deals_all_images_anew():
    config = resolve("local", "niid3_sdht", overrides={"scenario.evaluation": ["global"]})
    data = client_data(config, {("nyud", "train"): Images(41), ("nyud", "test"): Images(5)})
    dealt = [d.train.indices.tolist() for d in data]
    for pool in (dealt[:4], dealt[4:]):
        assert sorted(i for part in pool for i in part) == list(range(41))
        assert [len(part) for part in pool] == [11, 10, 10, 10]
    assert dealt[:4] != dealt[4:]


def test_equal_shares_are_those_of_the_published_runs():
    _, data = views()
    assert [d.train.indices.tolist() for d in data[:5]] == PUBLISHED


def test_parties_know_their_number_of_training_images():
    config, data = views(**PERSONAL)
    members = parties(config, data)
    assert [p.samples for p in members] == [len(d.train) for d in data]
    assert [(p.index, p.id) for p in members] == [(c.index, c.id) for c in config.scenario.parties()]


def test_an_unseen_client_has_its_share_of_the_images_and_a_split_of_its_own():
    overrides = {"scenario.evaluation": ["global", "personal", "unseen"], "scenario.partition.kind": "linear",
                 "data.personal_fraction": 0.25}  # fmt: skip
    config = resolve("local", "st_mt_1_unseen", overrides=overrides)
    datasets = {(d, s): Images(n) for d in ("pascal", "nyud") for s, n in (("train", 42), ("test", 7))}
    *data, late = client_data(config, datasets)
    assert [len(d.train) + len(d.tests["personal"]) for d in data] == [2, 4, 6, 8, 10, 42]
    assert len(late.train) == 12 and {name: len(view) for name, view in late.tests.items()} == {"unseen": 7}
    assert all(set(d.tests) == {"global", "personal"} for d in data)
    others = {i for d in data[:5] for view in (d.train, d.tests["personal"]) for i in view.indices.tolist()}
    assert others | set(late.train.indices.tolist()) == set(range(42)) and len(others) == 30
    assert [p.id for p in newcomers(config, [*data, late])] == ["newcomer"]
    assert [p.index for p in parties(config, [*data, late])] == list(range(6))


class Labelled(Images):
    """Images of one semantic class each, for partitions that look at labels."""

    def batch(self, indices, keys):
        return {key: np.asarray(indices).reshape(-1, 1, 1) % 7 for key in keys}


@pytest.mark.parametrize("name", scenario_files())
def test_nobody_trains_on_a_validation_image(name):
    milder = {"scenario.alpha": 10} if name == "probe_quantity_skew" else {}  # by itself a client has one image
    config = resolve("local", name, overrides={"data.validation": 0.2, **milder})
    sizes = {"train": 240, "test": 10}
    data = client_data(config, {(d, s): Labelled(n) for d in config.scenario.domains for s, n in sizes.items()})
    trained: dict[str, set[int]] = {domain: set() for domain in config.scenario.domains}
    held: dict[str, set[int]] = {domain: set() for domain in config.scenario.domains}
    for spec, each in zip(sorted(config.scenario.everybody(), key=lambda spec: spec.index), data):
        trained[spec.dataset].update(each.train.indices.tolist())
        (validation,) = {tuple(view.indices.tolist()) for view in each.tests.values()}
        held[spec.dataset].update(validation)
        share = len(validation) + len(each.train)
        # What one holds out others of its dataset may not train on: with more pools a client loses more of its share.
        most = 0.3 if len({other.pool for other in config.scenario.everybody()}) < 3 else 0.6
        assert 0.2 * share - 1 <= len(validation) <= most * share + 1, spec.id
    assert all(held.values()) and not any(trained[domain] & held[domain] for domain in trained)


def test_a_client_whose_images_are_all_held_out_by_others_is_named():
    config = resolve("local", "niid3_sdht", overrides={"data.validation": 0.5, "scenario.evaluation": ["global"]})
    with pytest.raises(UsageError, match=r"client '.*': all its 2 images are held out, .*smaller data.validation"):
        client_data(config, {("nyud", "train"): Images(8), ("nyud", "test"): Images(3)})
