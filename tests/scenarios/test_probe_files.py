"""Clients of probes: who holds which tasks, whose labels, who is there; and what a probe's file may expect."""

from __future__ import annotations

import pytest

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.data.relabel import RULES
from fmtlbench.scenarios import ROLES, load_scenario, probe_names
from fmtlbench.tasks import TASKS

HEAD = "description: a made one\npaper: none\nversion: 1\n"


@pytest.fixture
def load(tmp_path):
    def load(clients, rest=""):
        file = tmp_path / "made.yml"
        file.write_text(f"{HEAD}clients:\n{''.join(f'  - {client}{chr(10)}' for client in clients)}{rest}")
        return load_scenario(str(file))

    return load


@pytest.mark.parametrize(
    ("hold", "overlap", "held"),
    [
        (1, 0, ["semseg", "depth", "normals", "edge", "semseg"]),
        (2, 0, ["semseg depth", "normals edge", "semseg depth", "normals edge", "semseg depth"]),
        (2, 0.5, ["semseg depth", "depth normals", "normals edge", "edge semseg", "semseg depth"]),
        (3, 1, ["semseg depth normals"] * 5),
        (4, 0, ["semseg depth normals edge"] * 5),
    ],
)
def test_clients_hold_some_of_the_tasks_and_share_a_part_with_the_one_before(load, hold, overlap, held):
    group = f"{{dataset: nyud, tasks: [semseg, depth, normals, edge], count: 5, hold: {hold}, overlap: {overlap}}}"
    assert [" ".join(spec.tasks) for spec in load([group]).parties()] == held


GOOD = "{dataset: nyud, tasks: [semseg, normals], images: 8, relabel: {normals: negate}, joins: 0.5, presence: 0.25}"
ELSE = "{dataset: nyud, tasks: [semseg, normals], id: other}"
PROBE = "probe:\n  question: which?\n  expect:\n    - {who: [shares], above: 0}\n"


def test_what_a_client_has_from_its_group(load):
    first, other = load([GOOD, ELSE]).parties()
    assert (first.images, first.relabel, first.joins, first.presence) == (8, {"normals": "negate"}, 0.5, 0.25)
    assert not first.always_there and other.always_there and not other.relabel and other.images is None


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("normals: negate", "normals: rotate", ["relabel.normals", "'rotate' for normals", "negate"]),
        ("normals: negate", "depth: negate", ["relabel.depth", "no such task"]),
        ("images: 8", "images: 0", ["images", "at least 1"]),
        ("joins: 0.5", "joins: 1", ["joins", "less than 1"]),
        ("presence: 0.25", "presence: 0", ["presence", "more than 0"]),
        ("joins: 0.5", "hold: 3", ["hold", "3 of 2 tasks"]),
        ("joins: 0.5", "overlap: 0.5", ["overlap", "hold"]),
        ("images: 8", "unseen: true", ["unseen", "no meaning"]),
        ("images: 8", "images: many", ["images", "whole number"]),
    ],
)
def test_a_mistake_of_a_client_is_pointed_at(load, old, new, parts):
    assert old in GOOD
    rest = "evaluation: [global, unseen]\n" if "unseen" in new else ""
    with pytest.raises(UsageError) as error:
        load([GOOD.replace(old, new), ELSE], rest)
    assert all(part in str(error.value) for part in [*parts, "made.yml:5"]), error.value


def test_somebody_must_be_there_in_the_first_round(load):
    with pytest.raises(UsageError, match="first round"):
        load([GOOD])


def test_personal_images_need_two(load):
    with pytest.raises(UsageError, match=r"images.*at least 2"):
        load([GOOD.replace("images: 8", "images: 1"), ELSE], "evaluation: [global, personal]\n")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("who: [shares]", "who: [sharing]", ["who", "'sharing'", "'shares'"]),
        ("who: [shares]", "who: []", ["who", "expected roles"]),
        ("above: 0", "above: 0, below: 1", ["either above or below"]),
        (", above: 0", "", ["either above or below"]),
        ("above: 0", "above: 0, clients: [somebody]", ["clients", "'somebody'", "other"]),
        ("above: 0", "above: 0, over: median", ["over", "mean, worst"]),
        ("    - {who: [shares], above: 0}\n", "    []\n", ["at least one expectation"]),
        (
            "  question: which?\n",
            "  question: which?\n  family: {alpha: [1, 2]}\n",
            ["family.alpha", "no such parameter"],
        ),
    ],
)
def test_a_mistake_of_a_probe_is_pointed_at(load, old, new, parts):
    assert old in PROBE
    with pytest.raises(UsageError) as error:
        load([GOOD, ELSE], PROBE.replace(old, new))
    assert all(part in str(error.value) for part in [*parts, "made.yml:"]), error.value


def test_a_family_needs_different_values_and_compares_with_itself(load):
    group = "{dataset: nyud, tasks: [depth], count: $many}"
    rest = f"parameters: {{many: {{default: 2, low: 1}}}}\n{PROBE}  family: {{many: [2, 4]}}\n"
    assert load([group], rest).probe.parameter == "many"
    with pytest.raises(UsageError, match="two or more different values"):
        load([group], rest.replace("[2, 4]", "[2, 2]"))
    with pytest.raises(UsageError, match="compares a method's gain"):
        load([group], rest.replace("above: 0", "above: 0, than: fedavg"))


def test_what_is_expected_decides_no_number(load, tmp_path):
    configs = []
    for probe in ("", PROBE, PROBE.replace("above: 0", "below: 3")):
        load([GOOD, ELSE], probe)
        configs.append(resolve("fedavg", str(tmp_path / "made.yml")))
    assert len({config.hash() for config in configs}) == 1 and len({config.setting().key for config in configs}) == 1


def test_built_in_probes_ask_and_know():
    names = probe_names()
    wanted = {"scarce", "strangers", "two_worlds", "conflict", "absent"}
    wanted |= {"task_overlap", "task_count", "label_skew", "quantity_skew"}
    assert set(names) == {f"probe_{name}" for name in wanted}
    for name in names:
        probe = load_scenario(name).probe
        assert probe.question.endswith("?") and all(e.than in ALGORITHMS for e in probe.expect)
        for overrides in load_scenario(name).members().values():
            resolve("fedavg", name, "probe", overrides=overrides)
    used = {role for name in names for e in load_scenario(name).probe.expect for role in e.who}
    assert used == set(ROLES)


def test_every_method_names_roles_that_exist():
    for name in ALGORITHMS:
        assert set(ALGORITHMS.resolve(name).roles) <= set(ROLES), name
    assert ALGORITHMS.resolve("local").roles == () and "personal" in ALGORITHMS.resolve("fedrep").roles


def test_scenarios_and_data_know_the_same_rules():
    assert RULES.keys() == {rule for task in TASKS.values() for rule in task.kind.relabelling}
