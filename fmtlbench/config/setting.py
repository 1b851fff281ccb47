"""A setting: what must agree for two runs to share a row of a table, as one value with one equality.

Every value of a config has a role, which its field names (`roles.py`). Most values decide numbers: together they are
the setting. The method, with the weighting of losses that it is combined with, and the seed are a run's own. The rest
decides no number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..base.errors import unknown
from .roles import roles

WEIGHTING, WEIGHTING_OPTIONS = "train.weighting", "train.weighting_options"
EQUAL = "equal"  # the weighting of losses that a method has by itself
OWN_FILES = "plugins.weighting "  # begins the entries of users' files with weightings

# How rows of one table may differ: the name of an axis → the value that rows show, and what else goes with it.
AXES: dict[str, tuple[str, ...]] = {
    "scenario": ("scenario.name", "scenario"),
    "clients": ("clients", "scenario.clients", "scenario.parameters.clients", "scenario.parameters.clients_per_task"),
    "architecture": ("model.architecture", "model.options", "model.code"),
    "backbone": ("model.backbone", "model.drop_path"),
    "pretrained": ("model.pretrained", "model.weights_sha256"),
    "exchange": ("federation.exchange",),
    "participation": ("federation.participation",),
    "dropout": ("federation.dropout",),
    "stragglers": ("federation.stragglers", "federation.straggler_work"),
    "compression": (
        "federation.compression",
        "federation.compression_share",
        "federation.compression_bits",
        "federation.error_feedback",
    ),
    "statistics": ("federation.statistics",),
    "rounds": ("federation.rounds",),
    "size": ("data.size",),
    "data": ("data.source",),
}


def short_name(path: str) -> str:
    """Return how tables call a value: by the axis that it is, and by its present place."""
    axes = {paths[0]: name for name, paths in AXES.items()}
    return axes.get(path) or roles().now.get(path, path)


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Flatten {"a": {"b": 1}} to {"a.b": 1}; lists and empty mappings are values."""
    if not isinstance(value, Mapping) or (prefix and not value):
        return {prefix: value}
    return {
        path: leaf
        for key, inner in value.items()
        for path, leaf in flatten(inner, f"{prefix}.{key}" if prefix else str(key)).items()
    }


def is_below(path: str, parents: Iterable[str]) -> bool:
    """Return whether `path` is one of `parents` or lies below one."""
    return any(path == parent or path.startswith(f"{parent}.") for parent in parents)


def is_own(path: str) -> bool:
    """Return whether a value is the run's own, and no part of its setting."""
    return is_below(path, roles().own) or path.startswith(OWN_FILES)


def identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that decides the numbers of a run, flat, from a config of nested plain values."""
    neutral, since = roles().neutral, roles().since
    values = {path: value for path, value in flatten(config).items() if path and not is_below(path, neutral)}
    for path, moved in roles().moved.items():
        section = path.rpartition(".")[0]
        if any(is_below(there, [section]) for there in values):  # else it is a config of before the move
            otherwise = moved.by_preset.get(str(values.get("preset")), moved.otherwise)
            values[moved.first] = values.pop(path, otherwise)
    return {path: value for path, value in values.items() if path not in since or value != since[path]}


def _first_place(path: str) -> str:
    """Return where a setting keeps the value that is at `path` of a config now."""
    moved = roles().moved.get(path)
    return path if moved is None else moved.first


def digest(values: Mapping[str, Any]) -> str:
    """Hash flat values: equal ones, however they were written, have equal hashes."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def scenario_family(scenario: str) -> str:
    """Return the scenario's name without its number of clients: `st_mt_1_4c` is `st_mt_1` with more clients."""
    return re.sub(r"_\d+c$", "", scenario)


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything but what is a run's own that decides its numbers: dotted path → plain value."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Setting:
        """Return the setting of a config, given as nested plain values (a config.yaml, for example)."""
        return cls({path: value for path, value in identity(config).items() if not is_own(path)})

    @classmethod
    def of_summary(cls, summary: Mapping[str, Any]) -> Setting:
        """Return what a run's summary.json says of its setting, for runs whose config.yaml is lost."""
        told = dict(summary.get("setting_text") or {})
        parameters = told.pop("scenario_parameters", None) or {}
        values = {AXES[name][0] if name in AXES else name: value for name, value in told.items()}
        values |= {f"scenario.parameters.{name}": value for name, value in parameters.items()}
        values |= {
            "scenario.name": summary["scenario"],
            "scenario.version": summary.get("scenario_version"),
            "preset": summary["preset"],
            "data.source": summary["data"],
            "device": summary.get("device"),
            "federation.rounds": summary["rounds"],
        }
        return cls(values)

    @cached_property
    def key(self) -> str:
        """The hash by which tables name it."""
        return digest(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def clients(self) -> int | None:
        """How many clients take part in the scenario; None where the config does not list them."""
        listed = self.values.get("scenario.clients")
        if not isinstance(listed, list):
            return None
        groups = [client if isinstance(client, Mapping) else {} for client in listed]
        return sum(group.get("count", 1) for group in groups if not group.get("unseen"))

    def value(self, name: str) -> Any:
        """Return the value of an axis, or of any dotted path, whole sections as a mapping; None: not known."""
        if name == "clients":
            return self.clients
        path = AXES[name][0] if name in AXES else _first_place(name)
        below = {k.removeprefix(f"{path}."): v for k, v in self.values.items() if k.startswith(f"{path}.")}
        return self.values.get(path, below or roles().since.get(path))

    def apart_from(self, names: Iterable[str]) -> Setting:
        """Return the setting without axes or paths in which rows may differ; settings of one table are equal then."""
        names = tuple(names)
        dropped = [path for name in names for path in AXES.get(name, (name,))]
        dropped += [moved.first for path, moved in roles().moved.items() if is_below(path, dropped)]
        values = {path: value for path, value in self.values.items() if not is_below(path, dropped)}
        if "clients" in names and "scenario.name" in values:
            values["scenario.name"] = scenario_family(values["scenario.name"])
        return Setting(values)

    def differences(self, other: Setting, skip: Iterable[str] = ()) -> dict[str, tuple[Any, Any]]:
        """Return the values in which two settings differ: by path, (this one's, the other's).

        A value that one of them does not have is None there. Keys that one config has no place for are left out: a run
        of an older version says nothing about what was added later.
        """
        skip = tuple(skip)
        paths = [path for path in {**self.values, **other.values} if not is_below(path, skip)]
        now = roles().now
        both = [path for path in paths if self._has_key(path) and other._has_key(path)]
        pairs = {path: (self._value(path), other._value(path)) for path in both}
        return {now.get(path, path): (mine, theirs) for path, (mine, theirs) in pairs.items() if mine != theirs}

    def _value(self, path: str) -> Any:
        value = self.values.get(path, roles().since.get(path))
        return None if value == {} else value

    def _has_key(self, path: str) -> bool:
        """Return whether the config has the key of a path: train.lr, or evaluation.metrics of …metrics.edge."""
        key = ".".join(path.split(".")[:2])
        return any(is_below(path, [key]) for path in (*roles().since, *self.values))


def check_axis(name: str, known: Iterable[str], flag: str) -> None:
    """Refuse a name that is neither an axis nor a path or section of some setting; the error has the nearest name."""
    known = set(known)
    known |= {path for path, moved in roles().moved.items() if moved.first in known}
    if name not in AXES and not any(is_below(path, [name]) for path in known):
        raise unknown("value of a setting", name, [*AXES, *sorted(known)], flag)
