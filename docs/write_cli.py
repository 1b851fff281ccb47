"""Write the reference of the command line from its parser: a section per verb. The site calls it for docs/cli.md.

Run: python docs/write_cli.py     prints it
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

from fmtlbench.cli import build_parser

WIDTH = 100  # of usage lines


def write() -> str:
    """Return Markdown with a section for every verb, and below it for every verb of that one."""
    parser = build_parser()
    found = _verbs(parser)
    names = " · ".join(f"[{name}](#fmtlbench-{name})" for name in found)
    sections = (
        line for name, verb in found.items() for line in _section(verb, f"fmtlbench {name}", "##", _short(parser, name))
    )
    return "\n".join([names, "", *sections])


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _short(parser: argparse.ArgumentParser, name: str) -> str:
    """Return the line that the list of verbs has for a verb."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                if choice.dest == name:
                    return choice.help or ""
    return ""


def _section(parser: argparse.ArgumentParser, title: str, level: str, short: str) -> Iterator[str]:
    yield f"{level} {title}\n"
    yield f"{as_text(parser.description or _as_sentence(short))}\n"
    yield f"```text\n{_usage(parser)}\n```\n"
    rows = [row for row in map(_describe, parser._actions) if row]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| {names} | {meaning} |" for names, meaning in rows)
        yield ""
    yield from _epilog(parser.epilog or "")
    for name, verb in _verbs(parser).items():
        yield from _section(verb, f"{title} {name}", f"{level}#", _short(parser, name))


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the usage lines, whatever the width of the terminal."""
    formatter = argparse.HelpFormatter(parser.prog, width=WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    return formatter.format_help().strip()


def _describe(action: argparse.Action) -> tuple[str, str] | None:
    """Return a flag or argument with its value's name, and what it means; None for what needs no words."""
    if isinstance(action, argparse._HelpAction | argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
        return None
    formatter = argparse.HelpFormatter("fmtlbench")
    if action.option_strings:
        value = "" if action.nargs == 0 else f" {formatter._format_args(action, action.dest.upper())}"
        names = ", ".join(f"`{name}{value}`" for name in action.option_strings)
    else:
        names = f"`{formatter._format_args(action, action.metavar or action.dest)}`"
    meaning = formatter._expand_help(action) if action.help else ""
    return in_cell(names), in_cell(as_text(meaning))


def _epilog(text: str) -> Iterator[str]:
    """Give the words below the flags: paragraphs as text, whatever is indented as a block."""
    for part in filter(None, re.split(r"\n\s*\n", text.strip("\n"))):
        prose, block = [], []
        for line in part.splitlines():
            (block if line.startswith(" ") or (block and not prose) else prose).append(line)
        if prose and block and not part.splitlines()[-1].startswith(" "):  # a block between two texts stays as it is
            yield f"```text\n{part}\n```\n"
            continue
        if prose:
            yield f"{as_text(chr(10).join(prose))}\n"
        if block:
            language = "bash" if prose and prose[-1].startswith("examples") else "text"
            yield f"```{language}\n{_dedent(block)}\n```\n"


def _dedent(lines: list[str]) -> str:
    least = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[least:] for line in lines)


def _as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def as_text(text: str) -> str:
    """Return words of the parser as Markdown that shows them as they are; what is in backticks stays code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]|$~#])", r"\\\1", part) for part in parts)


def in_cell(text: str) -> str:
    """Return Markdown for a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


if __name__ == "__main__":
    sys.stdout.write(write() + "\n")
