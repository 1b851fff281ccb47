"""A setting is one value: what is in it, what is not, and what may differ between rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from fmtlbench.base.schema import limits, plain
from fmtlbench.config.resolve import resolve, resolve_setting
from fmtlbench.config.roles import Moved, Roles, read_roles, roles
from fmtlbench.config.setting import AXES, Setting, digest, flatten, identity, is_below


def setting(algo="local", scenario="st_mt_1", seed=0, **overrides):
    return resolve(algo, scenario, seed=seed, overrides=overrides).setting()


def test_method_and_seed_are_not_in_it_and_neutral_values_neither():
    assert setting() == setting("fedhca2", seed=3, **{"algo.c": 0.2})
    assert setting() == setting(**{"data.workers": 4, "checkpoint_every": 7})
    assert setting().key == setting("fedavg").key
    assert setting() != setting(**{"train.lr": 0.5}) and setting().key != setting(**{"train.lr": 0.5}).key
    assert {setting(), setting("fedavg")} == {setting()}


def test_every_path_that_is_named_exists():
    paths = flatten(plain(resolve("local", "st_mt_1")))
    named = (*roles().neutral, *roles().own, *roles().incidental, *roles().since, *roles().now.values())
    of_networks = set(roles().moved)  # in the options of one network
    for parent in {*named, *(path for axis in AXES.values() for path in axis[:1])} - of_networks - {"clients"}:
        assert any(is_below(path, [parent]) for path in paths), parent


# Of what has moved there (model.options.task_steps) an old config has the former place.
@pytest.mark.parametrize(
    "path", [path for path in roles().since if not any(is_below(p, [path]) for p in roles().moved)]
)
def test_a_value_that_was_added_keeps_old_hashes(path):
    """At the value that held before, a config is what it was when there was no such field."""
    now = plain(resolve("local", "st_mt_1"))
    *sections, name = path.split(".")
    then = now
    for section in sections:
        then = then[section]
    then[name] = roles().since[path]
    with_it = digest(identity(now))
    del then[name]
    assert digest(identity(now)) == with_it
    then[name] = "another"
    assert is_below(path, roles().neutral) or digest(identity(now)) != with_it


@dataclass(frozen=True)
class Inner:
    place: str = limits("", role="neutral")
    size: int = limits(0, since=0)


@dataclass(frozen=True)
class Record:
    plain: float
    bounded: int = limits(low=1)
    seed: int = limits(0, role="own")
    every: int = limits(1, role="incidental")
    inner: Inner = limits(Inner)
    options: dict = limits(dict, since={}, moved={"steps": Moved("old.steps", 1, {})})


def test_a_field_says_its_role_and_without_one_it_decides_numbers():
    expected = Roles(("inner.place",), ("seed",), ("every",), {"inner.size": 0, "options": {}})
    assert read_roles(Record) == replace(expected, moved={"options.steps": Moved("old.steps", 1, {})})
    assert Record(1.0, 1).inner == Inner() and Record(1.0, 1).options == {}
    decides = [
        path for path in flatten(plain(Record(1.0, 1))) if not is_below(path, (*expected.neutral, *expected.own))
    ]
    assert decides == ["plain", "bounded", "every", "inner.size", "options"]


def test_every_axis_of_a_resolved_setting_has_a_value():
    found = setting(scenario="iid1_sdmt")
    assert {axis: found.value(axis) for axis in AXES if found.value(axis) is None} == {}
    assert found.value("size") == {"pascal": [64, 64], "nyud": [64, 64]}


def test_what_is_exchanged_counts_and_not_who_said_so():
    scenario, flag = (setting(**{f"{section}.exchange": "models"}) for section in ("scenario", "federation"))
    assert scenario == flag and scenario.key == flag.key and flag.value("exchange") == "models"
    back = setting(**{"scenario.exchange": "models", "federation.exchange": "decoders"})
    assert back == setting() and flag != setting()
    assert flag.apart_from(["exchange"]) == setting().apart_from(["exchange"])


def test_rows_may_differ_in_axes_and_in_nothing_else():
    md = setting(scenario="iid1_sdmt", **{"model.architecture": "md", "model.backbone": "resnet_nano"})
    tc = setting(scenario="iid1_sdmt", **{"model.architecture": "tc", "model.backbone": "resnet_nano"})
    assert md != tc and md.apart_from(["architecture"]) == tc.apart_from(["architecture"])
    assert md.apart_from(["backbone"]) != tc.apart_from(["backbone"])
    assert (md.value("architecture"), md.value("train.lr")) == ("md", md.values["train.lr"])
    assert md.value("no.such.path") is None


def test_numbers_of_clients_are_an_axis_of_parameters_and_of_larger_scenarios():
    four, eight = setting(scenario="iid1_sdmt"), setting(scenario="iid1_sdmt", **{"scenario.clients": 8})
    assert (four.clients, eight.clients) == (4, 8)
    assert four != eight and four.apart_from(["clients"]) == eight.apart_from(["clients"])
    once, twice = setting(), setting(scenario="st_mt_1_2c")
    assert (once.clients, twice.clients) == (6, 12)
    assert once.apart_from(["clients"]) == twice.apart_from(["clients"])
    assert once.apart_from(["clients"]) != setting(scenario="st_mt_2").apart_from(["clients"])


def test_who_is_unseen_does_not_count():
    assert setting(scenario="st_mt_1_unseen").clients == setting().clients == 6


def test_differences_name_paths_and_both_values():
    one, other = setting(), setting(**{"train.lr": 0.5, "data.size": {"pascal": [32, 32], "nyud": [64, 64]}})
    found = one.differences(other)
    assert found["train.lr"] == (one.values["train.lr"], 0.5)
    assert found["data.size.pascal"] == ([64, 64], [32, 32]) and set(found) == {"train.lr", "data.size.pascal"}
    assert one.differences(other, skip=["data", "train"]) == {}


def test_a_setting_is_resolved_without_any_method():
    assert resolve_setting("st_mt_1") == setting("fedavg")
    half = {"federation.participation": 0.5}  # which local refuses
    assert resolve_setting("st_mt_1", overrides=half) == setting("fedavg", **half)


def test_a_summary_tells_part_of_it():
    summary = {"scenario": "iid1_sdmt", "preset": "nano", "data": "synth", "rounds": 40, "device": "cpu",
               "setting_text": {"backbone": "swin_nano", "scenario_parameters": {"clients": 8}}}  # fmt: skip
    told = Setting.of_summary(summary)
    assert (told.value("backbone"), told.value("rounds"), told.clients) == ("swin_nano", 40, None)
    other = Setting.of_summary({**summary, "setting_text": {"backbone": "swin_nano"}})
    assert told != other and told.apart_from(["clients"]) == other.apart_from(["clients"])


@pytest.mark.parametrize("value, expected", [({"a": {"b": 1, "c": [2]}}, {"a.b": 1, "a.c": [2]}), ({}, {})])
def test_flatten(value, expected):
    assert flatten(value) == expected
