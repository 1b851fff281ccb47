"""A scenario that extends another says what differs; what a config holds is what the whole file would give."""

from __future__ import annotations

import pytest

from fmtlbench.base.errors import UsageError
from fmtlbench.base.schema import plain
from fmtlbench.config.resolve import resolve
from fmtlbench.scenarios import load_scenario, scenario_files

PARENT = """\
description: two clients
paper: none
version: 3
parameters: {many: {default: 2, low: 1, high: 9}}
clients:
  - {dataset: nyud, tasks: [depth], count: $many}
  - {dataset: pascal, tasks: [sal, edge], relabel: {sal: invert}}
partition: {kind: dirichlet, alpha: 0.5}
"""
WHOLE = """\
description: what both say
paper: none
version: 3
parameters: {many: {default: 4, low: 1, high: 9}}
clients:
  - {dataset: nyud, tasks: [depth], count: $many, pool: old, images: 20}
  - {dataset: pascal, tasks: [sal, edge], relabel: {sal: invert}, pool: old, images: 20}
  - {dataset: nyud, tasks: [normals], count: $many}
partition: {kind: dirichlet, alpha: 0.1}
evaluation: [global, personal]
"""
CHAIN = "extends: parent.yml\ndescription: d\n"
CHILD = """\
extends: parent.yml
description: what both say
parameters: {many: {default: 4}}
each: {pool: old, images: 20}
further:
  - {dataset: nyud, tasks: [normals], count: $many}
partition: {alpha: 0.1}
evaluation: [global, personal]
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="child.yml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    write(PARENT, "parent.yml")
    return write


def without_name(path):
    return {key: value for key, value in plain(load_scenario(path)).items() if key != "name"}


def test_what_both_say_is_what_the_whole_would(write):
    assert without_name(write(CHILD)) == without_name(write(WHOLE, "whole.yml"))


def test_a_chain_and_a_parameter(write):
    middle = write("extends: ../parent.yml\ndescription: m\neach: {count: 3}\n", "below/middle.yml")
    last = write("extends: below/middle.yml\ndescription: l\nfurther: [{dataset: nyud, tasks: [edge]}]\n")
    with pytest.raises(UsageError, match=r"parent\.yml:4: parameters\.many: nothing uses it"):
        load_scenario(middle)  # `each` has replaced what the parameter stood for
    write("extends: ../parent.yml\ndescription: m\neach: {pool: p}\n", "below/middle.yml")
    config = resolve("local", last, overrides={"scenario.many": 5})
    assert [(group.count, group.pool) for group in config.scenario.clients] == [(5, "p"), (1, "p"), (1, None)]
    assert config.scenario.description == "l" and config.scenario.paper == "none"


def test_clients_and_lists_are_replaced(write):
    scenario = load_scenario(
        write(
            CHAIN.replace("parent.yml", "st_mt_1_unseen")
            + "clients: [{dataset: nyud, tasks: [edge]}]\nevaluation: [global]\n"
        )
    )
    assert [party.id for party in scenario.parties()] == ["nyud-edge"] and not scenario.unseen()


def test_files_lie_beside_the_file_that_names_them(write):
    write("tasks: {depth: {}}\nname: robots\n", "data/dataset.yml")
    further = "further: [{dataset: robots, tasks: [depth]}]\n"
    write(f"extends: ../parent.yml\ndescription: m\ndatasets: [dataset.yml]\n{further}", "data/middle.yml")
    scenario = load_scenario(write("extends: data/middle.yml\ndescription: d\n"))
    assert scenario.datasets[0].endswith("data/dataset.yml") and scenario.clients[-1].dataset == "robots"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: st_mt_11\n", r"child\.yml:1: extends: no scenario 'st_mt_11'; did you mean 'st_mt_1'"),
        ("extends: none.yml\n", r"child\.yml:1: extends: no such file: .*none\.yml"),
        ("extends: [st_mt_1]\n", r"child\.yml:1: extends: expected a scenario's name or file, got \['st_mt_1'\]"),
        ("extends: child.yml\n", r"child\.yml:1: extends: scenarios extend each other in a circle: .*child\.yml → "),
        ("extends: parent.yml\n", r"child\.yml:1: missing key 'description'"),
        ("description: d\neach: {count: 2}\n", r"child\.yml:2: each: is said of another scenario's clients"),
        (CHAIN + "clients: []\nfurther: []\n", r"child\.yml:4: further: is said of another scenario's clients"),
        (CHAIN + "each: [count]\n", r"child\.yml:3: each: expected a mapping, got \['count'\]"),
        (CHAIN + "further: {dataset: nyud}\n", r"child\.yml:3: further: expected a list"),
        (
            CHAIN + "each:\n  counts: 2\n",
            r"child\.yml:4: clients\.0\.counts: unknown key 'counts'; did you mean 'count'",
        ),
        (CHAIN + "each:\n  images: 0\n", r"child\.yml:4: clients\.0\.images: expected at least 1, got 0"),
        (
            CHAIN + "further:\n  - dataset: nyud\n    tasks: [edge]\n  - dataset: nyud\n    tasks: [dept]\n",
            r"child\.yml:7: clients\.3\.tasks\.0: nyud has no task 'dept'; did you mean 'depth'",
        ),
        (CHAIN + "evaluation: [unseen]\n", r"child\.yml:3: evaluation: expected global, personal or both"),
        (CHAIN + "partition: {kind: equal}\n", r"parent\.yml:8: partition\.alpha: is for kind: dirichlet and quantity"),
    ],
)
def test_mistakes_name_the_line(write, text, message):
    with pytest.raises(UsageError, match=message):
        load_scenario(write(text))


def test_a_wrong_value_of_the_parent_is_told_with_its_line(write):
    child = write(CHILD)
    write(PARENT.replace("tasks: [sal, edge]", "tasks: [sal, egde]"), "parent.yml")
    with pytest.raises(UsageError, match=r"parent\.yml:7: scenario\.clients\.1|parent\.yml:7: clients\.1\.tasks\.1"):
        resolve("local", child)
    write(PARENT.replace("version: 3", "version: three"), "parent.yml")
    with pytest.raises(UsageError, match=r"parent\.yml:3: scenario\.version: expected a whole number"):
        resolve("local", child)


def test_a_package_extends_ours_and_a_user_extends_the_packages(write, tmp_path, monkeypatch):
    class Point:
        name, value = "theirs", "theirs"

        def load(self):
            return str(tmp_path / "theirs")

    monkeypatch.setattr("fmtlbench.scenarios._entry_points", lambda path: [Point()])
    write("extends: st_mt_1\ndescription: theirs\neach: {count: 2}\n", "theirs/doubled.yml")
    mine = load_scenario(write("extends: doubled\ndescription: mine\nfurther: [{dataset: nyud, tasks: [edge]}]\n"))
    assert "doubled" in scenario_files() and [group.count for group in mine.clients] == [2] * 6 + [1]
