"""The built-in scenarios are the papers'; a user's file is checked, with file, line and field in every complaint."""

from __future__ import annotations

import pytest
import yaml

from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.scenarios import load_scenario, scenario_files

BUILT_IN = sorted(scenario_files())


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_files_load_and_say_where_they_come_from(name):
    scenario = load_scenario(name)
    assert scenario.name == name and scenario.parties()
    assert len(scenario.description) > 20 and len(scenario.paper) > 10 and scenario.version >= 1
    everybody = [*scenario.parties(), *scenario.unseen()]
    assert len({client.id for client in everybody}) == len(everybody)
    assert [client.index for client in everybody] == list(range(len(everybody)))
    first_line = scenario_files()[name].read_text(encoding="utf-8").splitlines()[0]
    assert first_line.startswith("# Run: fmtlbench run") and first_line.endswith(f"--scenario {name}")


GOOD = """\
description: mine
paper: none
version: 3
clients:
  - {dataset: nyud, tasks: [depth], count: 2}
  - dataset: pascal
    tasks: [sal, edge]
    id: both
"""


@pytest.fixture
def load(tmp_path):
    def load(text, name="mine.yml"):
        file = tmp_path / name
        file.write_text(text)
        return load_scenario(str(file))

    return load


@pytest.mark.parametrize("name", ["mine.yml", "mine.yaml"])
def test_a_users_file(load, name):
    scenario = load(GOOD, name)
    assert scenario.name == "mine" and scenario.version == 3 and scenario.evaluation == ("global",)
    assert [client.id for client in scenario.parties()] == ["nyud-depth-1", "nyud-depth-2", "both"]


@pytest.mark.parametrize(
    ("old", "new", "line", "parts"),
    [
        ("dataset: pascal", "dataset: pascl", 6, ["clients.1.dataset", "'pascl'", "'pascal'"]),
        ("[sal, edge]", "[sal, depth]", 7, ["clients.1.tasks.1", "pascal has no task 'depth'"]),
        ("[sal, edge]", "[sal, sal]", 7, ["clients.1.tasks.1", "listed twice"]),
        ("[sal, edge]", "[]", 7, ["clients.1.tasks", "at least one task"]),
        ("[sal, edge]", "sal", 7, ["clients.1.tasks", "a list"]),
        ("count: 2", "count: 0", 5, ["clients.0.count", "at least 1"]),
        ("count: 2", "count: two", 5, ["clients.0.count", "a whole number"]),
        ("count: 2", "count: 100000000", 5, ["clients.0.count", "at most"]),
        ("id: both", "name: both", 8, ["clients.1.name", "unknown key 'name'"]),
        ("id: both", "id: nyud-depth-2", 4, ["clients", "2 clients are called 'nyud-depth-2'"]),
        ("id: both", "id: 5", 8, ["clients.1.id", "text"]),
        ("version: 3", "version: 3\nevaluation: [globl]", 4, ["evaluation.0", "global, personal", "'globl'"]),
        ("version: 3", "version: 3\nevaluation: []", 4, ["evaluation", "global, personal"]),
        ("version: 3", "version: 3\nevaluation: [global, unseen]", 4, ["evaluation", "no client is unseen"]),
        ("version: 3", "version: 3\nevaluation: [unseen]", 4, ["evaluation", "global, personal or both beside unseen"]),
        ("id: both", "unseen: true", 1, ["evaluation", "'pascal-multi' is unseen", "add unseen to the list"]),
        ("id: both", "unseen: 1", 8, ["clients.1.unseen", "true or false"]),
        ("version: 3", "version: 3\nevaluation: [global, global]", 4, ["evaluation", "listed twice"]),
        ("version: 3", "version: 3\npartition: {kind: even}", 4, ["partition.kind", "dirichlet, equal, linear"]),
        ("version: 3", "version: 3\npartition: {kind: dirichlet}", 4, ["partition", "needs alpha"]),
        ("version: 3", "version: 3\npartition: {alpha: 1}", 4, ["partition.alpha", "and quantity only", "is equal"]),
        ("version: 3", "version: 3\npartition: {kind: dirichlet, alpha: 0}", 4, ["partition.alpha", "at least 0.001"]),
        ("version: 3", "version: 3\npartition: {kind: dirichlet, alpha: x}", 4, ["partition.alpha", "a finite number"]),
        ("version: 3", "version: 3\nexchange: model", 4, ["exchange", "decoders, models", "'model'"]),
        ("version: 3", "version: 3\nclient: 1", 4, ["client", "'clients'"]),
        ("version: 3", "version: 3\nname: x", 4, ["name", "named by its file"]),
        ("version: 3", "version: one", 3, ["version", "a whole number"]),
        ("paper: none\n", "", 1, ["missing key 'paper'"]),
        ("paper: none", "paper: null", 2, ["paper", "text"]),
        (GOOD.partition("clients:")[2], " []\n", 4, ["clients", "at least one client"]),
    ],
)  # fmt: skip
def test_a_malformed_file_is_pointed_at(load, tmp_path, old, new, line, parts):
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        load(GOOD.replace(old, new))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'mine.yml'}:{line}: "), message
    for part in parts:
        assert part in message
    assert "\n" not in message


def test_unseen_clients_are_counted_after_those_that_take_part(load):
    text = GOOD.replace("count: 2", "count: 2, unseen: true, id: late") + "evaluation: [global, unseen]\n"
    scenario = load(text)
    assert [(c.index, c.id) for c in scenario.everybody()] == [(1, "late-1"), (2, "late-2"), (0, "both")]
    assert [c.id for c in scenario.parties()] == ["both"] and [c.index for c in scenario.unseen()] == [1, 2]
    with pytest.raises(UsageError, match="all are unseen; a federation needs a client that takes part"):
        load(text.replace("id: both", "unseen: true"))
    with pytest.raises(UsageError, match="2 clients are called 'late-1'"):
        load(text.replace("id: both", "id: late-1"))


@pytest.mark.parametrize(
    ("changes", "evaluation", "place"),
    [
        ("count: 2", "[global]", None),
        ("count: 10", "[global]", None),
        ("count: 11, unseen: true", "[global, unseen]", ":5: clients.0.count: 11 nyud clients, but only 10 images"),
        ("count: 11", "[global]", ":5: clients.0.count: 11 nyud clients, but only 10 images to share; set fewer"),
        ("count: 6", "[personal]", ":5: clients.0.count: 6 nyud clients, but only 10 images to share, two each"),
        ("count: 6, pool: one", "[personal]", ":5: clients.0.count: 6 nyud clients"),
    ],
)
def test_more_clients_than_images_are_pointed_at(tmp_path, changes, evaluation, place):
    file = tmp_path / "mine.yml"
    file.write_text(GOOD.replace("count: 2", changes) + f"evaluation: {evaluation}\n")
    few = {"data.train_samples": {"nyud": 10, "pascal": 10}}
    if place is None:
        resolve("local", str(file), overrides=few)
        return
    with pytest.raises(UsageError) as caught:
        resolve("local", str(file), overrides=few)
    assert str(caught.value).startswith(f"{file}{place}")


@pytest.mark.parametrize("content", ["[a, b]", "words", ""])
def test_not_a_mapping(load, tmp_path, content):
    with pytest.raises(UsageError, match=r"mine\.yml: (expected a mapping|missing key)"):
        load(content)


class Point:
    def __init__(self, folder):
        self.folder = folder

    def load(self):
        return self.folder


def test_a_package_brings_scenarios_and_may_not_shadow_ours(tmp_path, monkeypatch):
    monkeypatch.setattr("fmtlbench.scenarios._entry_points", lambda path: [Point(tmp_path)])
    (tmp_path / "theirs.yml").write_text(GOOD)
    assert load_scenario("theirs").version == yaml.safe_load(GOOD)["version"]
    (tmp_path / "st_mt_1.yml").write_text(GOOD)
    with pytest.raises(UsageError, match="'st_mt_1' is defined twice"):
        scenario_files()
