"""What a run tells while it runs: JSON lines for programs, bars for people, on stderr only."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from fmtlbench.exchange import Party
from fmtlbench.listeners import Listener, Start
from fmtlbench.listeners.bars import Bars
from fmtlbench.listeners.json_lines import JsonLines

PARTY = Party(0, "pascal-[sal]", "pascal", ("sal", "edge"), 5)


class Watch:
    """An epoch in which one step was done."""

    def latest(self):
        return {"sal": 0.5, "edge": 0.25}


def row(index, scored=False):
    score = {"client": PARTY.id, "split": "global", "task": "sal", "metric": "maxF", "value": 61.5, "primary": True}
    extra = {**score, "metric": "threshold", "primary": False}
    empty = {**score, "task": "edge", "value": None}
    return {"round": index, "losses": {PARTY.id: {"sal": 0.5}}, **({"scores": [score, extra, empty]} if scored else {})}


def start(rounds, done, steps):
    return Start(rounds, done, steps, Path("run"), config=None)


def play(progress, done=0):
    """A three-round run, gone on with after round `done`."""
    for count in (0, 16, 20):
        progress.preparing("pascal train data", count, 20)
    progress.note("going on in /tmp/[/x] with :smile:")
    progress.begin(start(3, done, 4))
    for index in range(done + 1, 4):
        for _ in range(4):
            progress.step(PARTY, Watch())
        progress.round_done(row(index, scored=index == 3), {"seconds": {"train": 1.25, "evaluate": 0.25}})
    progress.end()
    progress.end()  # the command line ends it once more, whatever happened


@pytest.mark.parametrize("done", [0, 2])
def test_json_lines(done):
    stream = io.StringIO()
    play(JsonLines(stream), done)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["note", "begin"] + ["round"] * (3 - done)
    rounds = lines[2:]
    assert [line["round"] for line in rounds] == list(range(done + 1, 4))
    assert all(line["eta_seconds"] >= 0 and line["rounds"] == 3 and line["seconds"] == 1.5 for line in rounds)
    assert rounds[-1]["eta_seconds"] == 0
    assert rounds[-1]["scores"] == {f"{PARTY.id}/global/sal": 61.5, f"{PARTY.id}/global/edge": None}
    assert rounds[-1]["losses"] == {PARTY.id: {"sal": 0.5}}
    assert all("scores" not in line for line in rounds[:-1])


def test_the_eta_is_the_mean_round_times_what_is_left(monkeypatch):
    stream, now = io.StringIO(), [100.0]
    monkeypatch.setattr("fmtlbench.listeners.json_lines.time.monotonic", lambda: now[0])
    progress = JsonLines(stream)
    progress.begin(start(10, 4, 1))  # four rounds were done before
    now[0] += 6
    progress.round_done(row(6), {"seconds": {}})  # two since: 3 s each, four left
    assert json.loads(stream.getvalue().splitlines()[-1])["eta_seconds"] == 12


@pytest.mark.parametrize("done", [0, 2])
@pytest.mark.parametrize("terminal", [True, False])
def test_bars(capsys, done, terminal):
    stream = io.StringIO()
    play(Bars(Console(file=stream, force_terminal=terminal, width=160)), done)
    text = stream.getvalue()
    assert "going on in /tmp/[/x] with :smile:" in text  # a path is not markup
    assert "round 3: pascal-[sal] sal maxF 61.5" in text
    if terminal:
        assert "round 3/3" in text and "pascal-[sal]: sal 0.500 edge 0.250" in text
    assert capsys.readouterr().out == ""


def test_both_write_to_stderr_by_default(capsys):
    play(JsonLines())
    play(Bars())
    captured = capsys.readouterr()
    assert captured.out == "" and "going on" in captured.err


def test_bars_leave_the_bill_to_a_table():
    texts = {}
    for shown in (True, False):
        stream = io.StringIO()
        Bars(Console(file=stream, width=160), shows_bill=shown).bill({"seconds_total": 1.0, "seconds": {"step": 1.0}})
        texts[shown] = stream.getvalue()
    assert texts[True] and not texts[False]


def test_a_listener_of_its_own_says_nothing(capsys):
    play(Listener())
    assert capsys.readouterr() == ("", "")
