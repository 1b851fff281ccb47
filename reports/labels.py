"""How methods and clients are called in tables."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

# The order of the papers' tables; methods that are not in it follow in alphabetical order.
ZOO = (
    "local", "single_task_fl", "fedavg", "fedprox", "fedper", "fedrep", "fedbabu", "fedsta", "ditto", "fedamp",
    "pcgrad", "cagrad", "fedmtl", "matfl", "fedhca2",
)  # fmt: skip


def zoo_rank(algorithm: str) -> tuple[int, str]:
    """Sort key for methods."""
    return (ZOO.index(algorithm) if algorithm in ZOO else len(ZOO), algorithm)


class Labels:
    """Title plus the options that are not the run's preset's, or the method's own default: "FedProx-E (mu=0.1)".

    A method that is not installed here has no known defaults: those of its options are shown that differ among the
    given runs.
    """

    def __init__(self, summaries: Iterable[Mapping[str, Any]]) -> None:
        seen: dict[str, dict[str, set[str]]] = {}
        for s in summaries:
            options = seen.setdefault(s["algorithm"], {})
            for key, value in (s.get("options") or {}).items():
                options.setdefault(key, set()).add(repr(value))
        self._seen = seen
        self._known: dict[tuple[str | None, ...], dict[str, Any] | None] = {}
        self._made: dict[tuple, str] = {}

    def of(self, summary: Mapping[str, Any], table: str | None = None) -> str:
        """The label of one run; in a published table, made with the preset `table`, what would be called the same.

        There the table's variants of a method, its options that are words, are no longer worth mentioning, those of
        the run's own preset are. Numbers belong to the setting, which is told apart anyway.
        """
        about = (summary["algorithm"], summary.get("preset"), table)
        key = (*about, summary.get("title"), repr(summary.get("options")))
        if key not in self._made:
            if about not in self._known:
                self._known[about] = _expected(*about)
            self._made[key] = self._make(summary, self._known[about])
        return self._made[key]

    def _make(self, summary: Mapping[str, Any], defaults: dict[str, Any] | None) -> str:
        name = summary["algorithm"]
        title = summary.get("title") or name
        shown = {}
        for option, value in (summary.get("options") or {}).items():
            if defaults is None or option not in defaults:
                differs = len(self._seen[name][option]) > 1
            else:
                differs = value != defaults[option]
            if differs:
                shown[option] = value
        if shown.get("shared") == "encoder":  # FMTL-Bench's name for these variants
            title += "-E"
            del shown["shared"]
        if not shown:
            return title
        return f"{title} ({', '.join(f'{k}={_text(v)}' for k, v in shown.items())})"


def _expected(algorithm: str, preset: str | None, table: str | None) -> dict[str, Any] | None:
    """What a label need not say: the defaults under the run's preset, and the table's variant in their place."""
    defaults = default_options(algorithm)
    if defaults is None:
        return None
    variant = {key: value for key, value in _preset_options(table, algorithm).items() if isinstance(value, (str, bool))}
    return defaults | _preset_options(preset, algorithm) | variant


def _preset_options(preset: str | None, algorithm: str) -> dict[str, Any]:
    """None where the preset is not installed here."""
    from ..presets import preset_files, preset_options

    return preset_options(preset).get(algorithm, {}) if preset in preset_files() else {}


def default_options(algorithm: str) -> dict[str, Any] | None:
    """A registered method's options with their defaults; None for one that is not installed here."""
    from ..algorithms import ALGORITHMS
    from ..schema import plain

    method = ALGORITHMS.get(algorithm)
    if method is None:
        return None
    defaults = {}
    for f in dataclasses.fields(method.Params):
        if f.default_factory is not dataclasses.MISSING:
            defaults[f.name] = plain(f.default_factory())
        elif f.default is not dataclasses.MISSING:
            defaults[f.name] = plain(f.default)
    return defaults


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def client_groups(clients: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Client id → group: clients of one dataset, one set of tasks and the same labels are alike and share a name."""
    alike: dict[tuple[str, frozenset[str], frozenset], list[str]] = {}
    for client in clients:
        labels = frozenset((client.get("relabel") or {}).items())
        alike.setdefault((client["dataset"], frozenset(client["tasks"]), labels), []).append(client["id"])
    groups: dict[str, str] = {}
    for (dataset, tasks, _), ids in alike.items():
        stems = {re.sub(r"-\d+$", "", name) for name in ids}
        if len(ids) == 1:
            name = ids[0]
        elif len(stems) == 1:
            name = stems.pop()
        else:
            name = f"{dataset}-{'+'.join(sorted(tasks))}"
        if name in groups.values():
            name = f"{name}-{'+'.join(sorted(tasks))}"
        groups |= dict.fromkeys(ids, name)
    return groups
