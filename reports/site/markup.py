"""Filling the templates of pages. Whatever they show is cleaned and escaped, unless it is HTML already."""

from __future__ import annotations

import html
from functools import cache, lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...base.words import say_count
from ..formats._words import clean


def fill(template: str, **values: Any) -> Markup:
    """Return what a template says of these values."""
    return Markup(load_templates().get_template(template).render(values))


@cache
def load_templates() -> Environment:
    """Return the templates; a name that they use and nobody gave is an error."""
    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        finalize=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["one_line"] = lambda text: Markup(" ".join(text.split()))
    templates.globals["say_count"] = say_count
    return templates


def escape(text: Any) -> Markup:
    """Return one line of plain text, safe between tags and inside quoted attributes; a space at its ends stays."""
    return text if isinstance(text, Markup) else _escape(str(text))


@lru_cache(maxsize=10_000)  # pages of like runs say the same
def _escape(text: str) -> Markup:
    before, after = (" " if edge.isspace() else "" for edge in (text[:1], text[-1:]))
    return Markup(html.escape(f"{before}{clean(text)}{after}" if text.strip() else before, quote=True))


def verbatim(text: str) -> Markup:
    """Return several lines as they are, without characters that HTML does not allow."""
    kept = "".join(c for c in text.replace("\r\n", "\n") if c.isprintable() or c in "\n\t")
    return Markup(html.escape(kept, quote=True))
