"""What a notebook shows: a bar while a run goes on, tables of its result and of leaderboards."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import ModuleType, SimpleNamespace

import pytest

import fmtlbench


class Page:
    """What stands below a cell."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, picture, display_id):
        assert display_id is True
        self.shown.append(picture)
        return SimpleNamespace(update=self.shown.append)


@pytest.fixture
def page(monkeypatch):
    """A notebook's kernel, as far as we ask for one."""
    import timm.data  # noqa: F401  # what it imports looks for a notebook too, and at more of it

    made = Page()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    display.HTML, display.display = str, made.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return made


def test_a_run_in_a_notebook_draws_a_bar_that_ends_full(page, tiny_run):
    tiny_run("local", rounds=2)
    assert 'value="2" max="2"' in page.shown[-1]
    assert "round 2 of 2" in page.shown[-1]
    assert "depth" in page.shown[-1], "the scores of the last round"


def test_notes_are_shown_as_they_are_written(page):
    from fmtlbench.listeners.notebook import Notebook

    told = Notebook()
    told.note("<b>runs/a&b</b>")
    told._show("round 1", 1, 2, now=True)
    assert "&lt;b&gt;runs/a&amp;b&lt;/b&gt;" in page.shown[-1] and "<b>" not in page.shown[-1]


def test_nothing_is_drawn_elsewhere_or_where_somebody_else_listens(page, tiny_run, monkeypatch):
    from fmtlbench.listeners import Listener

    tiny_run("local", rounds=1, progress=Listener())
    sys.modules["IPython"].get_ipython = lambda: SimpleNamespace()  # IPython in a terminal
    tiny_run("fedavg", rounds=1)
    monkeypatch.delitem(sys.modules, "IPython")
    tiny_run("fedavg", rounds=1, seed=1)
    assert page.shown == []


class Cells(HTMLParser):
    """The text of every cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def test_a_result_shows_its_scores(shared_run):
    result = shared_run("local", rounds=1)
    cells = Cells(result._repr_html_()).found
    assert str(result.folder) in cells
    assert all(cell in cells for row in result.rows() for cell in row)
    assert repr(result).count("\n") == 1 + len(result.scores)


def test_what_is_shown_is_escaped(shared_run):
    from dataclasses import replace

    result = shared_run("local", rounds=1)
    result = replace(result, summary={**result.summary, "title": "<script>alert(1)</script>"})
    assert "<script>" not in result._repr_html_()


def test_leaderboards_show_themselves(tiny_run, tmp_path):
    for algo in ("local", "fedavg"):
        tiny_run(algo, rounds=1)
    tables = fmtlbench.leaderboard(tmp_path / "runs")
    assert "FedAvg" in repr(tables)
    assert "FedAvg" in Cells(tables._repr_html_()).found
    assert "FedAvg" in str(tables[0])


def test_a_leaderboard_of_nothing_is_refused(tmp_path):
    with pytest.raises(fmtlbench.UsageError, match="nowhere"):
        fmtlbench.leaderboard(tmp_path / "nowhere")


def test_dir_names_what_is_imported_later_without_importing_it():
    assert {"run", "leaderboard", "RunResult", "UsageError"} <= set(dir(fmtlbench))
