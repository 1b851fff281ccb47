"""Combine preset, scenario, a method's options and overrides into one checked config."""

from __future__ import annotations

import dataclasses
import json
import numbers
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..algorithms import ALGORITHMS, Algorithm
from ..base.errors import FmtlbenchError, UsageError, nearest, short_repr, shorten, unknown
from ..base.located import Items, Located, Tree, locate, located, look_up
from ..base.schema import build, build_given, build_mapping, plain
from ..base.user_code import UserCode, check_class, read_user_code
from ..base.yamlfile import parse_scalar
from ..data.datasets import dataset_of_file, domains, identify_dataset_file
from ..data.meters import check_metric_options
from ..data.plugins import find_name, load_plugins, take_file
from ..exchange.hooks import build_options
from ..networks.architectures import ARCHITECTURES, Architecture
from ..networks.network import OPTIONS, find_architecture
from ..networks.weights import resolved
from ..scenarios import Parameters, check_scenario, read_scenario, scenario_files, take_files
from ..weightings import WEIGHTINGS
from .checks import check_together
from .presets import find_preset, identify_preset, name_preset, read_preset
from .roles import roles
from .run_config import NUMERICS_VERSION, RunConfig
from .setting import EQUAL, WEIGHTING, WEIGHTING_OPTIONS, Setting, digest, identity, is_below, is_own


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


def split_method(word: str) -> tuple[str, str | None]:
    """Return method and weighting of `fedavg+uw`, either of which may be the path of a file; None: no weighting.

    A plus in the name of a method or of a folder is taken as such.
    """
    if word in ALGORITHMS:
        return word, None
    pieces = word.split("+")
    for count in range(1, len(pieces)):
        method, weighting = "+".join(pieces[:count]), "+".join(pieces[count:])
        if method in ALGORITHMS or method.endswith(".py"):
            return method, weighting
    if len(pieces) == 1 or word.endswith(".py"):
        return word, None
    return pieces[0], "+".join(pieces[1:])


def read_method(word: str, where: str, known: Iterable[str] = ()) -> tuple[str, dict[str, Any]]:
    """Read `fedavg+uw`; return the method, and the override that chooses the weighting, if there is one.

    Args:
        word: Names or paths of files.
        where: The flag or line that it stands in.
        known: What else would have been valid in the place of a method.

    Raises:
        UsageError: There is no such method or weighting; the nearest names are told.
    """
    method, weighting = split_method(word)
    first, valid = method.partition("+")[0], [*ALGORITHMS, *known]
    if not method.endswith(".py") and method not in ALGORITHMS:
        raise unknown("algorithm", method, valid, where)
    if first != method and method.endswith(".py") and not Path(method).is_file():
        raise UsageError(f"{where}: no such file: {method}, and no algorithm {first!r}; {nearest(first, valid)}")
    if weighting is None:
        return method, {}
    if weighting.endswith(".py"):
        if not Path(weighting).is_file():
            raise UsageError(f"{where}: no such file: {weighting}")
    elif weighting not in WEIGHTINGS:
        raise unknown("weighting", weighting, WEIGHTINGS, where)
    return method, {WEIGHTING: weighting}


def resolve(
    algo: str,
    scenario: str,
    preset: str = "nano",
    seed: int = 0,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Combine preset, scenario, the method's options and overrides into one checked config."""
    _check_seed(seed)
    check_scenario_name(scenario, "--scenario")
    find_preset(preset, "--preset")
    usual = _usual_setting(scenario, preset, device, overrides or {})
    tree, method = _combine(scenario, preset, overrides, algo)
    assert method is not None, algo
    config = _with_method(tree, method, seed, device)
    return dataclasses.replace(config, departures=_departures(config, usual, overrides or {}))


def _usual_setting(scenario: str, preset: str, device: str, overrides: Mapping[str, Any]) -> Setting | None:
    """Return the setting that preset and scenario give by themselves; None where they need overrides to make one."""
    if all(_is_of_method(key) for key in overrides):
        return None
    parameters = {key: value for key, value in overrides.items() if key.startswith("scenario.")}
    try:
        return resolve_setting(scenario, preset, device, parameters)
    except UsageError:
        return None


def _is_of_method(key: str) -> bool:
    """Return whether an override is of the method or its weighting, which are no part of a setting."""
    return key.startswith("algo.") or is_own(key)


def _departures(config: RunConfig, usual: Setting | None, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a setting that are not the preset's: where that has none by itself, all that were given."""
    given = {key: plain(value) for key, value in overrides.items() if not _is_of_method(key)}
    if usual is None:
        return given
    own = [f"{path}.{domain}" for path in BY_DOMAIN for domain in config.scenario.domains]
    differences = config.setting().differences(usual, skip=roles().incidental)
    if differences.keys() & {"model.pretrained", "model.backbone"}:
        differences.pop("model.weights_sha256", None)  # it goes with them
    return {
        path: value
        for path, (value, _) in differences.items()
        if not is_below(path, BY_DOMAIN) or is_below(path, own)  # of domains that take part
    }


def check_preset(given: str) -> list[str]:
    """Check what a preset says as far as that goes without a scenario and a method; return what is doubtful in it.

    Raises:
        UsageError: It says what no run accepts.
    """
    tree = read_preset(given)
    values = tree.copy()
    for section in (*OF_PRESETS, "description"):
        values.pop(section, None)
    for section, hint in typing.get_type_hints(RunConfig).items():
        if dataclasses.is_dataclass(hint) and section in values:
            build_given(hint, values.pop(section), section)  # a file that others extend may leave values out
    build_given(RunConfig, values)
    _fill_in_weighting(tree)
    for section, registry in OF_PRESETS.items():
        _preset_options(tree, section)
        for name in tree.get(section, ()):
            build_options(registry[name], look_up(tree, f"{section}.{name}"), f"{section}.{name}")
    known = (*domains(tuple((tree.get("data", {}).get("files") or {}).values())), "default")
    doubts = []
    for path in BY_DOMAIN:
        section, key = path.split(".")
        by_domain = tree.get(section, {}).get(key)
        for domain in by_domain if isinstance(by_domain, Mapping) else ():
            if domain not in known:
                place = f"{path}.{domain}"
                told = f"no dataset {domain!r} unless the scenario brings it; {nearest(domain, known)}"
                doubts.append(f"{locate(tree, place)}: {place}: {told}")
    return doubts


def check_scenario_name(given: str, where: str) -> None:
    """Refuse the name of a scenario, or the path of its file, that is not there; `where` gave it: a flag or a line."""
    if given.endswith((".yml", ".yaml")):
        if not Path(given).exists():
            raise UsageError(f"{where}: no such file: {given}")
    elif given not in (known := scenario_files()):
        raise unknown("scenario", given, known, where)


def resolve_without_method(
    scenario: str,
    preset: str = "nano",
    seed: int = 0,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Combine preset, scenario and overrides into a checked config without a method: what all methods share there."""
    tree, _ = _combine(scenario, preset, overrides)
    del tree["algo"]
    return _check(tree, seed, device)


def resolve_setting(
    scenario: str, preset: str = "nano", device: str = "cpu", overrides: Mapping[str, Any] | None = None
) -> Setting:
    """Return the setting of a preset, a scenario and overrides, for any method."""
    return resolve_without_method(scenario, preset, device=device, overrides=overrides).setting()


def resolve_options(algo: str, preset: str, overrides: Mapping[str, Any]) -> tuple[type[Algorithm], Any]:
    """Return the method and its options as preset and overrides give them, for no particular scenario."""
    method, _ = _find_method(algo)
    options = _preset_options(read_preset(preset), "algorithms", method.name)
    options |= {key.removeprefix("algo."): plain(value) for key, value in overrides.items() if key.startswith("algo.")}
    return method, build_options(method, options)


def resolve_stored(
    tree: Tree,
    seed: int | None = None,
    device: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Return the config that a run was made with, from its config.yaml, with overrides, seed and device on top.

    Args:
        tree: What the file holds, without its format number.
        seed: In place of the stored one.
        device: Likewise.
        overrides: Values by dotted name, as for `resolve`; the scenario is as it is stored.

    Raises:
        UsageError: The config cannot be rebuilt as it was, or the overrides make no sense.
    """
    stored = RunConfig.from_tree(tree)
    _check_rebuildable(stored, tree)
    again = _resolve_again(stored, tree, {}, stored.seed, stored.device)
    before, after = identity(tree), identity(plain(again))
    if digest(before) != digest(after):
        paths = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        told = [f"{path} was {short_repr(before.get(path))}, is {short_repr(after.get(path))}" for path in paths[:4]]
        raise UsageError(f"{locate(tree)}: this version cannot rebuild the config: {'; '.join(told)}")
    seed, device = stored.seed if seed is None else seed, device or stored.device
    if not overrides:
        again = dataclasses.replace(again, departures=stored.departures)
        return dataclasses.replace(again, seed=_check_seed(seed), device=device)
    usual = _usual_setting_again(stored)
    changed = _resolve_again(stored, tree, overrides, seed, device)
    if stored.departures is None:  # what the run's own were is not known
        return changed
    if usual is not None:
        return dataclasses.replace(changed, departures=_departures(changed, usual, overrides))
    more = _departures(changed, again.setting(), overrides)
    return dataclasses.replace(changed, departures={**stored.departures, **more})


def _usual_setting_again(stored: RunConfig) -> Setting | None:
    """Return the setting that the preset of a stored config gives its scenario; None where nobody can know it now."""
    preset = stored.preset_file.path or stored.preset
    try:
        if identify_preset(preset) != stored.preset_file.sha256:  # the file has changed since
            return None
        tree, network, _ = _start_from_preset(preset, {})
        tree["scenario"] = located(plain(stored.scenario), tree.place)
        brought = {name: sha for name, sha in stored.plugins.items() if not name.startswith(("metric ", "weighting "))}
        tree["plugins"] = brought  # by the scenario; the others are the config's own choice
        _complete(tree, network)
        del tree["algo"]
        return _check(tree, stored.seed, stored.device).setting()
    except UsageError:
        return None


def find_departures(stored: RunConfig) -> dict[str, Any] | None:
    """Find anew in which values a stored config is not its preset's; None where the preset is not there as it was."""
    usual = _usual_setting_again(stored)
    return None if usual is None else _departures(stored, usual, {})


def _check_rebuildable(stored: RunConfig, tree: Tree) -> None:
    """Refuse a stored config whose numbers, or whose user's files, this installation does not have."""
    if stored.numerics != NUMERICS_VERSION:
        raise UsageError(
            f"{locate(tree, 'numerics')}: numerics: the run was made by version {stored.numerics} of the engine; "
            f"this is {NUMERICS_VERSION}, which gives other numbers: name --algo, --scenario and --preset for a new run"
        )
    for key, code in (("algorithm", stored.algorithm.code), ("model.architecture", stored.model.code)):
        if not code.is_unchanged():
            state = "is not there any more" if code.is_missing() else "or a module beside it has changed since"
            raise UsageError(f"{locate(tree, key)}: {key}: {code.file} {state}, so the run cannot be rebuilt")
    try:
        for domain in sorted(stored.scenario.domains):
            stored.data.dataset(domain)
        load_plugins(stored)
    except FmtlbenchError as error:
        raise UsageError(f"{locate(tree)}: the run cannot be rebuilt: {error}") from None


def _resolve_again(stored: RunConfig, said: Tree, overrides: Mapping[str, Any], seed: int, device: str) -> RunConfig:
    """Resolve a stored config as if it were a preset and a scenario, with overrides on top."""
    tree = located(plain(stored), said.place, said)
    method, _ = _find_method(stored.algorithm.file or stored.algorithm.name)
    tree["algo"] = tree["algorithm"]["options"]
    tree["model"]["architecture"] = stored.model.code.file or stored.model.architecture
    network = _find_network(tree, overrides)
    if network is not None and network[0].name != stored.model.architecture:
        tree["model"]["options"] = Tree()  # those that are stored are another network's
    if any(is_below(key, ["model"]) for key in overrides):
        tree["model"]["weights_sha256"] = None  # found anew
    _drop_other_options(tree, overrides)
    for key, value in overrides.items():
        flag = f"--set {key}={_show(value)}"
        if is_below(key, ["scenario"]):
            raise UsageError(f"{flag}: the scenario of a stored config is as it was; name one by --scenario instead")
        _override(tree, key, value, flag)
    _complete(tree, network)
    return _with_method(tree, method, seed, device)


def _start_from_preset(
    preset: str, overrides: Mapping[str, Any], algo: str | None = None
) -> tuple[Tree, tuple[type[Architecture], UserCode] | None, type[Algorithm] | None]:
    """Read a preset into a tree without a scenario.

    Returns:
        The tree, with the method's options as `algo`; the network that preset and overrides choose; the method, if
        there is one.
    """
    tree = read_preset(preset)
    tree.pop("description", None)
    tree["preset"] = name_preset(preset)
    network = _find_network(tree, overrides)
    method, code = _find_method(algo) if algo is not None else (None, UserCode())
    tree["algorithm"] = {"name": method.name if method else "", "options": {}, **plain(code)}
    tree["algo"] = _preset_options(tree, "algorithms", method.name if method else None)
    if (sha256 := identify_preset(preset)) is not None:
        tree["preset_file"] = {"sha256": sha256, "path": str(Path(preset).absolute()), "options": dict(tree["algo"])}
    if network is not None:
        tree.section("model")["options"] = _preset_options(tree, "architectures", network[0].name)
    for section in OF_PRESETS:
        tree.pop(section, None)
    return tree, network, method


def _combine(
    scenario: str, preset: str, overrides: Mapping[str, Any] | None, algo: str | None = None
) -> tuple[Tree, type[Algorithm] | None]:
    """Put the values of preset, scenario file and overrides into one tree.

    Returns:
        The tree, with the method's options as `algo`; the method, if there is one.
    """
    tree, network, method = _start_from_preset(preset, overrides or {}, algo)
    _drop_other_options(tree, overrides or {})
    name, tree["scenario"] = read_scenario(scenario)
    tree["scenario"]["name"] = name
    tree.places["scenario"] = tree["scenario"].place
    parameters = Parameters(name, tree["scenario"], "scenario")
    for key, value in (overrides or {}).items():
        flag = f"--set {key}={_show(value)}"
        _check_key(key, flag)
        if not parameters.take(key, plain(value), flag):
            _override(tree, key, value, flag)
    parameters.fill(tree["scenario"])
    _complete(tree, network)
    return tree, method


def _override(tree: Tree, key: str, value: Any, flag: str) -> None:
    """Put an override into the tree; `flag` gave it."""
    _check_key(key, flag)
    *parents, leaf = key.split(".")
    node: Any = tree
    for depth, part in enumerate(parents):
        if isinstance(node, Items):
            node = node[_parse_index(node, part, flag)]
        else:
            if part not in node.places:  # a section that no file has
                node.places[part] = flag
            node = node.section(part)
        if not isinstance(node, Located):
            raise UsageError(f"{flag}: {'.'.join(parents[: depth + 1])} is a value, not a section")
    node.put(_parse_index(node, leaf, flag) if isinstance(node, Items) else leaf, plain(value), flag)


def _complete(tree: Tree, network: tuple[type[Architecture], UserCode] | None) -> None:
    """Fill in what follows from other values: files that are named, defaults by domain, options of what is chosen."""
    _take_files(tree)
    _fill_in_weighting(tree)
    _fill_defaults(tree)
    _check_places(tree)
    if network is not None:
        architecture, code = network
        options = build_options(architecture, look_up(tree, OPTIONS), OPTIONS)
        tree["model"] |= {"architecture": architecture.name, "options": plain(options), "code": plain(code)}


def _with_method(tree: Tree, method: type[Algorithm], seed: int, device: str) -> RunConfig:
    """Build the checked config of a complete tree."""
    tree["algorithm"]["options"] = plain(build_options(method, look_up(tree, "algo")))
    del tree["algo"]
    return _check(tree, seed, device)


def _find_method(algo: str) -> tuple[type[Algorithm], UserCode]:
    """Return the class that --algo means, checked, and what identifies it."""
    method = check_class(ALGORITHMS.resolve(algo, "--algo"), Algorithm, "method", ("title", "paper"), "--algo")
    return method, read_user_code(algo)


def _find_network(tree: Tree, overrides: Mapping[str, Any]) -> tuple[type[Architecture], UserCode] | None:
    """Return the network that preset and overrides choose; None if they do not, which the schema refuses later."""
    key = "model.architecture"
    name, where = (tree.get("model") or {}).get("architecture"), f"{locate(tree, key)}: {key}"
    for given, value in overrides.items():
        if given in ("model", key):
            where = f"--set {given}={_show(value)}"
            name = value if given == key else value.get("architecture") if isinstance(value, Mapping) else None
    return find_architecture(name, where) if isinstance(name, str) else None


def _drop_other_options(tree: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Take the options of a weighting out of a preset's or a stored config's tree if overrides choose another one."""
    train = tree.get("train")
    if isinstance(train, dict) and overrides.get(WEIGHTING, train.get("weighting")) != train.get("weighting"):
        train.pop("weighting_options", None)


def _fill_in_weighting(tree: Tree) -> None:
    """Read the file of a weighting, if a config names one, and write out all options of the weighting."""
    train = tree.get("train")
    given = train.get("weighting", EQUAL) if isinstance(train, dict) else None
    if not isinstance(given, str):  # the schema refuses it
        return
    where = locate(tree, WEIGHTING)
    name = find_name("weighting", given, where if where.startswith("--") else f"{where}: {WEIGHTING}", tree)
    options = build_options(WEIGHTINGS[name], look_up(tree, WEIGHTING_OPTIONS), WEIGHTING_OPTIONS)
    train |= {"weighting": name, "weighting_options": plain(options)}
    for files in (tree.get("plugins"), tree.get("plugin_files")):
        others = [entry for entry in files or {} if entry.startswith("weighting ") and entry != f"weighting {name}"]
        for entry in others:  # of a stored config whose weighting an override has replaced
            del files[entry]


def _check_places(tree: Tree) -> None:
    """Refuse a value at a place that it was moved from; the error names the new place."""
    for path, moved in roles().moved.items():
        section, _, name = moved.first.partition(".")
        if isinstance(tree.get(section), Mapping) and name in tree[section]:
            option = path.rpartition(".")[2]
            having = [name for name, architecture in ARCHITECTURES.items() if architecture.has_option(option)]
            raise UsageError(
                f"{locate(tree, moved.first)}: {moved.first} is {path} now, an option of model.architecture="
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


def _take_files(tree: Tree) -> None:
    """Read the files that config and scenario name: of datasets, metrics, partitions and tasks."""
    data, scenario = tree.get("data"), tree["scenario"]
    if isinstance(data, dict):
        named = {} if data.get("files") is None else build_mapping(look_up(tree, "data.files"), "data.files")
        given = {domain: str(Path(str(path)).absolute()) for domain, path in named.items()}
        files = scenario.get("datasets") or []
        if not isinstance(files, list) or not all(isinstance(path, str) for path in files):
            where = locate(tree, "scenario.datasets")
            raise UsageError(f"{where}: datasets: expected a list of files, got {short_repr(files)}")
        for path in files:
            given.setdefault(dataset_of_file(path).domain, path)
        for domain, path in given.items():
            if (brings := dataset_of_file(path).domain) != domain:
                raise UsageError(f"{locate(tree, f'data.files.{domain}')}: {path} brings {brings!r}, not {domain!r}")
        if given:
            data["files"] = given
            data["file_sha256"] = {domain: identify_dataset_file(path) for domain, path in given.items()}
    take_files(scenario, tree, locate(tree, "scenario"))
    metrics = tree["evaluation"].get("metrics") if isinstance(tree.get("evaluation"), dict) else None
    for task, name in (metrics if isinstance(metrics, dict) else {}).items():
        if isinstance(name, str) and name.endswith(".py"):
            metrics[task] = take_file("metric", name, locate(tree, f"evaluation.metrics.{task}"), tree)


def _check(tree: Tree, seed: int, device: str) -> RunConfig:
    """Build the config and check all that does not depend on the method."""
    tree |= {"seed": _check_seed(seed), "device": device}
    config = build(RunConfig, tree).with_exchange()
    config = dataclasses.replace(config, model=resolved(config.model))
    check_scenario(config.scenario, tree["scenario"], tuple((config.data.files or {}).values()))
    if not config.rendered:  # also if the preset says otherwise
        config = dataclasses.replace(config, data=dataclasses.replace(config.data, source="real"))
    check_together(config, tree)
    options = check_metric_options(config, tree)
    return dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, metric_options=options))


def _preset_options(tree: Tree, section: str, name: str | None = None) -> Tree:
    """Return the options that a preset's section gives `name`; refuse a section with names that there are not."""
    options = Tree(place=tree.place)
    registry = OF_PRESETS[section]
    for entry in tree.get(section, ()):
        given = look_up(tree, f"{section}.{entry}")
        if entry not in registry:
            raise unknown(registry.kind, entry, registry, f"{given.place}: {section}")
        if entry == name:
            for key, value in build_mapping(given, f"{section}.{entry}").items():
                options.put(key, value, locate(given, key))
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


def _parse_index(node: list, part: str, flag: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        valid = f"an index from 0 to {len(node) - 1}" if node else "nothing here, the list is empty"
        raise UsageError(f"{flag}: expected {valid}, got {part!r}")
    return int(part)


def _show(value: Any) -> str:
    return shorten(value, lambda v: v if isinstance(v, str) else json.dumps(plain(v), default=str), longest=200)
