"""Nine methods, eighteen clients, long names: every word lies on the page and has seven points or more."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from made_rounds import EIGHTEEN, NINE, write_rounds
from matplotlib.axis import Axis
from matplotlib.text import Text

from fmtlbench.reports.collect import collect
from fmtlbench.reports.plots import Options, make_figure
from fmtlbench.reports.plots.style import RC, WIDTH

LONG = "a method with a long name (first=0.001, second=true)"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("readable")
    for name in NINE:
        write_rounds(root / "nine", name, clients=EIGHTEEN, rounds=4)
        if name != "fedamp":
            write_rounds(root / "fewer", name, clients=dict(list(EIGHTEEN.items())[::2]), rounds=4, setting="b" * 64)
    write_rounds(root / "long", "mine", clients=EIGHTEEN, rounds=4, title=LONG)
    return root


def outside(figure):
    """Words that leave the page, or are too small to read."""
    with mpl.rc_context(RC):
        figure.draw_without_rendering()
    page = figure.bbox
    unseen = {
        text
        for axis in figure.findobj(Axis)
        for place, text in zip(axis.get_majorticklocs(), axis.get_majorticklabels())
        if not min(axis.get_view_interval()) <= place <= max(axis.get_view_interval())
    }
    for text in set(figure.findobj(Text)) - unseen:
        if text.get_text().strip() and text.get_visible():
            box = text.get_window_extent()
            if box.x0 < -1 or box.y0 < -1 or box.x1 > page.x1 + 1 or box.y1 > page.y1 + 1 or text.get_fontsize() < 7:
                yield text.get_text(), box.bounds


@pytest.mark.parametrize(
    "kind, folders",
    [
        ("rounds", ["nine"]), ("rounds", ["nine", "long"]), ("pareto", ["nine", "long"]), ("cd", ["nine", "long"]),
        ("pvalues", ["nine", "long"]), ("clients", ["nine", "fewer"]), ("hyperweights", ["nine"]),
        ("grouping", ["nine"]), ("updates", ["nine/duo/fedavg"]),
    ],
)  # fmt: skip
def test_every_word_is_on_the_page(root, kind, folders):
    figure = make_figure(kind, collect([root / folder for folder in folders]), Options(), [])
    assert not list(outside(figure))
    assert figure.get_figwidth() == pytest.approx(WIDTH) or "long" in folders


def test_a_word_off_the_page_would_be_seen(root):
    figure = make_figure("pareto", collect([root / "nine"]), Options(), [])
    figure.axes[0].set_ylabel("far too long a label for a figure of this height, " * 3)
    assert list(outside(figure))
