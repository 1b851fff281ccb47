"""HTML made so that text is escaped unless it is known to be HTML already."""

from __future__ import annotations

import html
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ..formats._words import clean

VOID = {"link", "meta", "img", "input", "br"}
# Pages load their own files and nothing else; browsers disagree on whether 'self' covers file://, so it is named.
POLICY = (
    "default-src 'none'; style-src 'self' file:; script-src 'self' file:; img-src 'self' file:; "
    "base-uri 'none'; form-action 'none'"
)


class Html(str):
    """Text that needs no escaping any more."""

    __slots__ = ()


def escape(text: Any) -> Html:
    """Return one line of plain text, safe between tags and inside quoted attributes; a space at its ends stays."""
    return _escape(str(text))


@lru_cache(maxsize=10_000)  # pages of like runs say the same
def _escape(text: str) -> Html:
    before, after = (" " if edge.isspace() else "" for edge in (text[:1], text[-1:]))
    return Html(html.escape(f"{before}{clean(text)}{after}" if text.strip() else before, quote=True))


def verbatim(text: str) -> Html:
    """Return several lines as they are, without characters that HTML does not allow."""
    kept = "".join(c for c in text.replace("\r\n", "\n") if c.isprintable() or c in "\n\t")
    return Html(html.escape(kept, quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """Make an element. `class_` is class, `data_value` is data-value; None and False leave an attribute out."""
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{escape(value)}"')
    opening = f"<{' '.join(words)}>"
    return Html(opening if name in VOID else f"{opening}{join(children)}</{name}>")


def join(children: Iterable[Any], between: str = "") -> Html:
    """Join children in a row: text is escaped, None is nothing, lists are opened."""
    return Html(between.join(_child(child) for child in children if child is not None))


def _child(child: Any) -> str:
    if isinstance(child, Html):
        return child
    return join(child) if isinstance(child, (list, tuple)) else escape(child)


def document(title: str, main: Iterable[Any], crumbs: Iterable[tuple[str, str | None]] = (), up: str = "") -> Html:
    """Make a whole page. `crumbs`: (text, address), the last without one; `up`: the way to the site's root."""
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="stylesheet", href=f"{up}assets/style.css"),
        tag("script", src=f"{up}assets/app.js", defer=True),
    ]
    steps = [
        tag("li", tag("a", text, href=address) if address else tag("span", text, aria_current="page"))
        for text, address in crumbs
    ]
    body = [
        tag("a", "Skip to content", class_="skip", href="#content"),
        tag("header", tag("nav", tag("ol", steps), aria_label="Where this page is"), class_="top"),
        tag("main", join(main, "\n"), id="content", tabindex="-1"),
    ]
    page = tag("html", tag("head", join(head, "\n")), Html("\n"), tag("body", join(body, "\n")), lang="en")
    return Html(f"<!DOCTYPE html>\n{page}\n")
