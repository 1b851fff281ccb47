"""A run asked for by a file: YAML with the words of the flags, or the config.yaml of an earlier run."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..base.errors import UsageError, unknown
from ..base.located import Tree, locate
from ..base.schema import build
from ..base.yamlfile import load_yaml
from ..data.datasets import dataset_of_file
from .keep import check_keep
from .request import EXECUTORS, REUSES, RunRequest, name_line, place_beside, place_files
from .resolve import split_method
from .run_config import RunConfig
from .setting import WEIGHTING
from .stored import read_config

STORED_MARK = "algorithm"  # a section that a stored config has; the words of the flags say `algo`
CHOSEN = ("algo", "scenario", "preset")  # what a stored config says once and for all
ROUNDS = "federation.rounds"
_HINTS = typing.get_type_hints(RunRequest)
_WORDS = {
    f.name: _HINTS[f.name] for f in dataclasses.fields(RunRequest) if f.name not in ("overrides", "lines", "stored")
}
_WORDS |= {"set": dict[str, Any], "dataset_file": tuple[str, ...]}
# The file as it is: `run`'s flags, none of them needed.
_RunFile = dataclasses.make_dataclass("RunFile", [(name, hint, None) for name, hint in _WORDS.items()], frozen=True)


def ask_for_run(
    file: str | Path | None, given: Mapping[str, Any], overrides: Mapping[str, Any] | None = None
) -> RunRequest:
    """Make the request of a file, with what is given beside it in the place of the file's values.

    Args:
        file: YAML with the words of the flags of `fmtlbench run`, or a run's config.yaml; None: all is given.
        given: Fields of the request by name.
        overrides: Config values by dotted name; they take the place of the file's one by one.

    Raises:
        UsageError: The file is neither, holds a wrong value, or no method or scenario is named.
    """
    asked: dict[str, Any] = {"overrides": {}} if file is None else _read(Path(file), given)
    own = dict(asked.pop("overrides"))
    if "rounds" in given:
        own.pop(ROUNDS, None)
    if ROUNDS in (overrides or {}):
        asked.pop("rounds", None)
    if "+" in str(given.get("algo")):  # the weighting that it names takes the place of the file's
        own.pop(WEIGHTING, None)
    elif WEIGHTING in (overrides or {}) and "algo" in asked:
        asked["algo"] = split_method(asked["algo"])[0]
    asked |= given
    for name, kind, plural in (("algo", "method", "algorithms"), ("scenario", "scenario", "scenarios")):
        if asked.get(name) is None:
            where = "" if file is None else f"{file}: "
            raise UsageError(f"{where}which {kind}? --{name} NAME (fmtlbench list {plural}), or --config FILE")
    typed = {*(overrides or {}), *map(_flag, given)}
    lines = {key: line for key, line in asked.pop("lines", {}).items() if key not in typed}
    try:
        return RunRequest(**asked, overrides={**own, **(overrides or {})}, lines=lines)
    except UsageError as error:
        raise name_line(error, lines) from None


def dataset_files(paths: Iterable[str | Path]) -> dict[str, Any]:
    """Return the override that brings datasets by their files; none where there are no files."""
    files = {dataset_of_file(str(path)).domain: str(Path(path).absolute()) for path in paths}
    return {"data.files": files} if files else {}


def _read(file: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the request that a file makes, by name."""
    tree = load_yaml(file)
    if isinstance(tree, dict) and isinstance(tree.get(STORED_MARK), dict):
        return _read_stored(file, given)
    if not isinstance(tree, dict):
        raise UsageError(f"{locate(tree)}: expected the words of flags, such as algo: fedavg, or a config.yaml")
    words = Tree(place=tree.place, places={_spell(key): place for key, place in tree.places.items()})
    for key, value in tree.items():
        if _spell(key) in words:
            raise UsageError(f"{locate(tree, key)}: {key}: is given twice, with - and with _; give one of them")
        words[_spell(key)] = value
    for key in ("log", "dataset_file"):
        if isinstance(words.get(key), str):
            words[key] = [words[key]]
    checked = build(_RunFile, words)
    asked = {name: getattr(checked, name) for name in words if getattr(checked, name) is not None}
    if "keep" in asked:
        check_keep(asked["keep"], f"{locate(words, 'keep')}: keep")
    for name, known in (("reuse", REUSES), ("executor", EXECUTORS)):
        if name in asked and asked[name] not in known:
            raise unknown(name, asked[name], known, f"{locate(words, name)}: {name}")
    for name in (*CHOSEN, "log"):
        if name in asked:
            value = asked[name]
            beside = [place_beside(word, file.parent) for word in ([value] if isinstance(value, str) else value)]
            asked[name] = beside[0] if isinstance(value, str) else tuple(beside)
    datasets = dataset_files(file.parent / path for path in asked.pop("dataset_file", ()))
    chosen = place_files(asked.pop("set", {}), file.parent)
    told = {key: locate(words, f"set.{key}") for key in chosen}
    told |= {_flag(name): locate(words, name) for name in asked}
    return {**asked, "overrides": {**datasets, **chosen}, "lines": told}


def _spell(word: str) -> str:
    """Return a word as it is spelt in Python: data-root is data_root."""
    return word.replace("-", "_")


def _flag(name: str) -> str:
    """Return the flag that gives a field of the request."""
    return f"--{name.replace('_', '-')}"


def _read_stored(file: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    for name in CHOSEN:
        if given.get(name) is not None:
            raise UsageError(
                f"--{name} {given[name]}: {file} is the config of a run, whose method, scenario and preset belong "
                "together; --set, --seed and --rounds change it"
            )
    config = RunConfig.from_tree(read_config(file))
    return {
        "algo": config.algorithm.file or config.algorithm.name,
        "scenario": config.scenario.name,
        "preset": config.preset,
        "seed": config.seed,
        "device": config.device,
        "stored": str(file),
        "overrides": {},
    }
