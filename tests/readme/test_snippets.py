"""Every block of README.md and docs/ is run by test_pages_run.py, or says why not. Nothing is run here."""

from __future__ import annotations

import pytest
from snippets import Block, misplaced_marks, pages_to_read, read_blocks, unused_files

PAGES = pages_to_read()


def read_one(text: str) -> Block:
    (block,) = read_blocks("page.md", text)
    return block


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_says_why_not(page):
    unclear = [block.place for block in read_blocks(page) if block.kind is None]
    assert unclear == [], (
        "neither a command, a snippet, a named file nor text; `<!-- not run: reason -->` says why one is left out"
    )
    assert misplaced_marks(page) == [], "a mark has a reason and stands directly before its fence"
    assert unused_files(read_blocks(page)) == [], "a file that is shown and used by no other block of its page"


def test_there_are_blocks_to_run():
    kinds = [block.kind for page in PAGES for block in read_blocks(page)]
    assert kinds.count("shell") >= 60 and kinds.count("python") >= 4 and kinds.count("file") >= 12
    assert kinds.count("marked") < len(kinds) / 4


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("```\nfmtlbench list\n```\n", "shell"),
        ("```\n# first\nOMP_NUM_THREADS=1 python a.py \\\n    --more\n```\n", "shell"),
        ("```bash\nmake test\n```\n", "shell"),
        ("```bash\nsudo reboot\n```\n", None),
        ("```\nfmtlbench list\nwhat it prints\n```\n", None),
        ("```\n```\n", None),
        ("```text\nwhat it prints\n```\n", "text"),
        ("```python\nimport fmtlbench\n```\n", "python"),
        ("```python\n# a.py\nimport fmtlbench\n```\n", "file"),
        ("Write `a/b.yml`:\n\n```yaml\nx: 1\n```\n", "file"),
        ("As in `b.yml` one writes\n\n```yaml\nx: 1\n```\n", None),
        ("```yaml\nx: 1\n```\n", None),
        ("<!-- not run: a part -->\n```yaml\nx: 1\n```\n", "marked"),
        ("<!-- not run: a part,\nand long -->\n```yaml\nx: 1\n```\n", "marked"),
        ("- in a list\n\n  <!-- not run: a part -->\n  ```yaml\n  x: 1\n  ```\n", "marked"),
        ("<!-- not run: -->\n```yaml\nx: 1\n```\n", None),
        ("<!-- not run -->\n```yaml\nx: 1\n```\n", None),
        ("<!-- not run: a part -->\n\n```yaml\nx: 1\n```\n", None),
        ("<!-- another remark -->\n```yaml\nx: 1\n```\n", None),
    ],
)
def test_kinds_of_blocks(text, kind):
    assert read_one(text).kind == kind


def test_what_a_block_says_of_itself():
    block = read_one("# Title\n\nWrite `a.py`:\n\n  ```python\n  if x:\n      y\n\n  z\n  ```\n")
    assert (block.place, block.before, block.file) == ("page.md:5", "Write `a.py`:", "a.py")
    assert block.text == "if x:\n    y\n\nz\n"
    marked = read_one("Words\n\n<!-- not run: needs\n     a GPU -->\n```\nfmtlbench list\n```\n")
    assert (marked.before, marked.reason) == ("Words", "needs a GPU")


def test_fences_within_longer_fences_are_text():
    assert read_one("````text\n```\nfmtlbench list\n```\n````\n").text == "```\nfmtlbench list\n```\n"
    with pytest.raises(ValueError, match=r"page\.md:3"):
        read_blocks("page.md", "a\n\n```\nfmtlbench list\n")


def test_marks_without_a_block_are_found():
    good = "<!-- not run: heavy -->\n```\nfmtlbench list\n```\n"
    assert misplaced_marks("p.md", good) == []
    assert misplaced_marks("p.md", good.replace("-->\n", "-->\n\n")) == ["p.md:1"]
    assert misplaced_marks("p.md", good.replace(": heavy", "")) == ["p.md:1"]
    assert misplaced_marks("p.md", f"{good}\n<!-- not run: heavy -->\nwords\n") == ["p.md:6"]
    assert misplaced_marks("p.md", f"```text\n{good.splitlines()[0]}\n```\n") == []


def test_files_that_nothing_uses_are_found():
    shown, used = "```python\n# a.py\nx = 1\n```\n", "```\nfmtlbench run --algo ./a.py\n```\n"
    assert unused_files(read_blocks("p.md", shown)) == ["p.md:1"]
    assert unused_files(read_blocks("p.md", shown + used)) == []
    assert unused_files(read_blocks("p.md", f"{shown}<!-- not run: heavy -->\n{used}")) == ["p.md:1"]
