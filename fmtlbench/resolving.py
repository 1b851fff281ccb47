"""Combine preset, scenario, a method's options and overrides into one checked config."""

from __future__ import annotations

import dataclasses
import json
import numbers
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .algorithms import ALGORITHMS, Algorithm
from .architectures import ARCHITECTURES, Architecture
from .checks import check_together, why_unfit
from .config import RunConfig
from .datasets import dataset_of_file, identify_dataset_file
from .errors import RefusedError, UsageError, short_repr, shorten, unknown
from .hooks import build_options, refusal_of
from .meters import check_metric_options
from .models.weights import resolved
from .networks import OPTIONS, find_architecture
from .plugins import take_file
from .presets import read_preset
from .scenarios import Parameters, check_scenario, read_scenario, take_files
from .schema import build, build_mapping, locate, plain
from .setting import MOVED, Setting, is_below
from .user_code import UserCode, check_class, read_user_code
from .yamlfile import parse_scalar


def parse_overrides(assignments: Iterable[str], flag: str = "--set", example: str = "train.lr=1e-3") -> dict[str, Any]:
    """Parse `["train.lr=1e-3"]` to {"train.lr": 0.001}; the error for a malformed one names it."""
    values = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(f"{flag} {shorten(text)}: expected key=value, for example {example}")
        try:
            values[key.strip()] = parse_scalar(value)
        except UsageError as error:
            raise UsageError(f"{flag} {shorten(text)}: {short_repr(value)} is not a value: {error}") from None
    return values


def resolve(
    algo: str,
    scenario: str,
    preset: str = "nano",
    seed: int = 0,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Combine preset, scenario, the method's options and overrides into one checked config."""
    seed = _check_seed(seed)
    tree, origins, method = _combine(scenario, preset, overrides, algo)
    options = build_options(method, tree.pop("algo"), origins)
    algorithm = {**tree["algorithm"], "options": plain(options)}
    config = _check({**tree, "algorithm": algorithm, "seed": seed, "device": device}, origins)
    reason = refusal_of(method, options, config.scenario, config.federation) or why_unfit(config, method, options)
    if reason:
        raise RefusedError(f"{method.name} on {config.scenario.name}: {reason}")
    return config


def resolve_without_method(
    scenario: str,
    preset: str = "nano",
    seed: int = 0,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Combine preset, scenario and overrides into a checked config without a method: what all methods share there."""
    tree, origins, _ = _combine(scenario, preset, overrides)
    del tree["algo"]
    return _check({**tree, "seed": _check_seed(seed), "device": device}, origins)


def resolve_setting(
    scenario: str, preset: str = "nano", device: str = "cpu", overrides: Mapping[str, Any] | None = None
) -> Setting:
    """Return the setting of a preset, a scenario and overrides, for any method."""
    return resolve_without_method(scenario, preset, device=device, overrides=overrides).setting()


def resolve_options(algo: str, preset: str, overrides: Mapping[str, Any]) -> tuple[type[Algorithm], Any]:
    """Return the method and its options as preset and overrides give them, for no particular scenario."""
    method, _ = _find_method(algo)
    tree, origins = read_preset(preset)
    own = {key.removeprefix("algo."): plain(value) for key, value in overrides.items() if key.startswith("algo.")}
    options = _preset_options(tree, "algorithms", method.name, "algo", origins) | own
    return method, build_options(method, options, origins)


def _combine(
    scenario: str, preset: str, overrides: Mapping[str, Any] | None, algo: str | None = None
) -> tuple[dict[str, Any], dict[str, str], type[Algorithm] | None]:
    """Put the values of preset, scenario file and overrides into one tree.

    Returns:
        The tree, with the method's options as `algo`; where each value is from; the method, if there is one.
    """
    tree, origins = read_preset(preset)
    tree.pop("description", None)
    tree["preset"] = preset
    network = _find_network(tree, origins, overrides or {})
    # After the network: only the file that was executed last may import modules of its folder in a hook.
    method, code = _find_method(algo) if algo is not None else (None, UserCode())
    tree["algorithm"] = {"name": method.name if method else "", "options": {}, **plain(code)}
    tree["algo"] = _preset_options(tree, "algorithms", method.name if method else None, "algo", origins)
    if network is not None:
        options = _preset_options(tree, "architectures", network[0].name, OPTIONS, origins)
        tree.setdefault("model", {})["options"] = options
    tree = {key: value for key, value in tree.items() if key not in OF_PRESETS}
    name, scenario_tree, scenario_origins = read_scenario(scenario)
    tree["scenario"] = {"name": name, **scenario_tree}
    origins |= {f"scenario.{k}" if k else "scenario": v for k, v in scenario_origins.items()}
    parameters = Parameters(name, tree["scenario"], origins, "scenario")
    for key, value in (overrides or {}).items():
        flag = f"--set {key}={_show(value)}"
        _check_key(key, flag)
        if parameters.take(key, plain(value), flag):
            continue
        _assign(tree, key, plain(value), flag)
        for stale in [path for path in origins if path.startswith(f"{key}.")]:
            del origins[stale]
        origins[key] = flag
        sections = key.split(".")[:-1]
        for depth in range(1, len(sections) + 1):  # sections that no file has
            origins.setdefault(".".join(sections[:depth]), flag)
    parameters.fill(tree["scenario"])
    _take_files(tree, origins)
    _fill_defaults(tree)
    _check_places(tree, origins)
    if network is not None:
        architecture, code = network
        options = build_options(architecture, tree["model"].get("options", {}), origins, OPTIONS)
        tree["model"] |= {"architecture": architecture.name, "options": plain(options), "code": plain(code)}
    return tree, origins, method


def _find_method(algo: str) -> tuple[type[Algorithm], UserCode]:
    """Return the class that --algo means, checked, and what identifies it."""
    method = check_class(ALGORITHMS.resolve(algo, "--algo"), Algorithm, "method", ("title", "paper"), "--algo")
    return method, read_user_code(ALGORITHMS, algo)


def _find_network(
    tree: Mapping[str, Any], origins: Mapping[str, str], overrides: Mapping[str, Any]
) -> tuple[type[Architecture], UserCode] | None:
    """Return the network that preset and overrides choose; None if they do not, which the schema refuses later."""
    key = "model.architecture"
    name, where = (tree.get("model") or {}).get("architecture"), f"{locate(key, origins)}: {key}"
    for given, value in overrides.items():
        if given in ("model", key):
            where = f"--set {given}={_show(value)}"
            name = value if given == key else value.get("architecture") if isinstance(value, Mapping) else None
    return find_architecture(name, where) if isinstance(name, str) else None


def _check_places(tree: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Refuse a value at a place that it was moved from; the error names the new place."""
    for path, moved in MOVED.items():
        section, _, name = moved.first.partition(".")
        if isinstance(tree.get(section), Mapping) and name in tree[section]:
            option = path.rpartition(".")[2]
            having = [name for name, architecture in ARCHITECTURES.items() if architecture.has_option(option)]
            raise UsageError(
                f"{locate(moved.first, origins)}: {moved.first} is {path} now, an option of model.architecture="
                f"{' and '.join(having)}"
            )


# Values by domain; the entry `default` is for the domains of the scenario that have no entry.
BY_DOMAIN = (
    "data.size",
    "data.train_samples",
    "data.test_samples",
    "train.local_epochs",
    "train.warmup_epochs",
    "train.scales",
    "train.rotate_degrees",
    "train.edge_weight",
)


def _fill_defaults(tree: dict[str, Any]) -> None:
    clients = tree["scenario"].get("clients")
    groups = [group for group in clients if isinstance(group, dict)] if isinstance(clients, list) else []
    for path in BY_DOMAIN:
        section, key = path.split(".")
        values = tree[section].get(key) if isinstance(tree.get(section), dict) else None
        if isinstance(values, dict) and "default" in values:
            usual = values.pop("default")
            for group in groups:
                if isinstance(domain := group.get("dataset"), str):
                    values.setdefault(domain, usual)


def _take_files(tree: dict[str, Any], origins: Mapping[str, str]) -> None:
    """Read the files that config and scenario name: of datasets, metrics, partitions and tasks."""
    data, scenario = tree.get("data"), tree["scenario"]
    if isinstance(data, dict):
        named = build_mapping(data.get("files") or {}, origins, "data.files")
        given = {domain: str(Path(str(path)).absolute()) for domain, path in named.items()}
        files = scenario.get("datasets") or []
        if not isinstance(files, list) or not all(isinstance(path, str) for path in files):
            where = locate("scenario.datasets", origins)
            raise UsageError(f"{where}: datasets: expected a list of files, got {short_repr(files)}")
        for path in files:
            given.setdefault(dataset_of_file(path).domain, path)
        for domain, path in given.items():
            if (brings := dataset_of_file(path).domain) != domain:
                raise UsageError(f"{locate(f'data.files.{domain}', origins)}: {path} brings {brings!r}, not {domain!r}")
        if given:
            data["files"] = given
            data["file_sha256"] = {domain: identify_dataset_file(path) for domain, path in given.items()}
    take_files(scenario, tree, locate("scenario", origins))
    metrics = tree["evaluation"].get("metrics") if isinstance(tree.get("evaluation"), dict) else None
    for task, name in (metrics if isinstance(metrics, dict) else {}).items():
        if isinstance(name, str) and name.endswith(".py"):
            metrics[task] = take_file("metric", name, locate(f"evaluation.metrics.{task}", origins), tree)


def _check(tree: Mapping[str, Any], origins: Mapping[str, str]) -> RunConfig:
    """Build the config and check all that does not depend on the method."""
    config = build(RunConfig, tree, origins).with_exchange()
    config = dataclasses.replace(config, model=resolved(config.model))
    check_scenario(config.scenario, origins, "scenario", tuple((config.data.files or {}).values()))
    if not config.rendered:  # also if the preset says otherwise
        config = dataclasses.replace(config, data=dataclasses.replace(config.data, source="real"))
    check_together(config, origins)
    options = check_metric_options(config, origins)
    return dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, metric_options=options))


def _preset_options(
    tree: Mapping[str, Any], section: str, name: str | None, target: str, origins: dict[str, str]
) -> dict[str, Any]:
    """Return the options that a preset's section gives `name`; note in `origins`, below `target`, where they stand."""
    options: dict[str, Any] = {}
    registry = OF_PRESETS[section]
    for entry, given in build_mapping(tree.get(section) or {}, origins, section).items():
        if entry not in registry:
            raise unknown(registry.kind, entry, registry, f"{locate(f'{section}.{entry}', origins)}: {section}")
        if entry == name:
            options = build_mapping(given, origins, f"{section}.{entry}")
            origins |= {f"{target}.{key}": locate(f"{section}.{entry}.{key}", origins) for key in options}
    return options


def _check_seed(seed: Any) -> int:
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise UsageError(f"--seed {shorten(seed)}: expected a whole number, 0 or more and of at most 18 digits")
    return int(seed)


# Sections of a preset that no config has: options, by the name of a method or network.
OF_PRESETS = {"algorithms": ALGORITHMS, "architectures": ARCHITECTURES}
# The sections that an override may change, and what to use for the others.
SECTIONS = ("algo", "checkpoint_every", "data", "evaluation", "federation", "model", "scenario", "train")
ELSEWHERE = {
    "algorithm": "the method is chosen by --algo, its options are algo.<option>",
    "algorithms": "these are a preset's options of all methods; those of this run's method are algo.<option>",
    "architectures": "these are a preset's options of all networks; those of this run's are model.options.<option>",
    "preset": "the preset is chosen by --preset",
    "seed": "the seed is given by --seed",
    "device": "the device is chosen by --device",
    "numerics": "the version of the engine cannot be chosen",
}


def _check_key(key: str, flag: str) -> None:
    section, *rest = key.split(".")
    if section in ELSEWHERE:
        raise UsageError(f"{flag}: {ELSEWHERE[section]}")
    if section not in SECTIONS:
        raise unknown("section", section, SECTIONS, flag)
    if section == "scenario" and rest in ([], ["name"]):
        raise UsageError(f"{flag}: the scenario is chosen by --scenario and named by its file")
    if is_below(key, ["model.code"]):
        raise UsageError(f"{flag}: is filled in by itself; a network is chosen by model.architecture=NAME or FILE.py")
    if not all(rest):
        raise UsageError(f"{flag}: a name is missing between two dots")


def _assign(tree: dict, key: str, value: Any, flag: str) -> None:
    *parents, leaf = key.split(".")
    node: Any = tree
    for depth, part in enumerate(parents):
        node = node[_parse_index(node, part, flag)] if isinstance(node, list) else node.setdefault(part, {})
        if not isinstance(node, (dict, list)):
            raise UsageError(f"{flag}: {'.'.join(parents[: depth + 1])} is a value, not a section")
    node[_parse_index(node, leaf, flag) if isinstance(node, list) else leaf] = value


def _parse_index(node: list, part: str, flag: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        valid = f"an index from 0 to {len(node) - 1}" if node else "nothing here, the list is empty"
        raise UsageError(f"{flag}: expected {valid}, got {part!r}")
    return int(part)


def _show(value: Any) -> str:
    return shorten(value, lambda v: v if isinstance(v, str) else json.dumps(plain(v), default=str), longest=200)
