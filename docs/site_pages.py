"""Turn the pages of docs/, which are written for a code host, into pages of the site.

Three things are done to every page as it is read; the files stay as they are.

- A link that leaves docs/ goes to a copy of that page if the site has one (`COPIED`); a link to any other file of the
  repository becomes its path, since the site has no source files.
- `<!-- site: NAME -->` gives way to a text that is made anew for every build (`MADE`).
- Pages that another page lists come below it in the navigation, a part for each of its headings (`LISTS`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import write_api
import write_cli

DOCS = Path(__file__).parent.resolve()
ROOT = DOCS.parent
COPIES = DOCS / "_generated"
COPIED = (  # pages outside docs/ that the site has too
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "examples/README.md",
    "results/README.md",
)
LEADERBOARD = "leaderboard/site"  # pages of fmtlbench itself, which conf.py adds to the site
MADE: dict[str, Callable[[], str]] = {
    "api": write_api.write,
    "cli": write_cli.write,
    "leaderboard": lambda: (
        f'<a href="{Path(LEADERBOARD).name}/index.html">Figures, curves and a page for every run</a>'
    ),
}
LISTS = ("index", "methods/README", "leaderboard/README")

FENCED = re.compile(r"^( *)(```+)[^\n]*\n.*?^\1\2`*[ ]*$", re.M | re.S)
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s]+)\)")


def write_copies() -> None:
    """Write the pages outside docs/ where Sphinx finds them, word for word; `prepare` mends their links."""
    for name in COPIED:
        copy = COPIES / name
        text = (ROOT / name).read_text(encoding="utf-8")
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")


def prepare(docname: str, text: str) -> str:
    """Return what Sphinx reads in the place of a page."""
    place = DOCS / f"{docname}.md"
    original = ROOT / place.relative_to(COPIES) if place.is_relative_to(COPIES) else place
    text = outside_blocks(text, lambda part: LINK.sub(lambda link: mend(link, original, place), part))
    text = re.sub(r"^<!-- site: (\w+) -->$", lambda found: MADE[found[1]](), text, flags=re.M)
    return text + "".join(toctrees(text)) if docname in LISTS else text


def outside_blocks(text: str, change: Callable[[str], str]) -> str:
    """Change a page's text and leave its code blocks alone."""
    parts, end = [], 0
    for block in FENCED.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def mend(link: re.Match, original: Path, place: Path) -> str:
    """Return a link of a page as the site has it."""
    target, mark, anchor = link["target"].partition("#")
    if not target or ":" in target:
        return link[0]
    file = Path(os.path.normpath(original.parent / target))
    if file.is_relative_to(ROOT) and (name := file.relative_to(ROOT).as_posix()) in COPIED:
        file = COPIES / name
    elif not file.is_relative_to(DOCS):
        name = os.path.relpath(file, ROOT)
        return f"`{name}`" if link["text"].strip("`") == name else f"{link['text']} (`{name}`)"
    return f"{link['picture']}[{link['text']}]({Path(os.path.relpath(file, place.parent)).as_posix()}{mark}{anchor})"


def toctrees(text: str) -> Iterator[str]:
    """Give a hidden list of pages for each heading below which a page links to others, in lists or tables."""
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        found = re.findall(r"^(?:- |\| )\[[^\]]*\]\(([^):#]+)\.md\)", body, re.M)
        if found:
            pages = "\n".join(dict.fromkeys(found))
            yield f"\n\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"
