"""Numbers a scenario leaves open: declared in the file, set from outside, plain in what a run keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fmtlbench.base.errors import UsageError
from fmtlbench.base.yamlfile import load_yaml
from fmtlbench.config.resolve import resolve
from fmtlbench.config.run_config import RunConfig
from fmtlbench.scenarios import load_scenario

OPEN = """\
description: mine
paper: none
version: 1
parameters:
  clients: {default: 3, low: 1, high: 9, doc: "how many"}
  alpha:
    default: 0.5
    low: 0.1
clients:
  - {dataset: nyud, tasks: [depth], count: $clients}
  - {dataset: nyud, tasks: [edge]}
partition: {kind: dirichlet, alpha: $alpha}
"""


@pytest.fixture
def file(tmp_path):
    def write(text=OPEN):
        path = tmp_path / "open.yml"
        path.write_text(text)
        return str(path)

    return write


def build(file, **overrides):
    return resolve("local", file, overrides={f"scenario.{key}": value for key, value in overrides.items()}).scenario


def test_defaults_and_values(file):
    scenario = load_scenario(file())
    assert scenario == build(file())
    assert [group.count for group in scenario.clients] == [3, 1] and scenario.partition.alpha == 0.5
    assert scenario.parameters == {"clients": 3, "alpha": 0.5}
    changed = build(file(), clients=5, alpha=2)
    assert changed.clients[0].count == 5 and changed.partition.alpha == 2.0
    assert changed.parameters == {"clients": 5, "alpha": 2.0}
    assert build(file(), clients=np.int64(5)).parameters == {"clients": 5, "alpha": 0.5}


@pytest.mark.parametrize(
    "overrides", [{}, {"clients": 7, "alpha": 1}, {"clients": [{"dataset": "nyud", "tasks": ["edge"]}]}]
)
def test_what_a_run_keeps_reads_back_identically(file, tmp_path, overrides):
    config = resolve("local", file(), overrides={f"scenario.{key}": value for key, value in overrides.items()})
    saved = tmp_path / "config.yaml"
    saved.write_text(config.dump())
    again = RunConfig.from_tree(load_yaml(saved))
    assert again == config and again.hash() == config.hash() and again.dump() == config.dump()
    assert "$" not in config.dump()


def test_the_value_decides_the_hash(file):
    assert resolve("local", file()).hash() != resolve("local", file(), overrides={"scenario.clients": 4}).hash()
    assert resolve("local", file()).hash() == resolve("local", file(), overrides={"scenario.clients": 3}).hash()


def test_a_list_still_replaces_the_clients_and_frees_the_parameter(file):
    scenario = build(file(), clients=[{"dataset": "pascal", "tasks": ["sal"], "count": 2}])
    assert [client.id for client in scenario.parties()] == ["pascal-sal-1", "pascal-sal-2"]
    assert scenario.parameters == {"alpha": 0.5}
    single = resolve("local", file(), overrides={"scenario.clients.0.count": 8}).scenario
    assert single.clients[0].count == 8 and single.parameters == {"alpha": 0.5}


def test_a_name_given_from_outside_is_looked_up_too(file):
    assert resolve("local", file(), overrides={"scenario.clients.1.count": "$clients"}).scenario.clients[1].count == 3
    with pytest.raises(UsageError, match=r"--set scenario\.clients\.1\.count=\$nobody: .*no parameter 'nobody'"):
        resolve("local", file(), overrides={"scenario.clients.1.count": "$nobody"})


def test_a_parameter_nobody_uses_any_more_is_told(file):
    both = {"scenario.clients": 4, "scenario.clients.0.count": 8}
    with pytest.raises(UsageError, match=r"--set scenario\.clients=4: nothing uses 'clients' any more"):
        resolve("local", file(), overrides=both)


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("clients", 0, ["clients: expected at least 1 and at most 9, got 0"]),
        ("clients", 10, ["at most 9, got 10"]),
        ("clients", 2.5, ["clients: expected a whole number, got 2.5"]),
        ("clients", "many", ["a whole number, got 'many'"]),
        ("clients", True, ["a whole number, got True"]),
        ("alpha", 0.01, ["alpha: expected at least 0.1, got 0.01"]),
        ("alpha", float("inf"), ["expected a number, got inf"]),
        ("client", 4, ["open has no parameter 'client'; did you mean 'clients'?", "declared: scenario.alpha (0.5), "]),
        ("beta", 4, ["open has no parameter 'beta'", "scenario.clients (3)"]),
        ("parameters", {"clients": 4}, ["set by its own name", "scenario.clients (3)"]),
        ("parameters.clients", 4, ["set by its own name"]),
        ("description", 4, ["expected text"]),
    ],
)  # fmt: skip
def test_a_wrong_value_names_the_flag(file, key, value, parts):
    with pytest.raises(UsageError) as caught:
        build(file(), **{key: value})
    message = str(caught.value)
    shown = value if isinstance(value, str) else json.dumps(value)
    assert message.startswith(f"--set scenario.{key}={shown}: "), message
    for part in parts:
        assert part in message


def test_a_scenario_without_parameters_says_so():
    with pytest.raises(UsageError, match=r"=8: st_mt_1 has no parameter 'clients'; st_mt_1 declares no parameters"):
        resolve("local", "st_mt_1", overrides={"scenario.clients": 8})


@pytest.mark.parametrize(
    ("old", "new", "line", "parts"),
    [
        ("count: $clients", "count: 2", 5, ["parameters.clients", "nothing uses it", "$clients"]),
        ("count: $clients", "count: $client", 10, ["clients.0.count", "no parameter 'client'", "mean 'clients'?"]),
        ("tasks: [edge]}", "tasks: [edge], count: $m}", 11, ["clients.1.count", "no parameter 'm'", "clients (3)"]),
        ("default: 3", "default: 0", 5, ["clients: expected at least 1", "got 0"]),
        ("default: 3", "default: three", 5, ["parameters.clients.default", "expected a number, got 'three'"]),
        ("default: 3, ", "", 5, ["parameters.clients", "missing key 'default'"]),
        ("low: 1,", "lowest: 1,", 5, ["parameters.clients.lowest", "unknown key", "'low'"]),
        ("low: 0.1", "low: tiny", 8, ["parameters.alpha.low", "a finite number"]),
        ("{default: 3, low: 1, high: 9, doc: \"how many\"}", "4", 5, ["parameters.clients", "expected a mapping"]),
        ("  alpha:\n", "  al-pha:\n", 6, ["parameters.al-pha", "is not a name"]),
        ("high: 9", "high: 1000000", 0, []),
    ],
)  # fmt: skip
def test_a_malformed_declaration_is_pointed_at(file, tmp_path, old, new, line, parts):
    assert old in OPEN
    path = file(OPEN.replace(old, new))
    if not line:  # the declaration allows it, the schema does not: the flag is named
        with pytest.raises(UsageError, match=r"--set scenario\.clients=200000: .*count: expected at most 100000"):
            build(path, clients=200_000)
        return
    with pytest.raises(UsageError) as caught:
        load_scenario(path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'open.yml'}:{line}: "), message
    for part in parts:
        assert part in message
    with pytest.raises(UsageError, match=r"open\.yml:"):
        resolve("local", path)


def test_parameters_must_be_a_mapping(file):
    with pytest.raises(UsageError, match=r"open\.yml:4: parameters: expected a mapping"):
        load_scenario(file(OPEN.partition("parameters:")[0] + "parameters: [clients]\nclients: []\n"))
