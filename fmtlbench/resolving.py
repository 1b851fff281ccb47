"""Preset, scenario, a method's options and overrides become one checked config."""

from __future__ import annotations

import dataclasses
import json
import numbers
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .algorithms import ALGORITHMS, Algorithm
from .checks import check_together, why_unfit
from .config import RunConfig
from .datasets import dataset_of_file
from .errors import RefusedError, UsageError, short_repr, shorten, unknown
from .files import sha256_file
from .hooks import build_options, refusal_of
from .meters import check_metric_options
from .models.weights import resolved
from .names import check_name
from .plugins import take_file
from .presets import read_preset
from .scenarios import Parameters, check_scenario, read_scenario, take_files
from .schema import build, build_mapping, locate, plain
from .setting import Setting
from .yamlfile import parse_scalar


def parse_overrides(assignments: Iterable[str], flag: str = "--set", example: str = "train.lr=1e-3") -> dict[str, Any]:
    """`["train.lr=1e-3"]` → {"train.lr": 0.001}; malformed ones are named."""
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
    """Preset + scenario + algorithm options + overrides → one checked config."""
    seed = _check_seed(seed)
    method = _check_method(ALGORITHMS.resolve(algo, "--algo"))
    tree, origins = _put_together(scenario, preset, overrides, method.name)
    options = build_options(method, tree.pop("algo"), origins)
    is_file = algo.endswith(".py")
    algorithm = {
        "name": method.name,
        "options": plain(options),
        "source": sha256_file(Path(algo)) if is_file else None,
        "helpers": _helpers_of(algo) if is_file else {},
        "file": algo if is_file else None,
    }
    config = _check({**tree, "algorithm": algorithm, "seed": seed, "device": device}, origins)
    reason = refusal_of(method, options, config.scenario, config.federation) or why_unfit(config, method, options)
    if reason:
        raise RefusedError(f"{method.name} on {config.scenario.name}: {reason}")
    return config


def _helpers_of(algo: str) -> dict[str, str]:
    """Path from the method's folder → sha256, of the modules that the method's file has imported from there."""
    folder = Path(algo).resolve().parent
    return {file.relative_to(folder).as_posix(): sha256_file(file) for file in ALGORITHMS.helper_files()}


def resolve_without_method(
    scenario: str,
    preset: str = "nano",
    seed: int = 0,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Preset + scenario + overrides → a checked config of no method: what any method's runs there have in common."""
    tree, origins = _put_together(scenario, preset, overrides)
    del tree["algo"]
    nobody = {"name": "", "options": {}}
    return _check({**tree, "algorithm": nobody, "seed": _check_seed(seed), "device": device}, origins)


def resolve_setting(
    scenario: str, preset: str = "nano", device: str = "cpu", overrides: Mapping[str, Any] | None = None
) -> Setting:
    """Preset + scenario + overrides → their setting, whatever method may run in it."""
    return resolve_without_method(scenario, preset, device=device, overrides=overrides).setting()


def resolve_options(algo: str, preset: str, overrides: Mapping[str, Any]) -> tuple[type[Algorithm], Any]:
    """(the method, its options as preset and overrides give them), whether or not a scenario is one for it."""
    method = _check_method(ALGORITHMS.resolve(algo, "--algo"))
    tree, origins = read_preset(preset)
    own = {key.removeprefix("algo."): plain(value) for key, value in overrides.items() if key.startswith("algo.")}
    options = _preset_options(tree.get("algorithms"), method.name, origins) | own
    return method, build_options(method, options, origins)


def _put_together(
    scenario: str, preset: str, overrides: Mapping[str, Any] | None, method: str | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """(the values of preset, scenario file and overrides, with the method's options as `algo`; where each is from)."""
    tree, origins = read_preset(preset)
    tree.pop("description", None)
    tree["preset"] = preset
    tree["algo"] = _preset_options(tree.pop("algorithms", None), method, origins)
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
    return tree, origins


# Values by domain; what they say for `default` holds for the domains of the scenario that they do not name.
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
        for path in scenario.get("datasets") or ():
            given.setdefault(dataset_of_file(str(path)).domain, str(path))
        for domain, path in given.items():
            if (brings := dataset_of_file(path).domain) != domain:
                raise UsageError(f"{locate(f'data.files.{domain}', origins)}: {path} brings {brings!r}, not {domain!r}")
        if given:
            data["files"] = given
            data["file_sha256"] = {domain: sha256_file(Path(path)) for domain, path in given.items()}
    take_files(scenario, tree, locate("scenario", origins))
    metrics = tree["evaluation"].get("metrics") if isinstance(tree.get("evaluation"), dict) else None
    for task, name in (metrics if isinstance(metrics, dict) else {}).items():
        if isinstance(name, str) and name.endswith(".py"):
            metrics[task] = take_file("metric", name, locate(f"evaluation.metrics.{task}", origins), tree)


def _check(tree: Mapping[str, Any], origins: Mapping[str, str]) -> RunConfig:
    """Build the config and check all that no method decides."""
    config = build(RunConfig, tree, origins).with_exchange()
    config = dataclasses.replace(config, model=resolved(config.model))
    check_scenario(config.scenario, origins, "scenario", tuple((config.data.files or {}).values()))
    domains = {spec.dataset for spec in config.scenario.everybody()}
    if all(config.data.dataset(domain).source == "real" for domain in domains):  # whatever the preset thought of
        config = dataclasses.replace(config, data=dataclasses.replace(config.data, source="real"))
    check_together(config, origins)
    options = check_metric_options(config, origins)
    return dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, metric_options=options))


def _preset_options(entries: Any, name: str | None, origins: dict[str, str]) -> dict[str, Any]:
    """What a preset's `algorithms` says of the method `name`; where it says so goes to `origins`."""
    options: dict[str, Any] = {}
    for entry, given in build_mapping(entries or {}, origins, "algorithms").items():
        where = locate(f"algorithms.{entry}", origins)
        if entry not in ALGORITHMS:
            raise unknown("algorithm", entry, ALGORITHMS, f"{where}: algorithms")
        if entry == name:
            options = build_mapping(given, origins, f"algorithms.{entry}")
            origins |= {f"algo.{key}": locate(f"algorithms.{entry}.{key}", origins) for key in options}
    return options


def _check_seed(seed: Any) -> int:
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise UsageError(f"--seed {shorten(seed)}: expected a whole number, 0 or more and of at most 18 digits")
    return int(seed)


def _check_method(method: Any) -> type[Algorithm]:
    """A user's class, before anything is trained with it."""
    if not (isinstance(method, type) and issubclass(method, Algorithm)):
        raise UsageError(f"--algo: {method.__qualname__} is not a subclass of fmtlbench.algorithms.Algorithm")
    check_name(
        method.name, "method", f"--algo: {method.__qualname__}.name"
    )  # it may have been changed after registering
    for name in ("title", "paper"):
        if name not in vars(method):  # inherited ones would label its rows as its parent's
            raise UsageError(f'--algo: {method.__qualname__} has no {name} of its own; add {name} = "…" to the class')
        if not isinstance(getattr(method, name), str):
            raise UsageError(f"--algo: {method.__qualname__}.{name}: expected text, got {getattr(method, name)!r:.80}")
    if not dataclasses.is_dataclass(method.Params):
        raise UsageError(f"--algo: {method.__qualname__}.Params is not a dataclass; add @dataclass(frozen=True)")
    return method


# What an override may reach, and the flag that decides what it may not.
SECTIONS = ("algo", "checkpoint_every", "data", "evaluation", "federation", "model", "scenario", "train")
ELSEWHERE = {
    "algorithm": "the method is chosen by --algo, its options are algo.<option>",
    "algorithms": "these are a preset's options of all methods; those of this run's method are algo.<option>",
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
    if not all(rest):
        raise UsageError(f"{flag}: a name is missing between two dots")


def _assign(tree: dict, key: str, value: Any, flag: str) -> None:
    *parents, leaf = key.split(".")
    node: Any = tree
    for depth, part in enumerate(parents):
        node = node[_index(node, part, flag)] if isinstance(node, list) else node.setdefault(part, {})
        if not isinstance(node, (dict, list)):
            raise UsageError(f"{flag}: {'.'.join(parents[: depth + 1])} is a value, not a section")
    node[_index(node, leaf, flag) if isinstance(node, list) else leaf] = value


def _index(node: list, part: str, flag: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        valid = f"an index from 0 to {len(node) - 1}" if node else "nothing here, the list is empty"
        raise UsageError(f"{flag}: expected {valid}, got {part!r}")
    return int(part)


def _show(value: Any) -> str:
    return shorten(value, lambda v: v if isinstance(v, str) else json.dumps(plain(v), default=str), longest=200)
