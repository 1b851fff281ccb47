"""The fenced blocks of Markdown pages, in their order: what each is, and what is to be done with it.

A block that is not to be run says why, in a comment directly before its fence that no reader of the page sees:

    <!-- not run: needs a GPU -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rooms import ROOT

SHELL = ("", "bash", "sh")
PROGRAMS = ("fmtlbench", "make", "pip", "python", "ray", "git", "cd", "cat", "grep", "mkdir", "cp")
FILE = r"[\w./-]+\.(?:py|ya?ml|toml|txt|csv|json)"
FENCE = re.compile(r"^( *)(```+|~~~+) *([^\s`]*)[^`]*$")
MARK = re.compile(r"<!-- *not run\b:?(.*?)-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """What stands between two fences of a page."""

    page: str
    line: int  # of the opening fence
    language: str
    text: str  # without the indentation of its fence
    before: str  # the last line of words before it
    reason: str | None  # why it is not run; None without a mark

    @property
    def place(self) -> str:
        """Where it stands, as editors take it."""
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that the block shows: by its first line, or else by the words before it, `name.py`:"""
        if self.language in ("", "text", "bash", "sh"):
            return None
        first = re.match(rf"# ({FILE})\n", self.text)
        before = re.search(rf"`({FILE})`[^`]*:$", self.before)
        found = first or before
        return found[1] if found else None

    @property
    def kind(self) -> str | None:
        """One of marked, text, file, python and shell; None if nobody can say what to do with it."""
        if self.reason:
            return "marked"
        if self.language == "text":
            return "text"
        if self.file:
            return "file"
        if self.language == "python":
            return "python"
        if self.language in SHELL and all(map(_is_command, _commands(self.text))):
            return "shell"
        return None


def read_blocks(page: str, text: str | None = None) -> list[Block]:
    """Return the blocks of a page of the repository, or of the text that is given in its place."""
    lines = ((ROOT / page).read_text(encoding="utf-8") if text is None else text).splitlines()
    blocks, inside, opened = [], None, 0
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if inside is None and fence:
            inside, opened = fence, number
        elif inside is not None and line.strip().startswith(inside[2]) and not line.strip().strip(inside[2][0]):
            indent = len(inside[1])
            body = "".join(
                f"{row[indent:] if not row[:indent].strip() else row}\n" for row in lines[opened + 1 : number]
            )
            reason, before = _look_back(lines[:opened])
            blocks.append(Block(page, opened + 1, inside[3], body, before, reason))
            inside = None
    if inside is not None:
        raise ValueError(f"{page}:{opened + 1}: a fence that nothing closes")
    return blocks


def read_file(page: str, name: str) -> str:
    """Return the file that a page shows under this name."""
    (text,) = [block.text for block in read_blocks(page) if block.file == name]
    return text


def write_files(page: str, folder: Path) -> None:
    """Write every file that a page shows, as it is first shown."""
    for block in reversed(read_blocks(page)):
        if block.kind == "file":
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")


def misplaced_marks(page: str, text: str | None = None) -> list[str]:
    """Return the places of marks that no block takes for its own: a line too high, or without a reason."""
    source = (ROOT / page).read_text(encoding="utf-8") if text is None else text
    blocks = read_blocks(page, source)
    lines = source.splitlines()
    for block in blocks:  # what a block shows is no mark
        end = block.line + block.text.count("\n")
        lines[block.line : end] = [""] * (end - block.line)
    found = [(mark, "\n".join(lines)[: mark.start()].count("\n") + 1) for mark in MARK.finditer("\n".join(lines))]
    ends = {block.line - 1 for block in blocks if block.reason}
    return [f"{page}:{line}" for mark, line in found if line + mark[0].count("\n") not in ends]


def pages_to_read() -> list[str]:
    """Return the pages with commands and snippets, README first, then by their names."""
    docs = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    first = ("README.md", "CONTRIBUTING.md", "examples/README.md")
    return [*first, *(page for page in docs if not page.startswith("docs/_generated/"))]


def unused_files(blocks: list[Block]) -> list[str]:
    """Return the places of files that no other block of the page speaks of: showing is not running."""
    shown = {block.file: block for block in blocks if block.kind == "file"}
    others = lambda block: (b.text for b in blocks if b is not block and b.kind in ("file", "python", "shell"))
    return [
        block.place
        for name, block in shown.items()
        if not any(re.search(rf"\b{re.escape(Path(name).stem)}\b", text) for text in others(block))
    ]


def _look_back(lines: list[str]) -> tuple[str | None, str]:
    """Return the reason of a mark that ends in the last line, and the last line of words before it."""
    above = "\n".join(lines)
    reason = None
    if above.endswith("-->"):
        start = above.rfind("<!--")
        if mark := MARK.fullmatch(above[start:]):
            reason = " ".join(mark[1].split())
            above = above[:start]
    words = [line.strip() for line in above.splitlines() if line.strip()]
    return reason, words[-1] if words else ""


def _commands(text: str) -> Iterator[str]:
    """Give the lines that begin a command: no comments, no second halves."""
    goes_on = False
    for line in text.splitlines():
        if line.strip() and not line.startswith("#") and not goes_on:
            yield line
        goes_on = line.endswith("\\")
    if not text.strip():
        yield ""  # an empty block is no command


def _is_command(line: str) -> bool:
    words = [word for word in line.split() if not re.match(r"[A-Z_]+=", word)]  # OMP_NUM_THREADS=1 python …
    return bool(words) and words[0] in PROGRAMS
