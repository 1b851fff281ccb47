"""What the writers of pages share: templates (docs/templates/*.md.j2), tables, and lines of a width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

WIDTH = 120


def fill(template: str, **values: Any) -> str:
    """Return the page that a template makes of these values, with one empty line between its parts."""
    text = load_templates().get_template(template).render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


@cache
def load_templates() -> Environment:
    """Return the templates; a name that they use and nobody gave is an error. Markdown has nothing to escape."""
    folder = Path(__file__).parent / "templates"
    templates = Environment(
        loader=FileSystemLoader(folder), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["paragraph"] = lambda text: " ".join(text.split()) + "\n"
    templates.globals["table"] = write_table
    return templates


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """Return a Markdown table; `align` has l or r for each column."""
    dashes = [{"l": "---", "r": "---:"}[side] for side in align or "l" * len(heads)]
    lines = [heads, dashes, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put_table(page: Path, begin: str, end: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a page with a new table between two lines of it."""
    text = page.read_text(encoding="utf-8")
    return f"{text.partition(begin)[0]}{begin}\n{write_table(heads, rows)}\n{end}{text.partition(end)[2]}"


def wrap_lines(page: str) -> str:
    """Break long lines of sentences and lists; tables, headings, HTML and blocks of math stay as they are."""
    parts = re.split(r"(^\$\$$.*?^\$\$$)", page, flags=re.M | re.S)
    return "".join(p if p.startswith("$$") else "\n".join(map(_wrap_line, p.split("\n"))) for p in parts)


def _wrap_line(line: str) -> str:
    """Break a line where it is too long, neither in code nor in math."""
    if line.startswith(("|", "<", "#")):
        return line
    whole = re.sub(r"`[^`]*`|\$[^$]*\$", lambda span: span[0].replace(" ", "\0"), line)
    indent = "  " * line.startswith("- ")
    lines = wrap(whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")
