"""What may follow on a command line, when a shell asks."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any


def complete(parser: argparse.ArgumentParser) -> None:
    """Tell the shell what may follow the words that it has, then end the process."""
    import argcomplete

    for action in _actions(parser):
        if action.dest in NAMES and action.choices is None:
            action.completer = _completer(NAMES[action.dest])  # type: ignore[attr-defined]  # argcomplete looks there
    argcomplete.autocomplete(parser, always_complete_options="long")


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield every flag and word of a parser and of the verbs below it."""
    for action in parser._actions:  # argparse lists them nowhere else
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)


def _completer(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """Complete the last of several names with commas between them; files are offered too, as paths are names."""

    def find(prefix: str, **_: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        before, comma, last = prefix.rpartition(",")
        known = names()
        if "+" in last and names is _algorithms:  # a method with a weighting of losses
            known = [f"{last.rpartition('+')[0]}+{name}" for name in _names_in("..weightings", "WEIGHTINGS")]
        found = [f"{before}{comma}{name}" for name in known if name.startswith(last)]
        return found + (FilesCompleter()(prefix) if "/" in last or last.startswith(".") else [])

    return find


def _names_in(module: str, name: str) -> Iterable[str]:
    """Return the names that a registry, or a function that lists files, has."""
    found = getattr(importlib.import_module(module, __package__), name)
    return found() if callable(found) else found


_algorithms = partial(_names_in, "..algorithms", "ALGORITHMS")
_scenarios = partial(_names_in, "..scenarios", "scenario_files")
# What a flag is called → the names that it takes.
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    **dict.fromkeys(("algo", "algos", "baseline", "pair"), _algorithms),
    **dict.fromkeys(("scenario", "scenarios"), _scenarios),
    "preset": partial(_names_in, "..config.presets", "preset_files"),
}
