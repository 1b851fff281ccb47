"""The parser of the command line: one line for every mistake, with the nearest verb, action, option or choice."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..base.errors import UsageError, nearest

# Verbs whose first word is an action; without one they list.
ACTIONS = {
    "runs": ("list", "show", "diff", "rm"),
    "papers": ("list", "compare", "reproduce", "claims"),
}


class _Formatter(argparse.HelpFormatter):
    """Fills texts of one line, and leaves the breaks of others where they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Argparse's, which refuses in one line and leaves texts of several lines as they are."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _Formatter, **options})

    def error(self, message: str) -> NoReturn:
        """Refuse a command line."""
        raise UsageError(f"{self._verb}{message}; `{self.prog} --help` shows what there is")

    @property
    def _verb(self) -> str:
        """Return how a message begins: with the verb and action, if there is one."""
        verb = self.prog.partition(" ")[2]
        return verb and f"{verb}: "

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of this verb; refuse those that it does not know, whatever else is missing."""
        for word in self._own_options(args or ()):
            name = word.partition("=")[0]
            if not any(known.startswith(name) for known in self._option_string_actions):
                close = nearest(name, self._option_string_actions, f"`{self.prog} --help` shows what there is")
                raise UsageError(f"{self._verb}no option {name!r}; {close}")
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"not expected here: {rest[0]!r}")
        return found, rest

    def _own_options(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words that can only be options, up to the verb or action that has a parser of its own."""
        for word in words:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return
            if word.startswith("--"):
                yield word

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of the choices."""
        if action.choices is None or value in action.choices:
            return
        close = nearest(str(value), map(str, action.choices))
        if action.option_strings:
            raise UsageError(f"{self._verb}{action.option_strings[-1]} {value}: {close}")
        raise UsageError(f"{self._verb}no {(action.metavar or action.dest).lower()} {str(value)!r}; {close}")


def add_actions(parser: argparse.ArgumentParser, verb: str, actions: Iterable[str]) -> None:
    """Add the actions of a verb: each is a file `_<verb>_<action>.py` with `add(actions)`."""
    parsers = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in actions:
        importlib.import_module(f"._{verb}_{action}", __package__).add(parsers)


def add_list_if_missing(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with `list` after a verb that lists where no action is named."""
    verb, action = [*words, "", ""][:2]
    actions = ACTIONS.get(verb, ())
    if not actions or action in (*actions, "-h", "--help"):
        return [*words]
    if verb != "runs" and action and not action.startswith("-"):
        return [*words]  # no action, and the parser says so
    if verb == "runs" and action and not action.startswith("-") and not Path(action).exists():
        raise UsageError(f"runs {action}: no such folder, and no action of `runs`; {nearest(action, actions)}")
    return [verb, "list", *words[1:]]


def refuse_others(args: argparse.Namespace, parser_group: argparse._ArgumentGroup, where: str) -> None:
    """Refuse flags of a group that was not asked for; `where` says what they are for."""
    for action in parser_group._group_actions:
        if (given := getattr(args, action.dest)) != action.default:
            words = action.option_strings[-1]
            words += "" if given is True else f" {given[0] if isinstance(given, list) else given}"
            raise UsageError(f"{words}: is for {where}")
