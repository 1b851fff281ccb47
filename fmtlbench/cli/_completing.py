"""What may follow on a command line, when a shell asks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
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
            known = [f"{last.rpartition('+')[0]}+{name}" for name in _weightings()]
        found = [f"{before}{comma}{name}" for name in known if name.startswith(last)]
        return found + (FilesCompleter()(prefix) if "/" in last or last.startswith(".") else [])

    return find


def _algorithms() -> Iterable[str]:
    from ..algorithms import ALGORITHMS

    return ALGORITHMS


def _weightings() -> Iterable[str]:
    from ..weightings import WEIGHTINGS

    return WEIGHTINGS


def _scenarios() -> Iterable[str]:
    from ..scenarios import scenario_files

    return scenario_files()


def _presets() -> Iterable[str]:
    from ..config.presets import preset_files

    return preset_files()


# What a flag is called → the names that it takes.
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "algo": _algorithms,
    "algos": _algorithms,
    "baseline": _algorithms,
    "pair": _algorithms,
    "scenario": _scenarios,
    "scenarios": _scenarios,
    "preset": _presets,
}
