"""The site as files. The golden page is tests/golden/site/main.html (FMTLBENCH_GOLDEN=write renews it)."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from made_rounds import write_rounds
from made_runs import DUO, score, write_run
from report_kit import change_lines

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.reports.collect import collect
from fmtlbench.reports.formats._words import cell_text, clean
from fmtlbench.reports.site import figures as figures_file
from fmtlbench.reports.site import write as write_file
from fmtlbench.reports.site import write_site
from fmtlbench.reports.site.data import plan_site, slug
from fmtlbench.reports.site.markup import escape, load_templates
from fmtlbench.reports.site.overview import WIDTH, _scale, draw_bar
from fmtlbench.reports.table import Cell

GOLDEN = Path(__file__).parents[1] / "golden" / "site" / "main.html"
NASTY = """<script>alert(1)</script> & "q" 'a' ]]> --> <img src=x onerror=alert(2)> \x00\x1b[31m中 """ + "long" * 30
VOID = {"meta", "link", "img", "input", "br"}


class Parsed(HTMLParser):
    """Elements with their attributes, and the text of table rows; tags that do not close fail."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, name, attributes):
        assert len(dict(attributes)) == len(attributes)
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)
        if name == "tr":
            self.rows.append([])
        elif name in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        self.text += text
        if {"td", "th"} & {*self.open} and (
            text.strip() or "svg" not in self.open
        ):  # no text between lines of a drawing
            self.rows[-1][-1] += text

    def attributes(self, key: str) -> list[str]:
        return [a[key] for _, a in self.elements if key in a]


def parsed(site: Path) -> dict[Path, Parsed]:
    return {p: Parsed(p.read_text(encoding="utf-8")) for p in sorted(site.rglob("*.html"))}


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def runs(tmp_path, monkeypatch) -> Path:
    """Two settings, two splits, a missing score, an unfinished run, a title full of traps."""
    monkeypatch.chdir(tmp_path)
    root = Path("runs")
    both = {"splits": ("global", "personal")}
    for seed in (0, 1):
        write_run(root, algorithm="local", seed=seed, values={("pascal-semseg", "semseg"): 50.0 + seed}, **both)
        write_run(root, algorithm="fedavg", seed=seed, values={("pascal-semseg", "semseg"): 52.5 + 2 * seed}, **both)
    second = {**score("nyud-multi", "nyud", "semseg", 71.25, primary=False), "metric": "pixelAcc"}
    write_run(root, algorithm="fedhca2", values={("nyud-multi", "depth"): None}, extra_scores=[second], **both)
    write_run(root, algorithm="trap", title=NASTY, options={"path": NASTY}, **both)
    write_run(root, algorithm="local", rounds=80, setting="b" * 64)
    lost = root / "duo" / "ditto" / "lost"
    lost.mkdir(parents=True)
    (lost / "summary.json").write_text("{")
    return root


@pytest.fixture
def site(runs, tmp_path) -> Path:
    return write_site(collect([runs]), tmp_path / "site", figures=False).parent


def test_golden(site):
    page = (site / "duo-nano-synth-global-5e771000.html").read_text(encoding="utf-8")
    main = page[page.index("<main") : page.index("<h2>")] + "\n"  # the leaderboard; figures and tests have their own
    if os.environ.get("FMTLBENCH_GOLDEN") == "write":
        GOLDEN.write_text(main, encoding="utf-8")
    assert main == GOLDEN.read_text(encoding="utf-8")


def test_settings_and_splits_have_pages_of_their_own(site):
    names = {path.name for path in site.glob("*.html")}
    assert names == {
        "index.html", "duo-nano-synth-global-5e771000.html", "duo-nano-synth-personal-5e771000.html",
        "duo-nano-synth-global-bbbbbbbb.html",
    }  # fmt: skip
    assert len(list((site / "runs").iterdir())) == 7
    assert {p.suffix for p in (site / "tables").iterdir()} == {".csv", ".md", ".tex"}
    index = Parsed((site / "index.html").read_text(encoding="utf-8")).text
    assert "7 finished runs, 2 settings, 1 scenario" in index
    assert "runs/duo/ditto/lost: summary.json cannot be read" in index


def test_every_link_leads_somewhere_inside_the_folder(site):
    pages = parsed(site)
    for path, page in pages.items():
        ids = page.attributes("id")
        assert len(ids) == len(set(ids)), path
        for address in page.attributes("href") + page.attributes("src"):
            file, _, anchor = address.partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.is_relative_to(site) and target.is_file(), (path, address)
            if anchor:
                assert anchor in pages[target].attributes("id")


def test_nothing_from_a_run_becomes_markup(site):
    for page in parsed(site).values():
        scripts = [a for name, a in page.elements if name == "script"]
        assert len(scripts) == 1 and scripts[0]["src"].endswith("assets/app.js")
        assert not [name for name, _ in page.elements if name == "img"]
        assert not [key for _, a in page.elements for key in a if key.startswith("on") or key == "style"]
        policies = [a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
        assert len(policies) == 1 and policies[0].startswith("default-src 'none';") and "http" not in policies[0]
    text = (site / "duo-nano-synth-global-5e771000.html").read_text(encoding="utf-8")
    assert "\x00" not in text and "\x1b" not in text
    assert clean(NASTY) in Parsed(text).text


def test_a_template_that_shows_what_nobody_gave_fails():
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        load_templates().from_string("<p>{{ title }}</p>").render(text="")


@pytest.mark.parametrize("text", ["", " ", "a", " a ", "\n", "<&\"'", "\x00", "a  b"])
def test_escaped_text_comes_back(text):
    page = Parsed(load_templates().from_string('<p title="{{ text }}">{{ text }}</p>').render(text=text))
    assert page.text.strip() == clean(text) == page.elements[0][1]["title"].strip()
    assert Parsed(escape(text)).text == page.text


def test_the_table_says_what_the_text_formats_say(runs, site):
    plan = plan_site(collect([runs]))
    assert len(plan.pages) == 3
    for page in plan.pages:
        table = page.table.with_first("delta_m")
        letters = table.footnotes()
        shown = Parsed((site / f"{page.slug}.html").read_text(encoding="utf-8")).rows
        for row in table.rows:
            wanted = [
                cell_text(cell, column, lambda text, mark: text) + letters.get(cell.note, "")
                for column, cell in zip(table.columns, row.cells)
            ]
            mine = next(cells for cells in shown if cells[0] == clean(row.labels[0]))
            assert mine[1:-1] == wanted
            assert mine[-1] == "".join(str(run.summary["seed"]) for run in page.runs_of(row))


def test_marks_arrows_spread_and_missing(site):
    text = (site / "duo-nano-synth-global-5e771000.html").read_text(encoding="utf-8")
    assert '<b>53.50</b> <span class="spread">± 1.41</span>' in text
    assert '<u>50.50</u> <span class="spread">± 0.71</span>' in text
    assert '–<sup><a href="#t1-a">a</a></sup>' in text and 'id="t1-a"' in text
    assert "mIoU ↑" in text and "RMSE ↓" in text and "mean ± standard deviation over seeds 0, 1" in text


def test_a_run_page_has_everything_the_run_left(tmp_path):
    folder = write_rounds(tmp_path / "runs", "fedhca2", rounds=6, options={"c": 0.25}, splits=("global", "personal"))
    (folder / "config.yaml").write_text("train:\n  lr: 0.006 # <b>&\n", encoding="utf-8")

    def tell_more(row):
        notes = {"notes": ["a client was <absent>"]} if row["round"] == 4 else {}
        return {**row, "losses": {"nyud-multi": {"depth": 1 / row["round"]}}, **notes}

    change_lines(folder / "metrics.jsonl", tell_more)
    index = write_site(collect([tmp_path / "runs"]), tmp_path / "site", figures=False)
    [path] = (index.parent / "runs").iterdir()
    page = Parsed(path.read_text(encoding="utf-8"))
    for words in (
        "train:\n  lr: 0.006 # <b>&", "round 4: a client was <absent>", "Options of the method", "0.25", "2.9.0",
        "pascal/train", "pascal-train", "2026-01-01T00:00:00+00:00", "54 Wh", "7 min 24 s", "seconds.train",
        "Depth RMSE ↓", "Training losses", "nyud-multi: 1 in round 1, 0.1667 in round 6",
    ):  # fmt: skip
        assert words in page.text, words
    assert sum(name == "polyline" for name, _ in page.elements) == 3 * 2 + 1


def test_the_index_has_a_matrix_of_bars_around_zero(site):
    page = Parsed((site / "index.html").read_text(encoding="utf-8"))
    columns, head = page.rows[0], page.rows[1]
    assert columns == ["", "duo40 rounds", "duo80 rounds"]
    assert [text.split(" %")[0] for text in head[1:]] == ["Δm"] * 3
    rows = {cells[0]: cells[1:] for cells in page.rows[2:]}
    assert rows["Local"] == ["0.00", "0.00", "0.00"]
    assert rows["FedAvg"][0].startswith("+1.98 [")  # (5 + 350 / 51) / 2 / 3
    assert rows["FedAvg"][2] == ""  # no run of that setting
    assert rows[""] == ["leaderboard"] * 3
    bars = [a for name, a in page.elements if name == "rect"]
    assert {bar["class"] for bar in bars} == {"gain"}
    assert max(float(bar["width"]) for bar in bars) > 0
    assert "2 clients with 100 training images each; preset nano, synth data, 40 rounds; 4 methods" in page.text


def test_bars_begin_at_zero_and_share_a_scale():
    def drawn(value, interval=None):
        elements = Parsed(draw_bar(Cell(value, interval=interval), (-10.0, 30.0))).elements
        return next(a for name, a in elements if name == "rect"), [a["d"] for name, a in elements if name == "path"]

    gain, [line, zero] = drawn(15.0, (10.0, 20.0))
    assert (gain["class"], float(gain["x"]), float(gain["width"])) == ("gain", WIDTH / 4, WIDTH * 15 / 40)
    assert line.startswith(f"M{WIDTH * 20 / 40} ") and line.endswith(f"H{WIDTH * 30 / 40}")
    assert zero.startswith(f"M{WIDTH / 4} ")
    loss, [zero] = drawn(-10.0)
    assert (loss["class"], float(loss["x"]), float(loss["width"])) == ("loss", 0.0, WIDTH / 4)


def test_a_method_that_went_astray_does_not_shrink_the_others():
    cells = [Cell(value, interval=(value - 1, value + 1)) for value in (0, 1, 2, 3, -4, -5, -6)]
    assert _scale([*cells, Cell(-400.0, interval=(-900.0, 90.0)), Cell(None)]) == (-7, 4)
    assert _scale([*cells[:3], Cell(-400.0)]) == (-400.0, 3)  # too few to say what is astray
    assert _scale([Cell(0.0)] * 7 + [Cell(5.0)]) == (0.0, 5.0)  # most alike: nothing is told apart by quartiles
    assert _scale([]) == (0.0, 0.0)

    def arrows(cell):
        elements = Parsed(draw_bar(cell, (-7, 4))).elements
        return [a["d"] for _, a in elements if a.get("class") == "beyond"], elements

    (left, right), elements = arrows(Cell(-400.0, interval=(-900.0, 90.0)))
    assert left.startswith("M0 ") and right.startswith(f"M{WIDTH} ")
    assert next(float(a["x"]) for name, a in elements if name == "rect") == 0
    assert arrows(Cell(-7.0, interval=(-7.0, 4.0)))[0] == []


def test_abbreviations_are_explained_in_hints_and_in_a_list(site):
    page = Parsed((site / "duo-nano-synth-global-5e771000.html").read_text(encoding="utf-8"))
    hints = page.attributes("title")
    for words in ("mean intersection over union", "root mean squared depth error", "mean relative change"):
        assert any(words in hint for hint in hints) and words in page.text
    assert "semantic segmentation" in page.text and "single task" in page.text


def test_a_run_page_has_no_dashes_and_shows_stored_examples(tmp_path):
    folder = write_rounds(tmp_path / "runs", "fedavg", energy=False)
    second = write_rounds(tmp_path / "runs", "local")
    examples = folder / "predictions" / "examples" / "nyud-multi" / "00007"
    examples.mkdir(parents=True)
    for name in ("input", "depth-truth", "depth-prediction", "semseg-truth"):
        (examples / f"{name}.png").write_bytes(name.encode())
    site = write_site(collect([tmp_path / "runs"]), tmp_path / "site", figures=False).parent
    pages = {path.name: Parsed(path.read_text(encoding="utf-8")) for path in (site / "runs").iterdir()}
    mine = next(page for name, page in pages.items() if "fedavg" in name)
    other = next(page for name, page in pages.items() if "local" in name)
    assert not [cells for cells in mine.rows if "–" in cells]
    shown = [a for name, a in mine.elements if name == "img"]
    assert [Path(a["src"]).name for a in shown] == ["input.png", "depth-truth.png", "depth-prediction.png"]
    assert (site / "runs" / shown[0]["src"]).resolve().read_bytes() == b"input"
    assert all("image 00007" in a["alt"] for a in shown)
    assert not [name for name, _ in other.elements if name == "img"] and second.exists()


def test_runs_with_lost_or_broken_files_still_have_pages(tmp_path):
    root = tmp_path / "runs"
    folder = write_run(root, algorithm="local", versions=None, data_fingerprints=None)
    for name in ("manifest.json", "cost.json", "metrics.jsonl"):
        (folder / name).unlink()
    other = write_run(root, algorithm="fedavg", versions=None, data_fingerprints=None)
    (other / "metrics.jsonl").write_text("{broken\n")
    (other / "cost.json").write_text('{"seconds": {}, "seconds_total": 1, "energy": 7}')
    site = write_site(collect([root]), tmp_path / "site", figures=False).parent
    texts = [page.text for path, page in parsed(site / "runs").items()]
    assert (
        "metrics.jsonl cannot be read" in texts[0]
        and "cost.json: energy: expected an object or null, got 7" in texts[0]
    )
    assert "no metrics.jsonl" in texts[1] and "config.yaml cannot be read: No such file" in texts[1]


def test_only_a_site_of_ours_is_replaced_and_then_completely(runs, tmp_path):
    collection = collect([runs])
    out = tmp_path / "site"
    out.mkdir()
    write_site(collection, out, figures=False)
    old = tree(out)
    with pytest.raises(UsageError, match="no run of scenario 'nowhere'"):
        write_site(collection, out, scenario="nowhere", figures=False)
    (out / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match=r"would remove mine\.txt"):
        write_site(collection, out, figures=False)
    (out / "mine.txt").unlink()
    assert tree(out) == old
    write_site(collection, out, splits=["personal"], figures=False)
    assert [p.name for p in out.glob("duo*.html")] == ["duo-nano-synth-personal-5e771000.html"]
    with pytest.raises(UsageError, match="not a site that fmtlbench wrote"):
        write_site(collection, runs, figures=False)
    with pytest.raises(UsageError, match="a file, expected a folder"):
        write_site(collection, out / "index.html", figures=False)
    with pytest.raises(UsageError, match="no folder"):
        write_site(collection, tmp_path / "no" / "where", figures=False)


def test_a_failure_half_way_leaves_the_old_site(runs, site, tmp_path, monkeypatch):
    before = tree(tmp_path)

    def full(run, plan):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write_file, "run_page", full)
    with pytest.raises(FmtlbenchError, match="No space left on device"):
        write_site(collect([runs]), site, figures=False)
    monkeypatch.setattr(Path, "rename", lambda self, to: full(None, None))
    monkeypatch.setattr(write_file, "run_page", lambda run, plan: "")
    with pytest.raises(FmtlbenchError, match="No space left"):
        write_site(collect([runs]), site, figures=False)
    assert tree(tmp_path) == before


def test_same_runs_same_bytes_with_figures(tmp_path, monkeypatch):
    wanted = figures_file._wanted
    monkeypatch.setattr(figures_file, "_wanted", lambda page: [wanted(page)[0], wanted(page)[-1]])
    for algorithm in ("local", "fedavg"):
        write_rounds(tmp_path / "runs", algorithm)
    for name in ("a", "b"):
        write_site(collect([tmp_path / "runs"]), tmp_path / name)
    first = tree(tmp_path / "a")
    assert first == tree(tmp_path / "b")
    assert sum(name.endswith(".pdf") for name in first) == 2 and not any(name.endswith(".png") for name in first)
    [path] = (tmp_path / "a").glob("duo*.html")
    page = Parsed(path.read_text(encoding="utf-8"))
    assert page.attributes("class").count("plot") == 2 and not page.attributes("style")
    assert not [name for name, _ in page.elements if name in ("img", "image", "style")]
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    targets = [a[1:] for a in page.attributes("href") if a.startswith("#")]
    assert len(targets) > 10 and set(targets) <= set(ids)  # markers are used from where they are defined
    colours = {value for key in ("fill", "stroke") for value in page.attributes(key)}
    assert {"currentColor", "var(--method-1)"} <= colours and not [value for value in colours if value.startswith("#")]


def test_a_figure_that_cannot_be_drawn_is_a_line(tmp_path, monkeypatch):
    wanted = figures_file._wanted
    monkeypatch.setattr(figures_file, "_wanted", lambda page: [wanted(page)[0], *wanted(page)[-5:]])
    write_rounds(tmp_path / "runs", "fedavg", clients=DUO)
    index = write_site(collect([tmp_path / "runs"]), tmp_path / "site")
    [path] = index.parent.glob("duo*.html")
    text = Parsed(path.read_text(encoding="utf-8")).text
    assert "6 figures not drawn" in text and "Δm over rounds: Δm needs the local run" in text
    assert "Not tested: no two methods have a common block" in text
    assert not (index.parent / "figures").exists()


def test_costs_have_a_table_where_there_are_any(tmp_path):
    folders = [write_rounds(tmp_path / "runs", algorithm) for algorithm in ("local", "fedavg")]
    out = tmp_path / "site"
    pages = []
    for _ in range(3):
        [path] = write_site(collect([tmp_path / "runs"]), out, figures=False).parent.glob("duo*.html")
        pages.append(Parsed(path.read_text(encoding="utf-8")).text)
        if len(pages) == 1:
            (folders[0] / "cost.json").write_text("[")
        else:
            for folder in folders:
                (folder / "cost.json").unlink(missing_ok=True)
    assert "10^6 bytes" in pages[0]
    assert "Wh" in pages[0] and "0.00" not in pages[0].partition("Cost")[2].partition("until")[0]
    assert f"No cost table: {folders[0]}/cost.json cannot be read" in pages[1]
    assert "Cost" not in pages[2]


def test_names_of_pages_are_plain_and_different():
    taken: set[str] = set()
    made = [slug(text, taken) for text in ("A/b c", "a-b-c", "../../etc", "中", "index", "x" * 300)]
    assert made[:5] == ["a-b-c", "a-b-c-2", "etc", "page", "page-index"] and len(made[5]) == 100


def test_the_command_writes_a_site(runs, tmp_path, capsys, monkeypatch):
    from fmtlbench.cli import main

    monkeypatch.setattr(figures_file, "_wanted", lambda page: [])
    command = ["leaderboard", str(runs), "--format", "html", "--split", "personal", "-o", str(tmp_path / "new")]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out == "" and err.splitlines()[-1] == f"written: {tmp_path / 'new' / 'index.html'}"
    assert [p.name for p in (tmp_path / "new").glob("duo*.html")] == ["duo-nano-synth-personal-5e771000.html"]
    assert main([*command, "--standalone"]) == 2
    assert main([*command[:-1], str(runs)]) == 2
