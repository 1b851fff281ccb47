"""The same table in every format; golden files in tests/golden/reports (FMTLBENCH_GOLDEN=write renews them)."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import write_absence, write_run

from fmtlbench.cli import main
from fmtlbench.reports import formats
from fmtlbench.reports.collect import collect
from fmtlbench.reports.formats import find_formats, latex, md, render
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.table import Cell, Column, Row, Table

GOLDEN = Path(__file__).parents[1] / "golden" / "reports"
NASTY = "50%_off & <script>alert('x')</script> #1 $5 {a} ^~\\ | `b` *c* [d] \"q\" FedHCA² αΔ 中 é\n\x1b[31m"


@pytest.fixture
def tables(tmp_path):
    """Two settings; ties, a missing score, a missing seed, a refusal, a failure, and a title full of traps."""

    def write(algorithm, seed, a, b, c, **given):
        values = {("pascal-semseg", "semseg"): a, ("nyud-multi", "semseg"): b, ("nyud-multi", "depth"): c}
        write_run(tmp_path, algorithm=algorithm, seed=seed, values=values, **given)

    write("local", 0, 50.0, 40.0, 0.5)
    write("local", 1, 52.0, 42.0, 0.4)
    write("fedavg", 0, 55.0, 36.0, 0.45)
    write("fedavg", 1, 52.0, 46.2, 0.42)
    write("fedhca2", 0, 55.001, 41.0, None, options={"c": 0.2})
    write("trap", 0, 10.0, 20.0, 1.25, title=NASTY)
    write("local", 0, 33.0, 44.0, 0.55, rounds=80, setting="b" * 64)
    write_absence(tmp_path, algorithm="fedprox", reason="fedprox on duo: models do not fit (the papers' NULL)")
    write_absence(tmp_path, "failed", "out of memory", algorithm="ditto", seed=1)
    return leaderboards(collect([tmp_path]))


@pytest.mark.parametrize(("style", "file"), [("csv", "table.csv"), ("md", "table.md"), ("latex", "table.tex")])
def test_golden(tables, style, file):
    text = render(tables, style)
    if os.environ.get("FMTLBENCH_GOLDEN") == "write":
        (GOLDEN / file).write_text(text, encoding="utf-8")
    golden = (GOLDEN / file).read_text(encoding="utf-8")
    if style != "csv":
        assert text == golden
        return
    for line, wanted in itertools.zip_longest(*(csv.reader(io.StringIO(t)) for t in (text, golden)), fillvalue=[]):
        for cell, expected in itertools.zip_longest(line, wanted):  # unrounded, so the last bits may differ elsewhere
            assert cell == expected or float(cell) == pytest.approx(float(expected), rel=1e-9)


def test_csv_has_one_header_and_unrounded_numbers(tables):
    records = list(csv.DictReader(io.StringIO(render(tables, "csv"))))
    assert len(records) == 7
    assert len({record["table"] for record in records}) == 2
    fedavg = next(r for r in records if r["method"] == "FedAvg")
    assert float(fedavg["pascal/semseg/mIoU"]) == 53.5
    assert float(fedavg["pascal/semseg/mIoU_std"]) == 3 / 2**0.5
    assert float(fedavg["delta_m_low"]) < float(fedavg["delta_m_high"])
    lost = next(r for r in records if r["method"].startswith("FedHCA²"))
    assert lost["nyud/depth/RMSE"] == lost["delta_m"] == ""


def test_marks_spread_and_missing_in_every_format(tables):
    md, tex, text = (render(tables, style) for style in ("md", "latex", "table"))
    assert "**55.00**" in md and r"\textbf{55.00}" in tex and "55.00*" in text
    assert "<u>53.50</u> ± 2.12" in md and r"\underline{53.50} $\pm$ 2.12" in tex and "53.50' ± 2.12" in text
    assert "–<sup>c</sup>" in md and r"--\textsuperscript{c}" in tex and "– [c]" in text
    assert "FedProx<sup>a</sup> | NULL" in md and r"FedProx\textsuperscript{a} & NULL" in tex and "FedProx [a]" in text
    assert all("a seed counts once" in made for made in (md, tex, text))
    assert "SemSeg mIoU ↑" in md and r"mIoU $\uparrow$" in tex and "mIoU ↑" in text


def test_nothing_from_a_title_gets_through_unescaped(tables):
    md, tex, text = (render(tables, style) for style in ("md", "latex", "table"))
    assert "<script" not in md and "&lt;script&gt;" in md
    line = next(line for line in md.splitlines() if "off" in line and line.startswith("|"))
    assert len(re.findall(r"(?<!\\)\|", line)) == len(tables[0].columns) + 2
    assert "\x1b" not in text and "\x1b" not in tex and "\x1b" not in md
    body = "\n".join(line for line in tex.splitlines() if "off" in line)
    assert r"50\%\_off \& \textless{}script\textgreater{}" in body
    assert r"\#1 \$5 \{a\} \textasciicircum{}\textasciitilde{}\textbackslash{}" in body
    assert r"\textsuperscript{2} $\alpha$$\Delta$ {[}U+4E2D{]} é" in body


def test_latex_text_is_made_of_known_characters(tables):
    tex = render(tables, "latex", standalone=True)
    strange = {c for c in tex if ord(c) > 126 and not "\u00c0" <= c <= "\u017f"}
    assert not strange
    assert tex.count("{") - tex.count(r"\{") == tex.count("}") - tex.count(r"\}")
    for name in ("document", "table", "tabular"):
        assert tex.count(rf"\begin{{{name}}}") == tex.count(rf"\end{{{name}}}") >= 1
    for table in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", tex, re.DOTALL):
        for line in table[1].splitlines():
            if line.endswith(r"\\"):
                spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
                assert len(re.findall(r"(?<!\\)&", line)) + sum(spans) + 1 == len(table[0])


def test_greek_and_symbols():
    assert latex.escape("λ ς ο Ω Σ") == r"$\lambda$ $\sigma$ $o$ $\Omega$ $\Sigma$"
    assert latex.escape("a ≠ b ± −1") == r"a $\neq$ b $\pm$ $-$1"
    assert md.escape("a_b|c<d>") == r"a\_b\|c&lt;d&gt;"


@pytest.mark.parametrize("standalone", [True, False])
def test_pdflatex_takes_it(tables, tmp_path, standalone):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    text = render(tables, "latex", standalone=standalone)
    if not standalone:
        head = "\\documentclass{article}\n" + "\n".join(latex.PACKAGES)
        text = head + "\n\\begin{document}\n" + text + "\\end{document}\n"
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-3000:]
    assert (tmp_path / "t.pdf").exists()


def test_a_narrow_terminal_gets_pieces_that_fit(tables):
    text = render(tables, "table", width=60)
    assert text.count("Method") > len(tables)
    first = next(line for line in text.splitlines() if line.startswith("Method"))
    assert first.split()[1:3] == ["Δm", "%"]  # not behind the cut
    short = Table("t", "T", "c", ("M",), tuple(Column(str(i), f"column {i}") for i in range(8)),
                  (Row(("x",), tuple(Cell(float(i)) for i in range(8))),))  # fmt: skip
    assert max(map(len, render([short], "table", width=40).splitlines())) <= 40
    # The first column of a span has no room for the heading that it would carry alone.
    headed = replace(
        short, columns=tuple(replace(c, heading="a long heading" * (i > 2)) for i, c in enumerate(short.columns))
    )
    for width in range(24, 90):
        assert max(map(len, render([headed], "table", width=width).splitlines())) <= width


def test_a_styled_terminal_underlines_instead_of_stars(tables):
    text = render(tables, "table", width=200, styled=True)
    assert "\x1b[1m55.00\x1b[0m" in text and "\x1b[4m53.50\x1b[0m" in text
    assert "55.00*" not in text and "[31m" in text and "\x1b[31m" not in text


def test_every_format_of_the_command_line_is_there(tables):
    styles = find_formats()
    assert styles == ("table", "csv", "md", "latex", "json")
    assert len({render(tables, style) for style in styles}) == len(styles)


def test_a_new_format_is_one_new_file(tables, tmp_path, monkeypatch, capsys):
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats" / "_shared.py").write_text("")
    (tmp_path / "formats" / "names.py").write_text(
        '"""The names of tables."""\n\n'
        "from ._words import clean\n\n\n"
        "def render(tables):\n"
        '    return "".join(f"named {clean(table.name)}\\n" for table in tables)\n'
    )
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path / "formats")])
    assert find_formats() == ("table", "csv", "md", "latex", "json", "names")
    assert main(["leaderboard", str(tmp_path), "--format", "names"]) == 0
    assert capsys.readouterr().out == "".join(f"named {table.name}\n" for table in tables)
    for verb, choices in (("leaderboard", "json,names,html"), ("stats", "json,names"), ("cost", "json,names")):
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        assert f"--format {{table,csv,md,latex,{choices}}}" in capsys.readouterr().out


def test_json_holds_every_number_and_all_that_the_table_says(tables):
    import json

    found = json.loads(render(tables, "json"))["tables"]
    assert [t["name"] for t in found] == [t.name for t in tables]
    for told, table in zip(found, tables):
        assert (told["title"], told["caption"], told["notes"]) == (table.title, table.caption, list(table.notes))
        keys = [column["key"] for column in told["columns"]]
        for row, wanted in zip(told["rows"], table.rows):
            assert tuple(row["labels"].values()) == wanted.labels
            assert [row["cells"][key]["value"] for key in keys] == [cell.value for cell in wanted.cells]
            assert [row["cells"][key].get("std") for key in keys] == [cell.std for cell in wanted.cells]
            assert [row["cells"][key].get("word", "") for key in keys] == [cell.word for cell in wanted.cells]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_calculates_no_text(start):
    from fmtlbench.reports.formats.csv import quote_formula

    assert quote_formula(f"{start}1+cmd|' /C calc'!A0") == f"'{start}1+cmd|' /C calc'!A0"
    assert quote_formula("-1.5e-3") == "-1.5e-3"
    assert quote_formula("plain - text") == "plain - text"
    assert quote_formula(-2) == -2


def test_labels_in_a_spreadsheet_s_csv_are_quoted_and_numbers_are_not():
    table = Table("t", "t", "", ("Method",), (Column("x", "x"),), (Row(("=A1+1",), (Cell(-3.25),)),))
    assert render([table], "csv").splitlines()[1] == "t,=A1+1,-3.25"
    assert render([table], "csv", spreadsheet=True).splitlines()[1] == "t,'=A1+1,-3.25"
