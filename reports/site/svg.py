"""A matplotlib figure as an inline drawing that takes the page's colours, so that it follows dark mode.

The pages' policy allows no style attributes, so styles become attributes of their own. Colours become variables of
style.css: text and axes the colour of the page's text, methods and shades one variable each.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import matplotlib as mpl

from ..figure_style import COLOURS, RC, draw_once
from ..plots.pvalues import SHADES
from .markup import Markup, escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMESPACE = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
LEFT_OUT = ("font-family",)  # the page's own
NAMED = {
    "#000000": "currentColor",
    "#ffffff": "var(--raised)",
    **{colour.lower(): f"var(--method-{place})" for place, colour in enumerate(COLOURS) if place},
    **{colour.lower(): f"var(--shade-{place})" for place, colour in enumerate(SHADES)},
}


def inline_svg(figure: Figure, name: str, alt: str) -> Markup:
    """Return the figure as an element of a page; `name` keeps its ids apart from those of other figures."""
    file = io.StringIO()
    draw_once(figure)
    with mpl.rc_context(RC):
        figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in ("metadata", "style") or (_tag(child) in ("g", "defs") and not len(child)):
                parent.remove(child)
    drawn = "".join(_text(child, name) for child in root)
    box, title = escape(root.get("viewBox")), escape(alt)
    return Markup(f'<svg class="plot" viewBox="{box}" role="img"><title>{title}</title>{drawn}</svg>')


def _tag(element: ElementTree.Element) -> str:
    return element.tag.removeprefix(NAMESPACE)


def _text(element: ElementTree.Element, name: str) -> str:
    attributes = dict(_attributes(element, name))
    inner = escape(element.text) if element.text and element.text.strip() else ""
    inner += "".join(_text(child, name) for child in element)
    words = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{_tag(element)}{words}>{inner}</{_tag(element)}>"


def _attributes(element: ElementTree.Element, name: str) -> Iterator[tuple[str, str]]:
    for key, value in element.attrib.items():
        if key == "style":
            for part in value.split(";"):
                word, _, given = (text.strip() for text in part.partition(":"))
                if word not in LEFT_OUT:
                    yield word, _colour(given)
        elif key == "id":
            if _tag(element) != "g":  # groups are never referred to
                yield key, f"{name}-{value}"
        elif key == LINK:
            yield "href", value.replace("#", f"#{name}-")
        elif key == "clip-path":
            yield key, value.replace("#", f"#{name}-")
        elif key == "transform" and re.match(r"rotate\(-?0 ", value):
            continue
        else:
            yield key, value


def _colour(value: str) -> str:
    """Return the page's name of a colour; greys are lines or quiet text, other colours stay."""
    if not re.fullmatch("#[0-9a-f]{6}", value):
        return value
    grey = value[1:3] == value[3:5] == value[5:]
    other = ("var(--quiet)" if value < "#aaaaaa" else "var(--line)") if grey else value
    return NAMED.get(value, other)
