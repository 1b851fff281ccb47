"""Nine methods, eighteen clients, long names: every word lies on the page and has seven points or more."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import pandas as pd
import pytest
from made_rounds import EIGHTEEN, NINE, write_rounds
from matplotlib.axis import Axis
from matplotlib.text import Text

from fmtlbench.reports.collect import collect
from fmtlbench.reports.figure_style import RC, WIDTH, move_apart
from fmtlbench.reports.plots import Options, make_figure

LONG = "a method with a long name (first=0.001, second=true)"


@pytest.fixture(scope="module")
def root(tmp_path_factory, nine):
    root = tmp_path_factory.mktemp("readable")
    (root / "nine").symlink_to(nine)
    for name in NINE:
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


@pytest.mark.parametrize(
    "kind, options",
    [
        ("rounds", {"task": "all"}),
        ("clients", {"task": "normals"}),
        ("sweep", {"option": "clients", "task": "all"}),
        ("sweep", {"option": "clients"}),
    ],
)
def test_every_word_of_panels_is_on_the_page_and_titles_touch_nothing(root, kind, options):
    figure = make_figure(
        kind, collect([root / "nine", *([root / "fewer"] * (kind != "rounds"))]), Options(**options), []
    )
    assert not list(outside(figure))
    texts = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)]
    assert not overlaps([text for text in texts if text.get_text()])


def overlaps(texts):
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts]
    return [(a, b) for i, (a, one) in enumerate(boxes) for b, other in boxes[i + 1 :] if one.overlaps(other)]


def test_labels_at_line_ends_do_not_overlap(root):
    figure = make_figure("rounds", collect([root / "nine", root / "long"]), Options(), [])
    with mpl.rc_context(RC):
        figure.draw_without_rendering()
    [axes] = figure.axes
    assert len(axes.texts) == 10 and not overlaps(axes.texts)
    right = axes.get_window_extent().x1
    assert all(Text.get_window_extent(text).x0 > right for text in axes.texts)  # beside the lines, not on them
    axes.texts[0].set_position(axes.texts[1].get_position())
    assert overlaps(axes.texts)


@pytest.mark.parametrize("wanted", [[0.5, 0.5, 0.5], [0.0, 0.0, 1.0], [0.9, 0.1, 0.95], [1.4, -2.0, 0.5]])
def test_labels_move_apart_as_little_as_needed(wanted):
    placed = move_apart(wanted, [0.2, 0.1, 0.1])
    order = sorted(range(3), key=lambda i: (wanted[i], i))
    size = [0.2, 0.1, 0.1]
    for a, b in pairwise(order):
        assert placed[b] - placed[a] >= (size[a] + size[b]) / 2 - 1e-9
    assert all(s / 2 - 1e-9 <= at <= 1 - s / 2 + 1e-9 for at, s in zip(placed, size))
    assert move_apart([0.2, 0.5, 0.8], [0.1] * 3) == pytest.approx([0.2, 0.5, 0.8])


@pytest.mark.parametrize("kind", ["rounds", "pareto", "hyperweights", "grouping"])
def test_no_axis_or_colour_bar_counts_from_an_offset(root, kind):
    figure = make_figure(kind, collect([root / "nine"]), Options(), [])
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_view_interval(1000.00001, 1000.00002, ignore=True)  # numbers that matplotlib would shorten
    with mpl.rc_context(RC):
        figure.draw_without_rendering()
    assert figure.axes and not [
        axis.get_offset_text().get_text()
        for a in figure.axes
        for axis in (a.xaxis, a.yaxis)
        if axis.get_offset_text().get_text()
    ]


def test_the_dot_of_a_method_that_is_always_last_is_whole():
    from fmtlbench.reports.plots.cd import cd_figure

    names = ["fedhca2", "local", "fedper", "fedavg"]
    (axes,) = cd_figure(pd.Series([1.0, 2.0, 3.0, 4.0], names), pd.DataFrame(1.0, names, names), 1.5).axes
    assert len(axes.collections) == 4 and not any(dot.get_clip_on() for dot in axes.collections)


def test_a_word_off_the_page_would_be_seen(root):
    figure = make_figure("pareto", collect([root / "nine"]), Options(), [])
    figure.axes[0].set_ylabel("far too long a label for a figure of this height, " * 3)
    assert list(outside(figure))
