"""Tell two runs apart: what was asked, what it was done with, and what came out. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..config.roles import roles
from ..config.setting import WEIGHTING, flatten, identity, is_below
from .code_identity import ADDED
from .folder import RunFolder
from .records import Manifest, Score, Summary

Pairs = dict[str, tuple[Any, Any]]  # by name, what either run has; None: it has no such thing
_OF_THE_MOMENT = ("started", "from_round", "command")  # of a session, where two runs always differ
_TOLD_BY_PARTS = ("code.sha256", "code.files")  # code.parts says the same in fewer words


@dataclass(frozen=True)
class ScorePair:
    """One score of two runs."""

    client: str
    split: str
    task: str
    metric: str
    first: float | None
    second: float | None
    higher_is_better: bool
    unit: str | None

    @property
    def difference(self) -> float | None:
        """Return the second run's minus the first's; None where one has none."""
        return None if self.first is None or self.second is None else self.second - self.first


@dataclass(frozen=True)
class Differences:
    """In what two runs differ, and the scores that both or one of them have."""

    config: Pairs
    circumstances: Pairs  # code, versions, data, hardware, order of summation
    scores: list[ScorePair]


def compare_runs(first: RunFolder, second: RunFolder) -> Differences:
    """Read two runs and tell in what they differ; an unfinished one has no scores."""
    config = _pairs(identity(first.config()), identity(second.config()), roles().since)
    circumstances = _pairs(_circumstances(first.manifest()), _circumstances(second.manifest()))
    for key, part in (("algorithm.name", "method"), (WEIGHTING, "weighting")):
        if key in config:
            circumstances.pop(f"code.parts.{part}", None)  # of two methods it differs anyway
    for path in (f"code.parts.{part}" for part in ADDED):
        if None in circumstances.get(path, ()):  # not recorded by the older one
            del circumstances[path]
    return Differences(
        config,
        circumstances,
        _pair_scores(first.summary(), second.summary()),
    )


def _pairs(first: Mapping[str, Any], second: Mapping[str, Any], otherwise: Mapping[str, Any] | None = None) -> Pairs:
    known = otherwise or {}
    both = {name: tuple(side.get(name, known.get(name)) for side in (first, second)) for name in {**first, **second}}
    return {name: (mine, theirs) for name, (mine, theirs) in both.items() if mine != theirs}


def _circumstances(manifest: Manifest | None) -> dict[str, Any]:
    """Return what a run was done with, flat: all that its manifest has, of the last session alone."""
    if manifest is None:
        return {}
    lasting = {key: value for key, value in manifest.items() if key not in ("format", "config_hash", "sessions")}
    last: Mapping[str, Any] = manifest["sessions"][-1] if manifest["sessions"] else {}
    found = flatten({**lasting, **{key: value for key, value in last.items() if key not in _OF_THE_MOMENT}})
    return {path: value for path, value in found.items() if not is_below(path, _TOLD_BY_PARTS)}


def _pair_scores(first: Summary | None, second: Summary | None) -> list[ScorePair]:
    sides = [_primary(summary) for summary in (first, second)]
    pairs = []
    for key, score in {**sides[1], **sides[0]}.items():
        one, other = (side[key]["value"] if key in side else None for side in sides)
        pairs.append(ScorePair(*key, one, other, bool(score.get("higher_is_better")), score.get("unit")))
    return sorted(pairs, key=lambda pair: (pair.client, pair.split, pair.task, pair.metric))


def _primary(summary: Summary | None) -> dict[tuple[str, str, str, str], Score]:
    scores = summary["scores"] if summary else []
    return {(s["client"], s["split"], s["task"], s["metric"]): s for s in scores if s["primary"]}
