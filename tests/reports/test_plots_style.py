"""A method looks the same in every figure, two methods never alike; files are whole and repeat byte for byte."""

from __future__ import annotations

import matplotlib as mpl
import pytest

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UsageError
from fmtlbench.reports.figure_style import RC, in_order, legend_columns, new_figure, save, styled, styles, targets


def zoo():
    return [ALGORITHMS.resolve(name).title for name in ALGORITHMS]


def test_the_zoo_has_a_style_each():
    look = styles(zoo())
    assert len(set(look.values())) == len(zoo()) >= 15
    nine = styles(["Local", "FedAvg", "FedProx", "FedPer", "FedRep", "Ditto", "FedAMP", "MaT-FL", "FedHCA²"]).values()
    assert len({s.color for s in nine}) == len({s.marker for s in nine}) == 9


def test_styles_do_not_depend_on_company():
    names = [*zoo(), "FedProx (mu=0.1)", "FedProx-E", "Mine"]
    together = styles(names)
    assert all(styles([name])[name] == together[name] for name in names)
    assert styles(["fedhca2"])["fedhca2"] == styles(["FedHCA²"])["FedHCA²"]


def test_variants_keep_their_methods_colour():
    look = styles(["FedProx", "FedProx (mu=0.1)", "FedProx-E"])
    assert len({s.color for s in look.values()}) == 1 and len(set(look.values())) == 3


def test_many_unknown_names_stay_apart():
    names = [f"method {i}" for i in range(200)]
    assert len(set(styles(names).values())) == 200
    assert len(set(in_order(names[:40]).values())) == 40


def test_text_is_never_smaller_than_seven_points():
    assert (
        min(value for key, value in RC.items() if key.endswith(("labelsize", "titlesize", "fontsize", "font.size")))
        >= 7
    )


def test_our_settings_stay_with_us():
    before = mpl.rcParams["font.size"]

    @styled
    def size():
        return mpl.rcParams["font.size"]

    assert size() == RC["font.size"] and mpl.rcParams["font.size"] == before


def test_legend_columns_fit_the_width():
    assert legend_columns(["FedAvg"] * 9, 3) == 3
    assert legend_columns(["FedAvg"] * 2, 3) == 2
    assert legend_columns(["a name that is very long, with (option=1, other=2)"], 3) == 1


def test_pdfs_have_their_fonts_inside_without_what_only_sets_text(tmp_path):
    from fontTools.subset import Options

    before = list(Options().drop_tables)
    figure = new_figure(1.0)
    figure.add_subplot(xlabel="FedHCA² α").plot([0, 1])
    (file,) = save(figure, tmp_path / "a.pdf")
    assert b"/FontFile2" in file.read_bytes() and b"/Type3" not in file.read_bytes()
    assert Options().drop_tables == before  # others' fonts are as they were


@pytest.mark.parametrize("name, made", [("a.pdf", ["a.pdf"]), ("a", ["a.pdf", "a.png"]), ("a.SVG", ["a.SVG"])])
def test_endings(tmp_path, name, made):
    def figure():
        figure = new_figure(1.0)
        figure.add_subplot(xlabel="x").plot([0, 1])
        return figure

    drawn = figure()
    files = save(drawn, tmp_path / "new" / name)
    assert [file.name for file in files] == made and all(file.stat().st_size > 500 for file in files)
    first = [file.read_bytes() for file in files]
    for again in (drawn, figure()):
        assert [file.read_bytes() for file in save(again, tmp_path / "new" / name)] == first
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == made  # no temporary file stays


def test_a_strange_ending_is_refused():
    with pytest.raises(UsageError, match=r"\.pdf, \.png, \.svg, or none"):
        targets("figure.jpg")


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="no folder"):
        save(new_figure(1.0), tmp_path / "file" / "a.png")
