"""Whatever is mistyped: one line on stderr with the nearest valid choice, nothing on stdout, nothing touched."""

from __future__ import annotations

import shlex

import pytest
from made_rounds import finals, write_rounds
from made_runs import DUO, ST_MT_1, write_run
from mistakes import WORDS

from fmtlbench.cli import main

CASES = [pytest.param(*(*case, 2)[:3], id=case[0]) for case in WORDS]
TRIPLE = {**DUO, "pascal-edge": ("pascal", ("edge",))}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with finished runs to ask about."""
    root = tmp_path_factory.mktemp("mistakes")
    for seed in (0, 1):
        write_run(root / "board", algorithm="local", seed=seed, clients=ST_MT_1, scenario="st_mt_1")
    write_run(root / "board", algorithm="fedavg", clients=ST_MT_1, scenario="st_mt_1")
    for name in ("local", "fedavg", "ditto", "fedhca2"):
        for seed in range(4):
            write_run(root / "duo", algorithm=name, seed=seed, clients=ST_MT_1, values=finals(name, seed, ST_MT_1))
    for seed in range(2):
        write_run(root / "one", algorithm="local", seed=seed, clients=ST_MT_1)
    for name in ("local", "fedavg", "matfl", "fedhca2"):
        write_rounds(root / "figures", name, clients=TRIPLE, scenario="trio")
        write_rounds(root / "figures", name, clients=DUO, scenario="scale", setting="a" * 64)
        write_rounds(root / "figures", name, clients=TRIPLE, scenario="scale", setting="b" * 64)
    (root / "config.yml").write_text("{}")
    (root / "predictions").mkdir()
    return root, sorted(root.rglob("*"))


@pytest.mark.parametrize(("command", "words", "code"), CASES)
def test_a_mistake_is_one_line(place, monkeypatch, capsys, command, words, code):
    root, files = place
    monkeypatch.chdir(root)
    monkeypatch.delenv("FMTLBENCH_DATA", raising=False)
    monkeypatch.setenv("FMTLBENCH_CONFIG", str(root / "config.yml"))
    assert main(shlex.split(command)) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("fmtlbench: ") and err.count("\n") == 1, err
    assert words in err
    assert sorted(root.rglob("*")) == files
