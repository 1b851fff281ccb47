"""Runs as files that others check: what is honest passes, whatever was touched afterwards is refused and told."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile

import numpy as np
import pytest
from kit import DUO, TINY

import fmtlbench
from fmtlbench.cli import main
from fmtlbench.runs.sums_file import MOST_BYTES, read_sums, write_sums
from fmtlbench.submissions.archive import CONTENTS

OWN_METHOD = """\
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.fedper import FedPer

@ALGORITHMS.register("mine")
class Mine(FedPer):
    title = "Mine"
    paper = "none"
"""
OWN_METRIC = """\
from fmtlbench.metrics import METRICS
from fmtlbench.metrics.rmse import RMSE

@METRICS.register("mine")
class Mine(RMSE):
    label = "mine"
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a run of FedAvg and one of Local."""
    folder = tmp_path_factory.mktemp("submitted")
    (folder / "duo.yml").write_text(DUO)
    for algo in ("fedavg", "local"):
        given = {"rounds": 2, "out": folder / "runs", "device": "cpu", "energy": False, "keep": "none"}
        fmtlbench.run(algo, folder / "duo.yml", **given, **TINY)
    return folder / "runs"


@pytest.fixture
def touched(runs, tmp_path):
    """A copy of the runs, and a function that packs them without any check, as somebody who cheats would."""
    shutil.copytree(runs, tmp_path / "runs")
    (run,) = (tmp_path / "runs" / "duo" / "fedavg").iterdir()
    return run


def pack_anyhow(run, file, **changes):
    """Pack one run with true hashes and no checks; `changes` are of the list of contents."""
    files = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and path.name != ".lock"}
    folder = f"{run.parents[1].name}/{run.parent.name}/{run.name}"
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    contents = {"format": 1, "fmtlbench": "0", "by": None, "runs": [{"folder": folder, "files": hashes}], **changes}
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(CONTENTS, json.dumps(contents))
        for name, content in files.items():
            packed.writestr(f"runs/{folder}/{name}", content)


def edit(file, change):
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))


def verdict(run, capsys):
    """Return what `verify` says of a run that was packed as it is."""
    file = run.parents[2] / "packed.zip"
    pack_anyhow(run, file)
    code = main(["verify", str(file), "--format", "json", "-o", str(file.parent / "unpacked")])
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert code == (told["verdict"] == "refused")
    assert (file.parent / "unpacked").exists() == (told["verdict"] == "ok")
    assert str(run.parents[3]) not in told["remarks"] or told["verdict"] == "ok"
    return told["remarks"] if told["verdict"] == "refused" else "ok"


def test_what_is_packed_comes_out_and_goes_into_tables(runs, tmp_path, capsys):
    file, out = tmp_path / "ours.zip", tmp_path / "results"
    assert main(["submit", str(runs), "-o", str(file), "--by", "Our group"]) == 0
    assert "2 runs" in capsys.readouterr().err
    assert main(["verify", str(file), "-o", str(out)]) == 0
    told = capsys.readouterr()
    assert "by Our group, 0 refused" in told.out and "its author's own" in told.out and "unpacked below" in told.err
    tables = []
    for folder in (runs, out):
        assert main(["leaderboard", str(folder), "--format", "csv"]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1] and "FedAvg" in tables[0]
    names = {path.name for path in out.rglob("*") if path.is_file()}
    assert names >= {"config.yaml", "sums.npz", "summary.json"} and not names & {".lock", "index.json"}
    again = tmp_path / "again.zip"
    assert main(["submit", str(out), "-o", str(again), "--by", "Our group"]) == 0
    assert again.read_bytes() == file.read_bytes()  # whatever came out of one makes the same one
    assert main(["verify", str(file), "-o", str(out)]) == 0  # already there, as it is
    (run,) = (out / "duo" / "fedavg").iterdir()
    (run / "cost.json").write_text("{}")
    assert main(["verify", str(file), "-o", str(out)]) == 1
    assert "another run of this name is there; nothing was unpacked" in capsys.readouterr().err


def test_it_is_written_to_whatever_o_names(runs, tmp_path, capfdbinary):
    assert main(["submit", str(runs), "-o", str(tmp_path / "a.zip")]) == 0
    capfdbinary.readouterr()
    assert main(["submit", str(runs), "-o", "-"]) == 0
    assert capfdbinary.readouterr().out == (tmp_path / "a.zip").read_bytes()
    (tmp_path / "link.zip").symlink_to("b.zip")
    assert main(["submit", str(runs), "-o", str(tmp_path / "link.zip")]) == 0
    assert (tmp_path / "b.zip").read_bytes() == (tmp_path / "a.zip").read_bytes()


def test_every_score_comes_out_of_the_sums_exactly(runs):
    from fmtlbench.runs.folder import RunFolder
    from fmtlbench.submissions.rescoring import rescore

    for run in (*(runs / "duo" / "fedavg").iterdir(), *(runs / "duo" / "local").iterdir()):
        folder = RunFolder(run)
        stored = [{k: v for k, v in score.items() if k != "trivial"} for score in folder.summary()["scores"]]
        computed = rescore(folder.run_config(), read_sums(folder.sums))
        key = lambda score: (score["client"], score["split"], score["task"], not score["primary"], score["metric"])
        assert sorted(stored, key=key) == sorted(computed, key=key) and len(stored) > 6


def test_an_honest_run_passes_the_way_the_doctored_ones_are_packed(touched, capsys):
    assert verdict(touched, capsys) == "ok"


def better(scores):
    next(score for score in scores if score["task"] == "depth" and score["primary"])["value"] *= 0.9


def doctor_summary(run):
    edit(run / "summary.json", lambda summary: better(summary["scores"]))


def doctor_rounds_too(run):
    doctor_summary(run)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    better(rows[-1]["scores"])
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def doctor_sums(run):
    sums = read_sums(run / "sums.npz")
    next(named for (_, _, task), named in sums.items() if task == "depth")["squared"] *= 0.8
    write_sums(run / "sums.npz", sums)


def leave_out_a_sum(run):
    sums = read_sums(run / "sums.npz")
    del sums[next(key for key in sums if key[2] == "edge")]
    write_sums(run / "sums.npz", sums)


def strange_sums(run):
    sums = read_sums(run / "sums.npz")
    key = next(key for key in sums if key[2] == "human_parts")
    sums[key] = {"confusion": np.ones((2, 3, 4))}
    write_sums(run / "sums.npz", sums)


def negative_sums(run):
    sums = read_sums(run / "sums.npz")
    next(named for (_, _, task), named in sums.items() if task == "human_parts")["confusion"][0, 0] = -5
    write_sums(run / "sums.npz", sums)


def sums_of_a_stranger(run):
    sums = read_sums(run / "sums.npz")
    write_sums(run / "sums.npz", {("nobody", *key[1:]): named for key, named in sums.items()})


def replace_in_config(old, new):
    def doctor(run):
        text = (run / "config.yaml").read_text()
        assert old in text
        (run / "config.yaml").write_text(text.replace(old, new))

    return doctor


def set_key(name, key, value):
    return lambda run: edit(run / name, lambda record: record.__setitem__(key, value))


def remove(name):
    return lambda run: (run / name).unlink()


def drop_a_round(run):
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[1:]))


def repeat_a_score(run):
    edit(run / "summary.json", lambda summary: summary["scores"].append(summary["scores"][0]))


DOCTORED = {
    "a better score": (doctor_summary, "scores are not those of the last round"),
    "a better score in the rounds too": (doctor_rounds_too, "scores do not come out of sums.npz: nyud-multi"),
    "better sums": (doctor_sums, "do not come out of sums.npz"),
    "a sum left out": (leave_out_a_sum, "nothing that it was computed from"),
    "sums of another shape": (strange_sums, "no sums of mIoU"),
    "sums below zero": (negative_sums, "a count is below 0"),
    "sums of a stranger": (sums_of_a_stranger, "no such client"),
    "no sums": (remove("sums.npz"), "no sums.npz"),
    "a score twice": (repeat_a_score, "twice"),
    "another rate": (replace_in_config("lr: 0.006", "lr: 0.001"), "config_hash"),
    "hidden departures": (set_key("summary.json", "departures", {}), "departures"),
    "fewer bytes sent down": (set_key("summary.json", "bytes_down", 1), "bytes_down"),
    "another title": (set_key("summary.json", "title", "FedHCA²"), "title is 'FedHCA²', expected 'FedAvg'"),
    "other defaults": (set_key("summary.json", "default_options", {"shared": "none"}), "default_options"),
    "other options": (set_key("summary.json", "options", {"shared": "encoder"}), "options"),
    "fewer bytes": (set_key("summary.json", "bytes_up", 1), "bytes_up is 1, but the rounds add up to"),
    "another seed": (set_key("summary.json", "seed", 7), "seed is 7, but config.yaml says 0"),
    "another manifest": (set_key("manifest.json", "config_hash", "0"), "another config"),
    "no manifest": (remove("manifest.json"), "no manifest.json"),
    "no config": (remove("config.yaml"), "no config.yaml"),
    "not finished": (remove("summary.json"), "not finished"),
    "a lost round": (drop_a_round, "has 1 rows, expected one for each of 2 rounds"),
    "a client less": (
        lambda run: edit(run / "summary.json", lambda s: s["clients"].pop()),
        "are not among the clients",
    ),
    "a broken record": (lambda run: (run / "cost.json").rename(run / "notes.txt"), "no file of a run's records"),
    "nonsense": (lambda run: (run / "summary.json").write_text("{"), "cannot be read"),
}


@pytest.mark.parametrize("how", DOCTORED)
def test_a_doctored_run_is_refused(how, touched, capsys):
    doctor, reason = DOCTORED[how]
    doctor(touched)
    assert reason in verdict(touched, capsys)


def test_a_config_that_hides_what_differs_from_its_preset_is_refused(touched, capsys):
    """All files agree with each other: only the preset itself tells."""
    from fmtlbench.runs.folder import RunFolder

    lines = (touched / "config.yaml").read_text().splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("departures:"))
    stop = next(i for i, line in enumerate(lines) if i > start and not line.startswith((" ", "-")))
    (touched / "config.yaml").write_text("".join([*lines[:start], "departures: {}\n", *lines[stop:]]))
    config_hash = RunFolder(touched).run_config().hash()
    set_key("summary.json", "departures", {})(touched)
    set_key("summary.json", "config_hash", config_hash)(touched)
    set_key("manifest.json", "config_hash", config_hash)(touched)
    assert "departures from preset nano are {}, but the values differ from it in" in verdict(touched, capsys)


def test_nothing_is_packed_that_would_be_refused(touched, tmp_path, capsys):
    doctor_summary(touched)
    assert main(["submit", str(tmp_path / "runs"), "-o", str(tmp_path / "out.zip")]) == 1
    assert "not those of the last round" in capsys.readouterr().err
    assert not (tmp_path / "out.zip").exists()


def test_a_method_of_ones_own_travels_as_a_file_and_is_not_executed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "duo.yml").write_text(DUO)
    (tmp_path / "mine.py").write_text(OWN_METHOD)
    given = {"rounds": 1, "out": tmp_path / "runs", "device": "cpu", "energy": False, "keep": "none"}
    fmtlbench.run(str(tmp_path / "mine.py"), tmp_path / "duo.yml", **given, **TINY)
    assert main(["submit", "runs", "-o", "mine.zip"]) == 0
    (tmp_path / "mine.py").write_text("raise SystemExit('executed')")
    capsys.readouterr()
    assert main(["verify", "mine.zip", "-o", "out"]) == 0
    assert "code of its author's, to be read: mine.py" in capsys.readouterr().out
    (kept,) = (tmp_path / "out").rglob("mine.py")
    assert kept.read_text() == OWN_METHOD
    assert main(["submit", "out", "-o", "again.zip"]) == 0  # with the code that came along, not what lies there now
    assert main(["submit", "runs", "-o", "other.zip"]) == 1
    assert "is not there as it was then" in capsys.readouterr().err
    with zipfile.ZipFile("mine.zip") as packed:
        entries = {name: packed.read(name) for name in packed.namelist()}
    contents = json.loads(entries[CONTENTS])
    (entry,) = contents["runs"]
    code = f"runs/{entry['folder']}/code/mine.py"
    entries[code] += b"# and more\n"
    entry["files"]["code/mine.py"] = hashlib.sha256(entries[code]).hexdigest()
    entries[CONTENTS] = json.dumps(contents).encode()
    write_zip("mine.zip", entries)
    assert main(["verify", "mine.zip"]) == 1
    assert "not the files that config.yaml says it was trained by" in capsys.readouterr().out


def test_a_metric_from_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "duo.yml").write_text(DUO)
    (tmp_path / "metric.py").write_text(OWN_METRIC)
    given = {"rounds": 1, "out": tmp_path / "runs", "device": "cpu", "energy": False, "keep": "none"}
    own = {"evaluation.metrics.depth": str(tmp_path / "metric.py")}
    fmtlbench.run("local", tmp_path / "duo.yml", **given, **TINY, **own)
    assert main(["submit", str(tmp_path / "runs"), "-o", str(tmp_path / "out.zip")]) == 1
    assert "metric mine: from a file" in capsys.readouterr().err


# -- the file itself ---------------------------------------------------------------------------------------------------


def write_zip(file, entries):
    with zipfile.ZipFile(file, "w") as packed:
        for name, content in entries.items():
            packed.writestr(name, content)


@pytest.fixture
def packed(runs, tmp_path, capsys):
    """A good submission's file, and its entries."""
    file = tmp_path / "good.zip"
    assert main(["submit", str(runs), "-o", str(file)]) == 0
    capsys.readouterr()
    with zipfile.ZipFile(file) as archive:
        return file, {name: archive.read(name) for name in archive.namelist()}


def refusal(file, capsys):
    assert main(["verify", str(file)]) == 1
    return capsys.readouterr().err


def test_a_changed_file_is_refused(packed, capsys):
    file, entries = packed
    name = next(name for name in entries if name.endswith("cost.json"))
    write_zip(file, {**entries, name: entries[name] + b" "})
    assert "cost.json has changed since it was packed" in refusal(file, capsys)


def test_what_is_not_listed_or_not_there_is_refused(packed, capsys):
    file, entries = packed
    write_zip(file, {**entries, "runs/a/b/c/more.txt": b""})
    assert "'runs/a/b/c/more.txt' is in it, but not listed" in refusal(file, capsys)
    name = next(name for name in entries if name.endswith("cost.json"))
    write_zip(file, {key: content for key, content in entries.items() if key != name})
    assert "is listed, but not in it" in refusal(file, capsys)


@pytest.mark.parametrize(
    "folder, name",
    [("../x/y", "summary.json"), ("a/../..", "summary.json"), ("a/b/c", "../../../../x"), ("/a/b", "summary.json"),
     ("a/b", "summary.json"), ("a\\b/c/d", "summary.json"), ("a/b/c", "x/summary.json"), ("a/b/.git", "summary.json"),
     ("C:/a/b", "summary.json")],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(folder, name, tmp_path, capsys):
    file = tmp_path / "bad.zip"
    digest = hashlib.sha256(b"{}").hexdigest()
    contents = {"format": 1, "fmtlbench": "0", "by": None, "runs": [{"folder": folder, "files": {name: digest}}]}
    write_zip(file, {CONTENTS: json.dumps(contents), f"runs/{folder}/{name}": b"{}"})
    assert "is no name of a file of a run" in refusal(file, capsys)


def test_files_that_are_no_submissions_are_refused(packed, tmp_path, capsys):
    file, entries = packed
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert "no submission, or damaged" in refusal(file, capsys)
    file.write_bytes(whole[:400] + bytes(200) + whole[600:])
    assert "damaged" in refusal(file, capsys)
    file.write_text("hello")
    assert "no submission" in refusal(file, capsys)
    write_zip(file, {"a.txt": b""})
    assert f"no {CONTENTS} in it" in refusal(file, capsys)
    write_zip(file, {CONTENTS: b"[1]"})
    assert CONTENTS in refusal(file, capsys)
    write_zip(file, {CONTENTS: b"{"})
    assert "cannot be read" in refusal(file, capsys)
    contents = json.loads(entries[CONTENTS])
    write_zip(file, {**entries, CONTENTS: json.dumps({**contents, "format": 2})})
    assert "newer than this version's 1" in refusal(file, capsys)
    write_zip(file, {CONTENTS: json.dumps({**contents, "runs": []})})
    assert "no run in it" in refusal(file, capsys)
    assert main(["verify", str(tmp_path / "none.zip")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_files_that_would_fill_the_disk_are_refused(packed, capsys):
    file, entries = packed
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(CONTENTS, entries[CONTENTS])
        archive.writestr("runs/a/b/c/sums.npz", bytes(MOST_BYTES + 1), zipfile.ZIP_DEFLATED)
    assert "unpacks to more than" in refusal(file, capsys)


def test_sums_that_would_fill_memory_are_refused(touched, capsys):
    content = io.BytesIO()
    np.savez_compressed(content, **{"a/b/c/d": np.zeros(MOST_BYTES // 8 + 100)})
    (touched / "sums.npz").write_bytes(content.getvalue())
    assert "unpacks to" in verdict(touched, capsys)


def test_sums_that_are_objects_are_not_unpickled(touched, capsys):
    content = io.BytesIO()
    np.savez_compressed(content, **{"a/b/c/d": np.array([print], dtype=object)})
    (touched / "sums.npz").write_bytes(content.getvalue())
    assert "sums.npz cannot be read" in verdict(touched, capsys)


def test_usage(runs, tmp_path, capsys):
    assert main(["submit", str(tmp_path), "-o", str(tmp_path / "a.zip")]) == 2
    assert "no run in it" in capsys.readouterr().err
    assert main(["submit", str(runs), "-o", str(tmp_path / "no" / "a.zip")]) == 2
    capsys.readouterr()
    (run,) = (runs / "duo" / "fedavg").iterdir()
    shutil.copytree(run, tmp_path / "copy" / run.name)
    assert main(["submit", str(run), str(tmp_path / "copy"), "-o", str(tmp_path / "a.zip")]) == 1
    assert "another run given has the same name" in capsys.readouterr().err
