"""How methods and clients are called in tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..base.words import dataset_title
from ..base.yamlfile import parse_scalar
from ..runs.folder import everybody

# Made for different task sets, then for anything.
SECOND_ZOO = (
    "task_means", "emr", "colnet", "fedbone", "mas", "fedatlas",
    "fedavgm", "fedadam", "fedyogi", "fednova", "scaffold", "feddyn", "fedbn", "lg_fedavg", "apfl", "pfedme", "fedala",
    "fedfomo", "ifca",
)  # fmt: skip
# The order of the papers' tables, then what came after; other methods follow in alphabetical order.
ZOO = (
    "local", "single_task_fl", "fedavg", "fedprox", "fedper", "fedrep", "fedbabu", "fedsta", "ditto", "fedamp",
    "pcgrad", "cagrad", "fedmtl", "matfl", "fedhca2", *SECOND_ZOO,
)  # fmt: skip
EXTERNAL = " (external)"  # behind the names of methods whose predictions were made elsewhere
ENCODER_ONLY = ("shared", "encoder")  # FMTL-Bench adds -E to the names of these variants


def zoo_rank(method: str) -> tuple[int, str, str]:
    """Return the key that sorts methods as the papers' tables do; those with a weighting follow the plain one."""
    algorithm, _, weighting = method.partition("+")
    return (ZOO.index(algorithm) if algorithm in ZOO else len(ZOO), algorithm, weighting)


class Labels:
    """Labels of runs: the title, and the options that differ from what the run's preset or method gives anyway.

    For example "FedProx-E (mu=0.1)"; with a weighting of losses "FedProx+GradNorm (mu=0.1, alpha=2)", where an option
    of the weighting that the method has too is called `gradnorm.alpha`. A run's summary tells what was usual when it
    was made. Where it does not (runs of older versions), those of its options are shown that differ among the given
    runs, and that only encoders travel.
    """

    def __init__(self, summaries: Iterable[Mapping[str, Any]]) -> None:
        seen: dict[str, dict[str, set[str]]] = {}
        for s in summaries:
            options = seen.setdefault(s["algorithm"], {})
            for key, value in (s.get("options") or {}).items():
                options.setdefault(key, set()).add(repr(value))
        self._seen = seen
        self._made: dict[tuple, str] = {}

    def of(self, summary: Mapping[str, Any], variant: Mapping[str, Any] | None = None) -> str:
        """Return the label of one run; in a published table, what would be called the same there.

        `variant` are the options that the table's preset gives the method: those that are words are then no longer
        worth mentioning, those of the run's own preset are. Numbers belong to the setting, which is told apart anyway.
        """
        told = (summary.get(key) for key in ("title", "options", "default_options", "weighting", "external"))
        key = (summary["algorithm"], *map(repr, told), repr(variant))
        if key not in self._made:
            words = {name: value for name, value in (variant or {}).items() if isinstance(value, (str, bool))}
            self._made[key] = self._make(summary, (summary.get("default_options") or {}) | words)
        return self._made[key]

    def _make(self, summary: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
        name = summary["algorithm"]
        title = summary.get("title") or name
        shown = {}
        for option, value in (summary.get("options") or {}).items():
            if option in expected:
                differs = value != expected[option]
            else:
                differs = len(self._seen[name][option]) > 1 or (option, value) == ENCODER_ONLY
            if differs:
                shown[option] = value
        more, of_weighting = _describe_weighting(summary)
        return write_label(title, shown | of_weighting, more + (EXTERNAL if summary.get("external") else ""))


def _describe_weighting(summary: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what stands behind the title of a method with a weighting, and the latter's options worth mentioning."""
    weighting = summary.get("weighting")
    if not weighting:
        return "", {}
    usual, own = weighting["default_options"], summary.get("options") or {}
    differing = {k: v for k, v in weighting["options"].items() if k not in usual or v != usual[k]}
    names = {option: f"{weighting['name']}.{option}" if option in own else option for option in differing}
    return f"+{weighting['title']}", {names[option]: value for option, value in differing.items()}


def is_plain(label: str) -> bool:
    """Return whether a label tells of no options."""
    return "(" not in label and not label.partition("+")[0].endswith("-E")


def write_label(title: str, options: Mapping[str, Any], more: str = "") -> str:
    """Return a label that tells a method's title and options: "FedProx-E (mu=0.1)"; `more` stands behind the title."""
    shown = dict(options)
    if ENCODER_ONLY in shown.items():
        title += "-E"
        del shown[ENCODER_ONLY[0]]
    told = ", ".join(f"{key}={option_text(value)}" for key, value in shown.items())
    return f"{title}{more} ({told})" if told else f"{title}{more}"


def read_label(label: str) -> tuple[str, dict[str, Any]]:
    """Return the title and the options that a label tells: ("FedProx", {"shared": "encoder", "mu": 0.1})."""
    title, _, told = label.removesuffix(")").partition(" (")
    options = {key: parse_scalar(value) for key, value in (part.split("=") for part in told.split(", ") if told)}
    if title.endswith("-E"):
        return title.removesuffix("-E"), {**dict([ENCODER_ONLY]), **options}
    return title, options


def dataset_titles(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return what tables call the datasets of a run: as its summary says, or by their names where it does not."""
    names = dict.fromkeys(client["dataset"] for client in everybody(summary))
    return {name: dataset_title(name, summary["data"]) for name in names} | (summary.get("dataset_titles") or {})


def option_text(value: Any) -> str:
    """Say the value of an option as `--set` takes it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def client_groups(clients: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return each client's group: clients of one dataset, one set of tasks and the same labels share a name."""
    alike: dict[tuple[str, frozenset[str], frozenset, float], list[str]] = {}
    for client in clients:
        labels, noise = frozenset((client.get("relabel") or {}).items()), client.get("label_noise") or 0.0
        alike.setdefault((client["dataset"], frozenset(client["tasks"]), labels, noise), []).append(client["id"])
    groups: dict[str, str] = {}
    for (dataset, tasks, _, noise), ids in alike.items():
        stems = {re.sub(r"-\d+$", "", name) for name in ids}
        if len(ids) == 1:
            name = ids[0]
        elif len(stems) == 1:
            name = stems.pop()
        else:
            name = f"{dataset}-{'+'.join(sorted(tasks))}"
        if noise and len(ids) > 1:
            name = f"{name}-noise-{noise:g}"
        if name in groups.values():
            name = f"{name}-{'+'.join(sorted(tasks))}"
        groups |= dict.fromkeys(ids, name)
    return groups
