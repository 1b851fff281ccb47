"""YAML that remembers its lines, and plain data into dataclasses with errors that point."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

import fmtlbench
from fmtlbench.base.errors import UsageError
from fmtlbench.base.located import Tree, locate, located, look_up
from fmtlbench.base.schema import build, limits, plain
from fmtlbench.base.yamlfile import dump_yaml, load_yaml, parse_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4), ("1E5", 1e5), ("-2e+3", -2000.0), (".5", 0.5), ("5.", 5.0), ("1.5e-3", 0.0015), ("7", 7),
        ("true", True), ("null", None), ("[64, 64]", [64, 64]), ("word", "word"), ("e5", "e5"), ("1e", "1e"),
        ("'1e-4'", "1e-4"), ("-.inf", float("-inf")), ("{a: 1}", {"a": 1}),
    ],
)  # fmt: skip
def test_scalars_mean_what_people_mean(text, value):
    parsed = parse_scalar(text)
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize("value", ["1e-4", "1e5", "null", "true", "3", "", "a: b", "é\n²", "[x]"])
def test_texts_survive_a_dump(tmp_path, value):
    file = tmp_path / "x.yml"
    file.write_text(dump_yaml({"key": value}), encoding="utf-8")
    assert load_yaml(file) == {"key": value}
    again = load_yaml(file) | {"list": [1]}
    again["tree"] = load_yaml(file)
    file.write_text(dump_yaml(again), encoding="utf-8")
    assert load_yaml(file) == {"key": value, "list": [1], "tree": {"key": value}}


def test_every_value_knows_its_line(tmp_path):
    file = tmp_path / "x.yml"
    file.write_text("# comment\na: 1\nb:\n  - {c: 2}\n  -\n    d: 3\n")
    data = load_yaml(file)
    assert data == {"a": 1, "b": [{"c": 2}, {"d": 3}]}
    lines = {"": 2, "a": 2, "b": 3, "b.0": 4, "b.0.c": 4, "b.1": 6, "b.1.d": 6}
    assert {path: locate(data, path) for path in lines} == {path: f"{file}:{line}" for path, line in lines.items()}
    inner = data["b"][1]
    assert locate(inner, "d") == locate(inner) == f"{file}:6"


def test_a_missing_value_is_located_at_its_parent():
    data = Tree({"a": Tree({"b": 1}, "f:2", {"b": "f:3"})}, "f:1", {"a": "f:2"})
    assert [locate(data, path) for path in ("a.b.c.d", "a.x", "y", "")] == ["f:3", "f:2", "f:1", "f:1"]
    assert locate({"a": 1}, "a") == locate(5) == ""


def test_a_key_may_hold_dots():
    data = located({"set": {"train.lr": 1, "data": {"size": 2}}}, "f:1")
    data["set"].put("train.lr", 3, "f:2")
    assert [locate(data, path) for path in ("set.train.lr", "set.data.size", "set")] == ["f:2", "f:1", "f:1"]


def test_what_is_said_later_brings_its_places(tmp_path):
    first, second = tmp_path / "first.yml", tmp_path / "second.yml"
    first.write_text("a:\n  x: 1\n  y: [1, 2]\nb: {c: 1}\n")
    second.write_text("# later\na:\n  y: [3]\nb: 2\n")
    data, later = load_yaml(first), load_yaml(second)
    data.merge(later)
    assert data == {"a": {"x": 1, "y": [3]}, "b": 2}
    paths = {"": f"{second}:2", "a.x": f"{first}:2", "a.y.0": f"{second}:3", "b.c": f"{second}:4"}
    assert {path: locate(data, path) for path in paths} == paths
    copy = data.copy()
    copy["a"].put("x", {"z": 5}, "--set a.x")
    copy["a"]["y"].add(4, "--set a.y.1")
    assert [locate(copy, path) for path in ("a.x.z", "a.y.1", "a.y.0")] == ["--set a.x", "--set a.y.1", f"{second}:3"]
    assert {path: locate(data, path) for path in paths} == paths and data["a"]["y"] == [3]


def test_a_value_is_looked_up_with_its_place():
    data = located({"a": {"b": 5, "c": {"d": 1}, "n": None}}, "f:1")
    found = {path: look_up(data, path) for path in ("a.b", "a.c", "a.n", "a.x")}
    assert [repr(value) for value in found.values()] == ["5", "{'d': 1}", "None", "{}"]
    assert all(value.place == "f:1" for value in found.values())


def test_an_empty_file_is_an_empty_mapping(tmp_path):
    file = tmp_path / "x.yml"
    file.write_text("# nothing\n")
    data = load_yaml(file)
    assert data == {} and locate(data, "a.b") == str(file)


@pytest.mark.parametrize("text", ["5", "word", "null"])
def test_a_file_with_one_value_knows_where_it_is(tmp_path, text):
    file = tmp_path / "x.yml"
    file.write_text(f"# nothing\n{text}\n")
    data = load_yaml(file)
    assert data.value == parse_scalar(text) and repr(data) == repr(data.value) and locate(data) == f"{file}:2"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a: 1\nb: 2\na: 3\n", ":3: 'a' is given twice"),
        (b"a:\n  b: 1\n  b: 2\n", ":3: 'b' is given twice"),
        (b"a: [1\n", "not valid YAML"),
        (b"a: 1\n  b: 2\n", ":2: not valid YAML"),
        (b"a: 1\n---\nb: 2\n", "not valid YAML"),
        (b"x: 1\na: !foo 1\n", ":2: not valid YAML"),
        (b"a: !!python/object/apply:os.getcwd []\n", ":1: not valid YAML"),
        (b"a: 2024-13-01\n", "not valid YAML"),
        (b"a: &x [*x]\n", "an alias inside its own anchor"),
        (b"x: 1\n? [a, b]\n: 2\n", ":2: a key must be a word"),
        (b"\x00\x01", "not valid YAML"),
        (b"\xff\xfe\x00", "not a UTF-8 text file"),
        (b"x: 1\na: !!bool maybe\n", ":2: not valid YAML: 'maybe' is no bool"),
        (b"a: !!int ''\n", ":1: not valid YAML: '' is no int"),
        (None, "No such file"),
    ],
)
def test_a_broken_file_is_named_in_one_line(tmp_path, content, what):
    file = tmp_path / "x.yml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_yaml(file)
    assert str(caught.value).startswith(str(file))
    assert what in str(caught.value) and "\n" not in str(caught.value)


def nested(lines, first="x", repeat=9):
    """Lists of lists by aliases: `repeat` times the one before, from a list of `first`."""
    rows = [f"a0: &a0 [{', '.join([first] * repeat)}]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * repeat)}]" for i in range(1, lines)]
    return "\n".join(rows) + "\n"


TOO_MUCH = [
    (nested(10), ":6: ", "more than 100000 values, with its aliases written out"),
    (nested(10).replace("[*", "{<<: [*").replace("]", "]}").replace("[x", "{k: [x"), ":6: ", "more than 100000 values"),
    (nested(60, repeat=1), ":39: ", "more than 40 levels of nesting"),
    ("a: " + "[" * 5000, ":1: ", "more than 40 levels of nesting"),
    ("\n".join(" " * i + "a:" for i in range(60)), ":40: ", "more than 40 levels of nesting"),
    ("- " * 500, ":1: ", "more than 40 levels of nesting"),
    ("a: 1\nb: 1" + "0" * 10000, ":2: ", "is too large a number"),
    ("a: 9223372036854775808", ":1: ", "'9223372036854775808' is too large a number"),
    ("a: 0x" + "f" * 9000, ":1: ", "is too large a number"),
    ("a: 1" + ":59" * 9000, ":1: ", "is too large a number"),
    ("a: -1e400", ":1: ", "'-1e400' is too large a number"),
    ("a: " + "x" * 300_000, ": ", "larger than 256 kB"),
]


@pytest.mark.parametrize(("text", "place", "what"), TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_too_much_is_refused_with_its_line(tmp_path, text, place, what):
    file = tmp_path / "x.yml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_yaml(file)
    said = str(caught.value)
    assert said.startswith(f"{file}{place}") and what in said and said.isprintable() and len(said) < 250
    if len(text) < 20_000:
        with pytest.raises(UsageError, match=what.replace("'", ".")):
            parse_scalar(text)


def test_large_and_nested_is_fine_within_limits(tmp_path):
    file = tmp_path / "x.yml"
    file.write_text(nested(5) + f"deep: {'[' * 38}1{']' * 38}\nn: -9223372036854775807\ni: .inf\nf: 1e308\n")
    data = load_yaml(file)
    assert data["n"] == -(2**63) + 1 and data["i"] == float("inf") and data["f"] == 1e308
    assert data["a4"][8][8][8][8][8] == "x" and locate(data, "a4.8.8.8.8.8") == f"{file}:1"


def test_a_merged_mapping_may_say_a_key_again(tmp_path):
    file = tmp_path / "x.yml"
    file.write_text("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n")
    assert load_yaml(file)["b"] == {"x": 3, "y": 2}


def test_only_one_module_reads_yaml():
    root = Path(fmtlbench.__file__).parents[1]
    sources = [file for folder in ("fmtlbench", "algorithms", "metrics", "reports", "scenarios", "benchmarks")
               for file in (root / folder).rglob("*.py")]  # fmt: skip
    users = [file for file in sources if re.search(r"^\s*(import|from) yaml\b", file.read_text(), re.M)]
    assert [file.name for file in users] == ["yamlfile.py"]


# -- schema ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inner:
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    number: float = limits(low=0, high=10)
    count: int | None = limits(None, above=0)
    pair: tuple[int, int] = limits((1, 1), low=1)
    table: dict[str, tuple[float, ...]] | None = limits(None, below=1)
    inner: Inner = Inner()


def test_built_values_have_the_declared_types():
    built = build(Outer, {"number": 1, "pair": [2, 3], "table": {"x": [0]}, "inner": {"kind": "b"}})
    assert built == Outer(1.0, None, (2, 3), {"x": (0.0,)}, Inner("b"))
    assert type(built.number) is float and type(built.table["x"][0]) is float
    assert build(Outer, plain(built)) == built


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "missing key 'number'"),
        ([1], "expected a mapping with keys number, count, pair, table, inner, got [1]"),
        ({"number": 1, "cuont": 2}, "cuont: unknown key 'cuont'; did you mean 'count'?"),
        ({"number": 1, 3: 2}, "3: unknown key 3; valid: count, inner, number, pair, table"),
        ({"number": 10.5}, "number: expected at most 10, got 10.5"),
        ({"number": -1}, "number: expected at least 0, got -1.0"),
        ({"number": 10**400}, "number: expected a finite number, got 1" + "0" * 39 + " … " + "0" * 20),
        ({"number": 1, "count": 0}, "count: expected more than 0, got 0"),
        ({"number": 1, "count": True}, "count: expected a whole number, got True"),
        ({"number": 1, "pair": [1, 0]}, "pair.1: expected at least 1, got 0"),
        ({"number": 1, "pair": [1, 2, 3]}, "pair: expected 2 values, got [1, 2, 3]"),
        ({"number": 1, "table": {"x": [0.5, 1]}}, "table.x.1: expected less than 1, got 1.0"),
        ({"number": 1, "table": [1]}, "table: expected a mapping, got [1]"),
        ({"number": 1, "inner": None}, "inner: expected a mapping with keys kind, got None"),
        ({"number": 1, "inner": {"kind": []}}, "inner.kind: expected one of a, b, got []"),
    ],
)
def test_wrong_data_are_named(data, message):
    with pytest.raises(UsageError) as caught:
        build(Outer, located(data, "here"))
    assert str(caught.value) == f"here: {message}"
