"""What a reader is told of a table whose runs were not all made by the same code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..runs.code_identity import ADDED, OF_METHOD, PARTS
from ..runs.records import SummaryCode
from .runs import RunRecord

ENGINE = "engine"
COMMON = tuple(part for part in PARTS if part not in OF_METHOD)  # what runs of different methods have in common
MOST_NAMED = 4  # rows of one version


class CodeNote(str):
    """A note about the code that made the rows of a table: formats without notes tell it too."""


@dataclass(frozen=True)
class Made:
    """One run of a table: its row, its setting, its seed, and which code made it."""

    row: str
    setting: str
    seed: int
    code: SummaryCode | None  # None: not recorded


def code_notes(runs: Iterable[RunRecord]) -> list[str]:
    """Say which rows of a table were made by different code; [] if all were made by the same."""
    ours = [run for run in runs if not run.summary.get("external")]  # no code of ours made the others
    return tell_code([Made(", ".join(run.row), run.setting, run.summary["seed"], run.code) for run in ours])


def tell_code(made: Sequence[Made]) -> list[str]:
    """Say which of these runs were made by different code: of the engine and the like, of one method, or of one run."""
    known = [(one, one.code["parts"]) for one in made if one.code is not None]
    notes = []
    if known and len(known) < len(made):
        lacking = [one for one in made if one.code is None]
        notes.append(f"code not recorded: {_name([lacking, [one for one, _ in known]])[0]}")
    versions = {part: _number_versions(part, known) for part in COMMON}
    differing = [part for part in COMMON if max(versions[part], default=0) > 0]
    if differing:
        groups: dict[tuple[int, ...], list[Made]] = {}
        for place, (one, _) in enumerate(known):
            groups.setdefault(tuple(versions[part][place] for part in differing), []).append(one)
        parts = f"{' and '.join(differing)} {'differs' if len(differing) == 1 else 'differ'}"
        between = "; and ".join(_name(list(groups.values())))
        notes.append(f"made by {len(groups)} versions of the code: {parts} between {between}")
    rows: dict[tuple[str, str], list[tuple[Made, dict[str, str]]]] = {}
    for one, parts_of in known:
        rows.setdefault((one.setting, one.row), []).append((one, parts_of))
    for (_, row), there in rows.items():
        if len(by_code := _group_by_method(there)) > 1:
            seeds = " and ".join(_list_seeds(members) for members in by_code.values())
            notes.append(f"{row}: made by {len(by_code)} versions of the method's code ({seeds})")
    for one, _ in known:
        if one.code is not None and one.code.get("earlier"):
            notes.append(f"{one.row}, seed {one.seed}: begun by other code than it was finished by")
    return [CodeNote(note) for note in notes]


def _group_by_method(made: Sequence[tuple[Made, dict[str, str]]]) -> dict[tuple, list[Made]]:
    """Group the runs of a row by the code of their method; what an older run lacks is as in the others."""
    usual = {part: parts[part] for _, parts in made for part in ADDED if part in parts}
    groups: dict[tuple, list[Made]] = {}
    for one, parts in made:
        groups.setdefault(tuple((usual | parts).get(part) for part in OF_METHOD), []).append(one)
    return groups


def _number_versions(part: str, known: Sequence[tuple[Made, dict[str, str]]]) -> list[int]:
    """Return for each run which version of a part it had, counted from 0.

    All share the engine. Other settings use other tasks or data, so these parts are compared within a setting.
    """
    seen: dict[str, dict[str, int]] = {}
    numbers = []
    for one, parts in known:
        there = seen.setdefault("" if part == ENGINE else one.setting, {})
        numbers.append(there.setdefault(parts.get(part, ""), len(there)))
    return numbers


def _name(groups: Sequence[Sequence[Made]]) -> list[str]:
    """Name each group of runs by its rows; with seeds where a row is in several groups."""
    rows = [list(dict.fromkeys(one.row for one in group)) for group in groups]
    named = []
    for group, mine in zip(groups, rows):
        words = []
        for row in mine:
            is_split = sum(row in others for others in rows) > 1
            words.append(f"{row} ({_list_seeds([one for one in group if one.row == row])})" if is_split else row)
        more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
        named.append(", ".join(words[:MOST_NAMED]) + more)
    return named


def _list_seeds(members: Sequence[Made]) -> str:
    return f"seed {', '.join(map(str, sorted({one.seed for one in members})))}"
