"""The commands and snippets of README.md and docs/, as they are written and in their order, on runs of seconds.

Every page has a folder of its own. What it takes for granted, finished runs and files that readers bring, is there
before its first block; names that stand for somebody's own (`1a2b3c4d`, `NAME`) give way to some of that folder.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from archives import write_nyudv2, write_pascal
from conftest import Place
from robots import write_robots
from snippets import Block, pages_to_read, read_blocks, read_file, write_files

pytestmark = pytest.mark.readme

FROM_NOTHING = ("README.md", "docs/commands.md", "docs/tutorial.md")  # pages that make the runs they speak of
CARDS = "docs/methods/"
PAGES = [page for page in pages_to_read() if not page.startswith(CARDS)]
WRITTEN = {  # page → some of what its commands leave
    "README.md": ("tables.tex", "figures", "reproduced/fedhca2_table5_mt_mt.tex"),
    "docs/commands.md": ("tables.tex", "site/index.html", "figures", "curves.pdf", "rooms.png"),
    "docs/tutorial.md": ("table.tex", "table.csv", "scores.csv", "curves.pdf", "ours.zip"),
}
RUNS = {"README.md": 9, "docs/commands.md": 24}  # page → at least so many finished runs
OWN_RUN = re.compile(r"(runs/\w+/\w+/\w+-\w+-s\d+)-1a2b3c4d")


def write_predictions(folder: Path) -> None:
    """Write a folder of predictions that are their own labels."""
    import numpy as np
    from PIL import Image

    folder.mkdir(exist_ok=True)
    edges = np.zeros((16, 16), np.uint8)
    edges[8] = 255
    Image.fromarray(edges).save(folder / "0001.png")


def write_archives(folder: Path) -> None:
    """Write miniatures of the archives that cannot be shipped."""
    write_nyudv2(folder)
    write_pascal(folder)


BROUGHT = {  # page → what its readers have of their own
    "docs/commands.md": lambda folder: (write_archives(folder / "DIR"), write_predictions(folder / "DIR")),
    "docs/add-your-own.md": lambda folder: write_robots(folder, train=8, test=3),
    "docs/data.md": lambda folder: write_archives(folder / "DIR"),
    "docs/probes.md": lambda folder: (folder / "my_method.py").write_text(
        read_file("docs/add-your-own.md", "half_way.py")
    ),
    "docs/reproduce.md": lambda folder: write_archives(folder / "DATA"),
}


def own_names(text: str, folder: Path) -> str:
    """Return the text with names of this folder's runs in the place of made-up ones."""
    one = lambda pattern: sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))[0]
    text = OWN_RUN.sub(lambda found: one(f"{found[1]}-*"), text)
    for name, algo in (("1a2b3c4d", "fedhca2"), ("5e6f7a8b", "fedavg")):
        if name in text:
            text = text.replace(name, one(f"runs/st_mt_1/{algo}/nano-synth-s0-*").rpartition("-")[2])
    return re.sub(r"\bNAME\b", "fedhca2_table1_st_mt_1", re.sub(r"\bRUN\b", lambda _: one("runs/*/fedhca2/*"), text))


def do_block(block: Block, place: Place) -> None:
    """Write the file that a block shows, or run it."""
    if block.kind == "file":
        file = place.folder / block.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
    elif block.kind in ("shell", "python"):
        text = own_names(block.text, place.folder)
        if block.kind == "python":
            script = place.folder / f"snippet_{block.line}.py"
            script.write_text(text, encoding="utf-8")
            text = f"python {script.name}"
        try:
            place.shell(text)
        except AssertionError as error:
            raise AssertionError(f"{block.place}: {error}") from None


def do_page(page: str, place: Place) -> None:
    """Do what the page says, from its top to its end; files are there from the start, as they are first shown."""
    write_files(page, place.folder)
    for block in read_blocks(page):
        do_block(block, place)


def test_the_copy_is_what_runs(place):
    code = "import fmtlbench, fmtlbench.reports; print(fmtlbench.__file__, fmtlbench.reports.__file__)"
    (place.folder / "where.py").write_text(code)
    for program in ("python where.py", f"python -c '{code}'", f"'{sys.executable}' where.py"):
        files = place.shell(program).split()
        assert len(files) == 2 and all("/copy/fmtlbench/" in file for file in files), files


def test_what_fails_is_told_with_its_place(place):
    (block,) = read_blocks("page.md", "\n```\nfmtlbench list\nfmtlbench run --algo nobody --scenario st_mt_1\n```\n")
    with pytest.raises(AssertionError, match=r"(?s)page\.md:2: .*nobody"):
        do_block(block, place)
    (block,) = read_blocks("page.md", "```python\nimport fmtlbench\n\nfmtlbench.nothing\n```\n")
    with pytest.raises(AssertionError, match=r"(?s)page\.md:1: .*nothing"):
        do_block(block, place)


def count_commands(page: str) -> int:
    """Return about how long a page takes."""
    return sum(block.text.count("fmtlbench ") for block in read_blocks(page) if block.kind == "shell")


# The longest first: a process that is left with one at the end would keep the others waiting.
@pytest.mark.parametrize("page", sorted(filter(read_blocks, PAGES), key=count_commands, reverse=True))
def test_a_page_runs_as_written(page, place, request):
    if page not in FROM_NOTHING:
        shutil.copytree(request.getfixturevalue("finished_runs"), place.folder / "runs")
    if page in BROUGHT:
        BROUGHT[page](place.folder)
    do_page(page, place)
    written = WRITTEN.get(page, ())
    assert [name for name in written if not (place.folder / name).exists()] == []
    assert len(list(place.folder.glob("runs/*/*/*/summary.json"))) >= RUNS.get(page, 0)


@pytest.mark.parametrize("page", [page for page in pages_to_read() if page.startswith(CARDS) and read_blocks(page)])
def test_a_method_card_runs_as_written(page, place):
    do_page(page, place)
    assert list(place.folder.glob("runs/*/*/*/summary.json"))
