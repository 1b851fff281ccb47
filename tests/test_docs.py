"""What README.md and docs/ tell people to type works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tiny import TINY

from fmtlbench.cli import build_parser
from fmtlbench.config import parse_overrides, resolve

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def commands() -> list[str]:
    lines = [line for page in PAGES for block in blocks(page, "") for line in block.splitlines()]
    return [line.partition("#")[0].strip() for line in lines if line.startswith("fmtlbench ")]


@pytest.mark.parametrize("command", commands())
def test_commands_parse_and_name_things_that_exist(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half_way.py").write_text(blocks("docs/add-your-own.md", "python")[0])
    (tmp_path / "my_method.py").write_text(blocks("docs/add-your-own.md", "python")[0])
    (tmp_path / "my_scenario.yml").write_text(blocks("docs/add-your-own.md", "yaml")[0])
    args = build_parser().parse_args(shlex.split(command)[1:])
    if args.verb == "run":
        resolve(args.algo, args.scenario, args.preset, args.seed, overrides=parse_overrides(args.assignments))
    elif args.verb in ("show", "list"):
        assert args.func(args) == 0


def test_there_are_commands_to_test():
    assert len(commands()) >= 8


def test_the_method_of_the_guide_runs(tmp_path, tiny_run):
    path = tmp_path / "half_way.py"
    path.write_text(blocks("docs/add-your-own.md", "python")[0])
    half, none = (tiny_run(str(path), **{"algo.share": share}) for share in (0.5, 0.0))
    local = tiny_run("local")
    assert half.summary["bytes_up"] > 0
    assert [r["value"] for r in none.scores] == [r["value"] for r in local.scores]
    assert [r["value"] for r in half.scores] != [r["value"] for r in local.scores]


def test_the_listener_of_the_guide_runs(tmp_path, tiny_run):
    path = tmp_path / "loss_table.py"
    path.write_text(blocks("docs/add-your-own.md", "python")[1])
    result = tiny_run("local", rounds=2, log=path)
    lines = (result.folder / "logs" / "losses.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "2"] and all(line.count("\t") == 2 for line in lines)


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    """As printed, on the tiny setting: only the sizes are replaced."""
    import fmtlbench
    from fmtlbench import api

    original = api.run
    small = {key: value for key, value in TINY.items() if key != "data.size"}
    small["data.train_samples"] = {"pascal": 20, "nyud": 8}
    monkeypatch.setattr(api, "run", lambda **given: original(**{**given, **small, "out": tmp_path}))
    (block,) = blocks("README.md", "python")
    exec(compile(block, "README.md", "exec"), {"fmtlbench": fmtlbench})
    assert list(tmp_path.rglob("summary.json"))


def test_links_between_pages_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"
