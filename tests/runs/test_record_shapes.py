"""Whether what was read from JSON has its shape, and what is said of the first value that has not."""

from __future__ import annotations

import copy
import json
import typing
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

import pytest

from fmtlbench.runs import records
from fmtlbench.runs.records import Cost, Manifest, RoundRow, Summary, TimingRow
from fmtlbench.runs.type_check import decode, find_misfit

FIRST = next((Path(__file__).parent / "first_format").glob("duo/fedavg/*"))


class Inner(TypedDict):
    name: str
    size: float


class Outer(TypedDict, total=False):
    flag: bool
    count: int
    maybe: str | None
    many: list[Inner]
    by_name: dict[str, Inner]
    nested: list[list[float]] | None
    free: Any
    own: dict[str, Any]


GOOD = {"name": "a", "size": 1.5}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"flag": True, "count": 3, "maybe": None, "many": [], "by_name": {}, "nested": None, "free": object()},
        {"many": [GOOD, {**GOOD, "size": 2}], "by_name": {"x": GOOD}, "nested": [[1, 2.5], []], "own": {"a": [1]}},
        {"unknown": "keys are left alone", "maybe": "text"},
        {"many": [{**GOOD, "more": None}, GOOD]},
    ],
)
def test_what_fits(value):
    assert find_misfit(Outer, value) == ""


@pytest.mark.parametrize(
    "value, words",
    [
        (3, "expected an object, got 3"),
        ({"flag": 1}, "flag: expected true or false, got 1"),
        ({"count": True}, "count: expected a whole number, got True"),
        ({"count": 1.0}, "count: expected a whole number, got 1.0"),
        ({"maybe": 7}, "maybe: expected text or null, got 7"),
        ({"many": None}, "many: expected a list, got None"),
        ({"many": {"name": "a"}}, "many: expected a list, got {'name': 'a'}"),
        ({"many": [GOOD, {"name": "a"}]}, "many.1: lacks size"),
        ({"many": [GOOD, {**GOOD, "size": "2"}]}, "many.1.size: expected a number, got '2'"),
        ({"many": [7, GOOD]}, "many.0: expected an object, got 7"),
        ({"by_name": {"x": GOOD, "y": []}}, "by_name.y: expected an object, got []"),
        ({"nested": [[1], [1, None]]}, "nested.1.1: expected a number, got None"),
        ({"nested": [3]}, "nested.0: expected a list, got 3"),
        ({"own": []}, "own: expected an object, got []"),
        ({"maybe": ["x" * 100]}, "maybe: expected text or null, got ['" + "x" * 38 + " … " + "x" * 18 + "']"),
        ({"by_name": {"x": GOOD, "y": {"size": 1}, "z": {}}}, "by_name.y: lacks name"),
        ({"by_name": {"...": GOOD, "y.z": {**GOOD, "name": 0}}}, "by_name.y.z.name: expected text, got 0"),
    ],
)
def test_the_first_that_does_not_fit_is_named(value, words):
    assert find_misfit(Outer, value) == words
    assert decode(json.dumps(value).encode(), Outer) == (value, words)


def test_what_json_cannot_hold_is_named_too():
    assert find_misfit(Inner, {"name": date(2024, 1, 2), "size": 1}).startswith(
        "name: expected text, got datetime.date"
    )


def test_every_record_can_be_checked():
    """A type that the check does not know would be found out by the first user who reads such a file."""
    kinds = [kind for kind in vars(records).values() if typing.is_typeddict(kind) and kind.__name__[0] != "_"]
    assert len(kinds) > 10
    for kind in kinds:
        assert (find_misfit(kind, {}) == "") == (not kind.__required_keys__)


def stored():
    """(kind, record) of every file of a real run."""
    for name, kind in (("summary.json", Summary), ("cost.json", Cost), ("manifest.json", Manifest)):
        yield kind, json.loads((FIRST / name).read_text())
    for name, kind in (("metrics.jsonl", RoundRow), ("timing.jsonl", TimingRow)):
        yield kind, json.loads((FIRST / name).read_text().splitlines()[-1])


def places(value, path=()):
    """Every place of a record that its type may say something about."""
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(member, (dict, list)) and member:
            yield from places(member, (*path, key))


def test_whatever_is_odd_is_found_where_it_is():
    """Anything anywhere in a real record turned into something odd: the message begins with its place."""
    found = 0
    for kind, record in stored():
        assert decode(json.dumps(record).encode(), kind) == (record, "")
        for path in places(record):
            for odd in ([[]], {"odd": [None]}, 0.5, "text", None):
                changed = copy.deepcopy(record)
                inside = changed
                for key in path[:-1]:
                    inside = inside[key]
                inside[path[-1]] = odd
                wrong = find_misfit(kind, changed)
                assert decode(json.dumps(changed).encode(), kind)[1] == wrong
                assert wrong == "" or wrong.startswith(".".join(map(str, path)))
                found += wrong != ""
    assert found > 1000


def test_what_is_written_again_keeps_the_keys_of_later_versions():
    later = {"name": "a", "size": 2, "colour": "red"}
    content = json.dumps({"many": [later], "format": 2}).encode()
    assert decode(content, Outer) == ({"many": [{"name": "a", "size": 2}]}, "")
    assert decode(content, Outer, whole=True) == ({"many": [later], "format": 2}, "")


@pytest.mark.parametrize(
    "content, said",
    [
        (b'{"maybe": "a"', "truncated"),
        (b'{"free": NaN}', "malformed"),
        (b'{"unknown": -Infinity}', "malformed"),
        (b'{"nested": [[1e999]]}', "out of range"),
        (b'{"maybe": "\xff"}', "utf-8"),
        (b'{"flag": 1, "maybe": ', "truncated"),  # also where something before it does not fit
        (b"{} {}", "trailing"),
    ],
)
def test_what_is_no_json_is_refused(content, said):
    for whole in (False, True):
        with pytest.raises(ValueError, match=said):
            decode(content, Outer, whole)


def test_what_is_nested_too_deeply_is_refused():
    for key in ("own", "unknown"):
        with pytest.raises(RecursionError):
            decode(b'{"%s": {"a": ' % key.encode() + b"[" * 100_000, Outer)
