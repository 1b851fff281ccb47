"""The site of docs/: what its pages are made of. `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from fmtlbench import cli


@pytest.fixture
def script():
    """`script(name)`: a module of docs/."""
    return import_module


def test_the_table_of_errors_is_fresh(script):
    writer = script("write_errors")
    assert writer.PAGE.read_text(encoding="utf-8") == writer.write_page(), "python docs/write_errors.py makes it anew"


def test_every_error_ends_with_the_code_that_the_page_says(script, monkeypatch, capsys):
    writer = script("write_errors")
    rows = re.findall(r"^\| `fmtlbench[\w.]*?(\w+)` \| (\d) \|", writer.PAGE.read_text(encoding="utf-8"), re.M)
    errors = {error.__name__: error for error in writer.find_errors()}
    assert {name for name, _ in rows} == set(errors) and len(rows) > 10
    for name, code in rows:
        error = errors[name].__new__(errors[name], "some words")
        Exception.__init__(error, "some words")  # some want more than words; how one ends does not depend on it

        def fail(_args, error=error):
            raise error

        monkeypatch.setattr(cli, "build_parser", lambda _words, fail=fail: _ParserOf(fail))
        assert cli.main(["list"]) == int(code), name
        assert capsys.readouterr().err.count("\n") == 1, name


class _ParserOf:
    """Stands for the parser; whatever is asked, `func` is called."""

    def __init__(self, func):
        self.func, self.verb = func, "list"

    def parse_args(self, _argv):
        return self


def test_the_index_reaches_every_page(script):
    site = script("site_pages")
    reached = {"index.md"}
    for page in site.LISTS:
        text = site.prepare(page, (site.DOCS / f"{page}.md").read_text(encoding="utf-8"))
        listed = re.findall(r"^```\{toctree\}\n.*?\n\n(.*?)\n```", text, re.M | re.S)
        folder = Path(page).parent
        reached |= {(folder / name).as_posix() + ".md" for part in listed for name in part.splitlines()}
    pages = {path.relative_to(site.DOCS).as_posix() for path in site.DOCS.rglob("*.md")}
    assert {page for page in pages if not page.startswith(("_generated/", site.LEADERBOARD))} <= reached
    assert {f"_generated/{name}" for name in site.COPIED} <= reached


@pytest.mark.parametrize(
    ("docname", "text", "expected"),
    [
        ("guide", "[runs](runs.md#keeping)", "[runs](runs.md#keeping)"),
        ("guide", "[README](../README.md#methods)", "[README](_generated/README.md#methods)"),
        ("guide", "[the code](../fmtlbench/cli)", "the code (`fmtlbench/cli`)"),
        ("guide", "[`fmtlbench/cli`](../fmtlbench/cli)", "`fmtlbench/cli`"),
        ("guide", "[a](https://example.org/x.md) [b](#here)", "[a](https://example.org/x.md) [b](#here)"),
        ("guide", "```\n[x](../README.md)\n```\n", "```\n[x](../README.md)\n```\n"),
        ("_generated/README", "[guide](docs/guide.md)", "[guide](../guide.md)"),
        ("_generated/README", "![a table](docs/pictures/terminal.png)", "![a table](../pictures/terminal.png)"),
        ("_generated/results/README", "[first page](../README.md)", "[first page](../README.md)"),
        ("_generated/results/README", "[presets](../docs/presets.md)", "[presets](../../presets.md)"),
    ],
)
def test_links_lead_where_the_site_has_the_page(script, docname, text, expected):
    assert script("site_pages").prepare(docname, text) == expected


def test_the_command_lines_page_has_every_verb_and_flag(script):
    text = script("write_cli").write()
    verbs = cli.build_parser()._subparsers._group_actions[0].choices
    assert [verb for verb in verbs if f"\n## fmtlbench {verb}\n" not in text] == []
    run = text.partition("\n## fmtlbench run\n")[2].partition("\n## ")[0]
    flags = [flag for action in verbs["run"]._actions for flag in action.option_strings if action.dest != "help"]
    assert [flag for flag in flags if f"`{flag}" not in run] == []


def test_words_of_the_parser_are_shown_as_they_are(script):
    writer = script("write_cli")
    assert writer.as_text("a_b <c> `d_e` | f") == r"a\_b \<c\> `d_e` \| f"
    assert writer.in_cell("a | b\n  c \\| d") == r"a \| b c \| d"


def test_the_python_page_names_what_exists(script):
    for _, _, names in script("write_api").PARTS:
        for name in names:
            module, _, attribute = name.rpartition(".")
            assert getattr(import_module(module), attribute).__doc__, name
