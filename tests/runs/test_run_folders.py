"""Run folders of the first format, of this one, of a later one, and damaged ones: read, or refused in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from interrupt import AtStep, Stopped
from kit import TINY

import fmtlbench
from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.base.files import write_json
from fmtlbench.base.stored import FORMAT, DamagedRun, NewerFormat
from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.runs import session
from fmtlbench.runs.folder import RunFolder

FIRST = Path(__file__).parent / "first_format"
RESULTS = Path(__file__).parents[2] / "results" / "nano-1"
READERS = {
    "summary.json": RunFolder.summary, "cost.json": RunFolder.cost, "manifest.json": RunFolder.manifest,
    "metrics.jsonl": RunFolder.rounds, "timing.jsonl": RunFolder.timing,
}  # fmt: skip


def contents(file):
    """The records of a .json or a .jsonl file."""
    text = file.read_text()
    return [json.loads(line) for line in (text.splitlines() if file.suffix == ".jsonl" else [text])]


@pytest.fixture
def first(tmp_path):
    """A copy of a finished run of the first format, without its weights."""
    shutil.copytree(FIRST, tmp_path / "first")
    return next((tmp_path / "first").glob("duo/fedavg/*"))


def test_a_folder_of_the_first_format_is_read(first):
    folder = RunFolder(first)
    texts = [path.read_text() for path in first.iterdir()]
    assert len(texts) == 6 and not any('"format"' in text or "format:" in text for text in texts)
    summary = folder.summary()
    assert (summary["algorithm"], summary["rounds"], len(summary["clients"])) == ("fedavg", 2, 2)
    assert [row["round"] for row in folder.rounds()] == [row["round"] for row in folder.timing()] == [1, 2]
    assert folder.rounds()[-1]["scores"][0]["value"] == summary["scores"][0]["value"]
    assert folder.timing()[-1]["energy"]["kwh"] > 0 and folder.cost()["seconds_total"] > 0
    assert len(folder.manifest()["sessions"]) == 1 and folder.repeated() == []
    # Keys that came later have their defaults: the numbers are decided alike, though the hash has them in it.
    config = folder.run_config()
    assert (config.seed, config.federation.rounds) == (summary["seed"], 2) and folder.is_finished()
    assert all(spec.always_there and not spec.relabel for spec in config.scenario.parties())


@pytest.mark.parametrize("verb", ["leaderboard", "cost", "export"])
def test_reports_show_runs_of_the_first_format(first, capsys, verb):
    assert main([verb, str(first)]) == 0
    out, err = capsys.readouterr()
    assert "FedAvg" in out and "left out" not in err


def test_the_committed_results_are_read():
    found = collect([RESULTS], reading=("rounds", "timing", "cost", "manifest"))
    assert len(found.runs) == len(list(RESULTS.glob("*/*/*/summary.json"))) and found.problems == []


def test_every_file_says_its_format(tiny_run):
    folder = tiny_run("fedavg", rounds=2, save_predictions=True).folder
    for file in folder.rglob("*.json*"):
        for record in contents(file):
            assert record["format"] == FORMAT and next(iter(record)) == "format", file
    assert len(list(folder.rglob("*.json*"))) >= 7
    assert yaml.safe_load((folder / "config.yaml").read_text())["format"] == FORMAT
    assert "format" not in RunFolder(folder).config()
    again = tiny_run("fedavg", rounds=2)
    assert again.reused and again.summary == json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize("name", READERS)
def test_a_later_format_is_refused_in_one_line(first, name):
    file = first / name
    file.write_text("".join(json.dumps({**record, "format": FORMAT + 1}) + "\n" for record in contents(file)))
    with pytest.raises(NewerFormat, match=rf"{name}.* has format {FORMAT + 1}, newer than this") as caught:
        READERS[name](RunFolder(first))
    assert "\n" not in str(caught.value) and str(caught.value).startswith(str(file))


def test_a_config_of_a_later_format_is_refused(first):
    file = first / "config.yaml"
    file.write_text(f"format: {FORMAT + 1}\n" + file.read_text())
    with pytest.raises(NewerFormat, match=r"config\.yaml has format"):
        RunFolder(first).run_config()


@pytest.mark.parametrize("number", [0, "2", 1.5, None, True])
def test_a_format_that_is_no_number_is_damage(first, number):
    file = first / "summary.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": number}))
    with pytest.raises(DamagedRun, match=r"summary\.json has format .*, expected a number from 1"):
        RunFolder(first).summary()


def lose(record, key):
    return {name: value for name, value in record.items() if name != key}


@pytest.mark.parametrize(
    "name, line, change, words",
    [
        ("summary.json", None, lambda r: lose(r, "scores"), "summary.json: lacks scores"),
        ("summary.json", None, lambda r: [r], "summary.json: expected an object, got [{"),
        ("cost.json", None, lambda r: {**r, "energy": 7}, "cost.json: energy: expected an object or null, got 7"),
        ("manifest.json", None, lambda r: {**r, "data": None}, "manifest.json: data: expected an object, got None"),
        ("manifest.json", None, lambda r: {**r, "sessions": [{}]}, "manifest.json: sessions.0: lacks started"),
        ("metrics.jsonl", 2, lambda r: lose(r, "bytes_up"), "metrics.jsonl, line 2: lacks bytes_up"),
        ("metrics.jsonl", 1, lambda r: 5, "metrics.jsonl, line 1: expected an object, got 5"),
        ("metrics.jsonl", 2, lambda r: {**r, "scores": [{}]}, "metrics.jsonl, line 2: scores.0: lacks client"),
        ("timing.jsonl", 2, lambda r: {**r, "seconds": {"step": "1"}},
         "timing.jsonl, line 2: seconds.step: expected a number, got '1'"),
        ("timing.jsonl", 1, lambda r: {**r, "energy": lose(r["energy"], "parts")},
         "timing.jsonl, line 1: energy: lacks parts"),
    ],
)  # fmt: skip
def test_damage_is_named_by_file_line_and_field(first, name, line, change, words):
    file = first / name
    if line is None:
        file.write_text(json.dumps(change(json.loads(file.read_text()))))
    else:
        lines = file.read_text().splitlines()
        lines[line - 1] = json.dumps(change(json.loads(lines[line - 1])))
        file.write_text("\n".join(lines) + "\n")
    with pytest.raises(DamagedRun) as caught:
        READERS[name](RunFolder(first))
    assert caught.value.reason.startswith(words) and "\n" not in str(caught.value)
    assert str(caught.value) == f"{first}/{caught.value.reason}"


@pytest.mark.parametrize("content, words", [("", "is empty"), ("\0" * 40, "cannot be read"), ("{", "cannot be read"),
                                            ("[" * 100_000, "cannot be read")])  # fmt: skip
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_json_is_one_line(first, name, content, words):
    (first / name).write_text(content + "\n" * bool(content))
    if name.endswith("l") and not content:
        assert READERS[name](RunFolder(first)) == []  # as before the first round; a resumed run knows better
        return
    with pytest.raises(DamagedRun, match=words) as caught:
        READERS[name](RunFolder(first))
    assert "\n" not in str(caught.value)
    assert not name.endswith("l") or "line 1: " in str(caught.value)


# -- reports -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, command",
    [
        ("summary.json", "leaderboard RUNS"), ("summary.json", "stats RUNS"), ("summary.json", "export RUNS"),
        ("metrics.jsonl", "cost RUNS"), ("timing.jsonl", "cost RUNS"), ("cost.json", "cost RUNS"),
        ("manifest.json", "stats --noise RUNS"), ("metrics.jsonl", "plot rounds RUNS --task depth -o OUT"),
        ("timing.jsonl", "plot rounds RUNS --task depth --x hours -o OUT"), ("cost.json", "plot pareto RUNS -o OUT"),
        ("manifest.json", "leaderboard RUNS --format html -o OUT"),
    ],
)  # fmt: skip
def test_a_damaged_run_is_left_out_with_its_reason_once(tmp_path, capsys, monkeypatch, name, command):
    from fmtlbench.reports import site

    monkeypatch.setattr(site, "write_site", lambda collection, *_, **__: tmp_path)  # pages are tried elsewhere
    for algorithm in ("local", "fedavg"):
        for seed in (0, 1):
            copy_run(tmp_path / "runs", algorithm, seed)
    broken = tmp_path / "runs" / "duo" / "fedavg" / "s1"
    (broken / name).write_text("7\n")
    places = {"RUNS": str(tmp_path / "runs"), "OUT": str(tmp_path / "out.png")}
    assert main([places.get(word, word) for word in command.split()]) == 0
    where = name + ", line 1" * name.endswith("l")
    told = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert told == [f"left out: {broken}: {where}: expected an object, got 7"]


def copy_run(root, algorithm, seed):
    folder = root / "duo" / algorithm / f"s{seed}"
    shutil.copytree(next(FIRST.glob("duo/fedavg/*")), folder)
    made = json.loads((folder / "summary.json").read_text())
    made |= {"algorithm": algorithm, "title": algorithm, "options": {}, "seed": seed, "config_hash": str(folder)}
    (folder / "summary.json").write_text(json.dumps(made))


# -- going on with a run -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory, scenario_file):
    """A run of three rounds that was stopped in its third."""
    out = tmp_path_factory.mktemp("stopped")

    with pytest.raises(Stopped):
        fmtlbench.run("fedavg", scenario_file, rounds=3, device="cpu", out=out, progress=AtStep(3), **TINY)
    return out


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """The folder of that run, where `tiny_run` looks for it."""
    shutil.copytree(stopped_once, tmp_path / "runs")
    (manifest,) = (tmp_path / "runs").rglob("manifest.json")
    return manifest.parent


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("summary.json", "", "is empty"),
        ("summary.json", "{}", "lacks algorithm"),
        ("summary.json", "[]", "expected an object, got []"),
        ("manifest.json", "", "is empty"),
        ("manifest.json", "{}", "lacks config_hash"),
        ("manifest.json", '{"config_hash": "", "data": [], "sessions": []}', "data: expected an object, got []"),
        ("metrics.jsonl", "", "has rows of 0 rounds where the checkpoint has done 2"),
        ("metrics.jsonl", "{}\n", "line 1: lacks round"),
        ("metrics.jsonl", "7\n", "line 1: expected an object, got 7"),
        ("timing.jsonl", "", "has rows of 0 rounds where the checkpoint has done 2"),
        ("timing.jsonl", '{"round": 1}\n', "line 1: lacks seconds"),
    ],
)  # fmt: skip
def test_a_damaged_run_is_not_gone_on_with(tiny_run, stopped, name, content, words):
    (stopped / name).write_text(content)
    before = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}
    with pytest.raises(FmtlbenchError) as caught:
        tiny_run("fedavg")
    message = str(caught.value)
    assert message.startswith(str(stopped / name)) and words in message
    assert message.endswith("; --fresh starts the run over") and "\n" not in message
    assert {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()} == before


def test_a_run_of_a_later_format_is_not_gone_on_with(tiny_run, stopped):
    file = next((stopped / "checkpoint" / "round-00002").glob("index.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": FORMAT + 1}))
    with pytest.raises(NewerFormat, match=r"index\.json has format .* update fmtlbench$"):
        tiny_run("fedavg")


def test_a_run_that_the_first_format_began_goes_on(tiny_run, shared_run, stopped):
    for file in (*stopped.glob("*.json*"), *stopped.glob("checkpoint/*/index.json")):
        file.write_text("".join(json.dumps(lose(record, "format")) + "\n" for record in contents(file)))
    config = stopped / "config.yaml"
    config.write_text(config.read_text().removeprefix(f"format: {FORMAT}\n"))
    resumed, whole = tiny_run("fedavg"), shared_run("fedavg")
    assert resumed.folder == stopped and resumed.summary == whole.summary
    assert [row.get("format", 1) for row in RunFolder(stopped).rounds()] == [1, 1, FORMAT]
    assert RunFolder(stopped).manifest()["format"] == FORMAT


def test_keys_of_a_later_version_stay_in_what_is_written_again(tiny_run, stopped):
    """Going on trims the rows of a round that was not finished, sets its time aside, and adds to the manifest."""
    for name in ("metrics.jsonl", "timing.jsonl", "manifest.json"):
        records = [{**record, "later": [1, 2.0]} for record in contents(stopped / name)]
        cut = [{**records[-1], "round": 3}] if name.endswith("l") else []
        (stopped / name).write_text("".join(json.dumps(record) + "\n" for record in (*records, *cut)))
    tiny_run("fedavg")
    folder = RunFolder(stopped)
    assert [row.get("later") for row in folder.rounds()] == [[1, 2.0], [1, 2.0], None]
    assert [row.get("later") for row in folder.timing()] == [[1, 2.0], [1, 2.0], None]
    assert [1, 2.0] in [row.get("later") for row in folder.repeated()]
    assert folder.manifest()["later"] == [1, 2.0] and len(folder.manifest()["sessions"]) == 2


def test_a_command_with_a_path_that_is_no_utf8_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "describe_code", lambda code: {"sha256": "", "parts": {}})
    made = session.session("cpu", 1, None, "fmtlbench run --out 'runs\udcff'")
    write_json(tmp_path / "manifest.json", {"config_hash": "", "data": {}, "sessions": [made]})
    assert RunFolder(tmp_path).manifest()["sessions"][0]["command"] == "fmtlbench run --out 'runs?'"
