"""An edited file makes another run: shown, continued and recorded by the code that made it."""

from __future__ import annotations

import json
import shlex

import pytest
from copied_package import package  # noqa: F401  (a fixture)
from interrupt import AfterRound, Stopped
from notes import Notes

from fmtlbench.engine import run as engine_run
from fmtlbench.runs.code_identity import Sources
from fmtlbench.runs.configured_code import code_of

EDIT = "\nADDED = 1\n"


def about_code(notes):
    return [text for text in notes.told if "other code" in text]


@pytest.fixture
def run(tiny_run, package, monkeypatch):  # noqa: F811
    """A tiny run whose code is read from the copied files as they are at that moment."""
    monkeypatch.setattr(engine_run, "code_of", lambda config: code_of(config, Sources()))
    return lambda *args, **given: tiny_run(*args, rounds=given.pop("rounds", 2), **given)


def summary_of(result):
    return json.loads((result.folder / "summary.json").read_text())


def manifest_of(result):
    return json.loads((result.folder / "manifest.json").read_text())


def test_an_edited_method_makes_a_second_folder(run, package):  # noqa: F811
    first = run("fedper")
    package.edit("algorithms/fedper.py", '"""FedPer', '"""Said otherwise: FedPer')
    package.append("engine/client.py", "# a comment\n")
    assert run("fedper").reused
    package.append("algorithms/fedper.py", EDIT)
    notes = Notes()
    second = run("fedper", progress=notes)
    suffix = second.summary["code"]["sha256"][:6]
    assert not second.reused and second.folder == first.folder.with_name(f"{first.folder.name}-{suffix}")
    assert about_code(notes) == [
        f"{first.folder} was made by other code (method: fedper.py changed); this run goes to {second.folder}; "
        "--reuse any shows the old one"
    ]
    quiet = Notes()
    again = run("fedper", progress=quiet)
    assert again.reused and again.folder == second.folder and about_code(quiet) == []
    assert run("local").folder.name.count("-") == first.folder.name.count("-")  # another method, another file
    # The config is the same, and so are the numbers: the edit did nothing.
    one, two = summary_of(first), summary_of(second)
    assert one["code"]["parts"].pop("method") != two["code"]["parts"].pop("method")
    assert one["code"]["parts"] == two["code"]["parts"]
    assert {**one, "code": None} == {**two, "code": None}


@pytest.mark.parametrize(
    ("file", "told"), [("metrics/miou.py", "metrics: miou.py"), ("engine/optim.py", "engine: optim.py")]
)
def test_an_edited_metric_or_engine_does_too(run, package, file, told):  # noqa: F811
    first = run("local", rounds=1)
    package.append(file, EDIT)
    notes = Notes()
    second = run("local", rounds=1, progress=notes)
    assert second.folder != first.folder and f"({told} changed)" in about_code(notes)[0]


def test_any_shows_the_newest_and_says_so(run, package):  # noqa: F811
    first = run("fedper", rounds=1)
    package.append("algorithms/fedper.py", EDIT)
    notes = Notes()
    shown = run("fedper", rounds=1, reuse="any", progress=notes)
    assert shown.reused and shown.folder == first.folder
    assert about_code(notes) == [
        f"{first.folder} was made by other code (method: fedper.py changed) and is shown, as --reuse any asks for"
    ]


@pytest.mark.usefixtures("checkpoints_stay")
def test_an_unfinished_run_by_other_code_is_left_or_continued(run, package):  # noqa: F811
    with pytest.raises(Stopped):
        run("fedper", rounds=3, progress=AfterRound(1))
    package.append("algorithms/fedper.py", EDIT)
    notes = Notes()
    own = run("fedper", rounds=3, progress=notes)
    assert "--reuse any continues the old one" in about_code(notes)[0]
    assert len(manifest_of(own)["sessions"]) == 1 and "earlier" not in own.summary["code"]
    package.append("algorithms/fedper.py", "\nAGAIN = 1\n")
    own.folder.joinpath("summary.json").unlink()  # only unfinished ones are left
    continued = run("fedper", rounds=3, reuse="any", progress=Notes())
    sessions = manifest_of(continued)["sessions"]
    code = continued.summary["code"]
    assert len(sessions) == 2 and code["sha256"] == sessions[-1]["code"]["sha256"]
    assert [one["sha256"] for one in code.get("earlier", [])] == [sessions[0]["code"]["sha256"]]
    later = Notes()
    assert not run("fedper", rounds=3, progress=later).reused  # by one code, which neither of the two is


def test_a_run_of_before_codes_were_recorded_is_by_other_code(run):
    first = run("local", rounds=1)
    for name in ("summary.json", "manifest.json"):
        file = first.folder / name
        record = json.loads(file.read_text())
        record.pop("code", None)
        for session in record.get("sessions", []):
            session.pop("code")
        file.write_text(json.dumps(record))
    notes = Notes()
    second = run("local", rounds=1, progress=notes)
    assert not second.reused and "was made by other code (which was not recorded)" in about_code(notes)[0]
    shown = run("local", rounds=1, reuse="any")
    assert shown.folder == second.folder  # the newest finished one


def test_a_manifest_tells_the_code_and_a_command_that_repeats_the_run(tiny_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = tiny_run("local", rounds=1)
    (session,) = manifest_of(result)["sessions"]
    code = session["code"]
    assert list(code) == ["sha256", "parts", "version", "commit", "clean", "files"]
    assert code["version"] == session["versions"]["fmtlbench"]
    assert (code["commit"] is None) == (code["clean"] is None)
    assert result.summary["code"] == {"sha256": code["sha256"], "parts": code["parts"]}
    assert "algorithms/local.py" in code["files"]["method"]
    words = shlex.split(session["command"])
    assert words[:4] == ["fmtlbench", "run", "--algo", "local"] and words[words.index("--out") + 1] == "runs"

    from fmtlbench.api import launch
    from fmtlbench.cli import build_parser
    from fmtlbench.cli._request import request_from

    assert launch(request_from(build_parser().parse_args(words[1:]))).folder.resolve() == result.folder
