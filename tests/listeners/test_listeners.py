"""Those who listen to a run: found by name, entry point or path; none of them can end it or move a byte of it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from notes import Notes

from fmtlbench import cli
from fmtlbench.base.errors import UnknownNameError, UsageError
from fmtlbench.listeners import LISTENERS, Listener, Listeners, find_listeners
from fmtlbench.runs.file_names import ROUNDS, SUMMARY
from fmtlbench.runs.find import locate_runs

OWN = '''\
from fmtlbench.listeners import LISTENERS, Listener


@LISTENERS.register("diary")
class Diary(Listener):
    """Keeps a diary."""

    def begin(self, start):
        start.logs.mkdir(exist_ok=True)
        self.file = start.logs / "diary.txt"
        self.write(f"{start.config.algorithm.name} from {start.done} to {start.rounds} in {start.folder.name}")

    def round_done(self, row, timing):
        self.write(f"round {row['round']}: {sorted(timing['seconds'])}")

    def bill(self, cost):
        self.write(f"paid {cost['bytes_up']}")

    def end(self):
        self.write("end")

    def write(self, line):
        with self.file.open("a") as file:
            file.write(line + "\\n")
'''
HOOKS = ("preparing", "begin", "step", "round_done", "note", "bill", "end")


class Recorder(Listener):
    def __init__(self):
        self.told = []

    def __getattribute__(self, name):
        if name in HOOKS:
            return lambda *what: self.told.append(name)
        return super().__getattribute__(name)


def failing(hook, error):
    """A listener that fails when it is told `hook`."""

    def fail(self, *what):
        raise error

    return type("Failing", (Listener,), {hook: fail, "name": "failing"})


def tell(listener, hook):
    """Call a hook, with as many words as it takes."""
    getattr(listener, hook)(*["x"] * len(inspect.signature(getattr(Listener(), hook)).parameters))


def files_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (ROUNDS, SUMMARY)}


@pytest.fixture
def own(tmp_path) -> str:
    path = tmp_path / "diary.py"
    path.write_text(OWN)
    return str(path)


# -- found by name, entry point or path ------------------------------------------------------------------------------


def test_the_built_in_ones():
    assert list(LISTENERS) == ["bars", "json_lines", "notebook", "tensorboard", "wandb"]
    assert all(issubclass(kind, Listener) and kind.name == name for name, kind in LISTENERS.items())


def test_an_entry_point_joins(tmp_path):
    """An installed package, as far as Python can tell: its code and its metadata lie on the path."""
    package = tmp_path / "mine-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[fmtlbench.listeners]\ndiary = diary:Diary\n")
    (tmp_path / "diary.py").write_text(OWN)
    code = "from fmtlbench.listeners import find_listeners; print([k.name for k in find_listeners(['diary', 'bars'])])"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "['diary', 'bars']"


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("run", ["--algo", "local", "--scenario", "st_mt_1"]),
        ("bench", ["--algos", "local", "--scenarios", "st_mt_1"]),
        ("probe", []),
    ],
)
def test_an_unknown_name_is_told_before_anything_runs(verb, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main([verb, *words, "--log", "bars,tensorbord"]) == 2
    assert "--log: no listener 'tensorbord'; did you mean 'tensorboard'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_listener_is_refused(tmp_path):
    (tmp_path / "odd.py").write_text(
        "from fmtlbench.listeners import LISTENERS\n@LISTENERS.register('odd')\nclass Odd: pass\n"
    )
    with pytest.raises(UsageError, match=r"--log: Odd is not a subclass of fmtlbench\.listeners\.Listener"):
        find_listeners([str(tmp_path / "odd.py")])
    with pytest.raises(UsageError, match=r"--log: no such file: .*even\.py"):
        find_listeners([str(tmp_path / "even.py")])
    with pytest.raises(UnknownNameError):
        find_listeners(["odd"])


# -- several as one --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("error", [ValueError("a\nb"), OSError("disk full"), SystemExit(3)])
def test_one_that_fails_is_dropped_with_one_note(hook, error):
    bad, notes, recorder = failing(hook, error)(), Notes(), Recorder()
    many = Listeners([bad, notes, recorder])
    for _ in range(2):
        tell(many, hook)
    warnings = [note for note in notes.told if note != "x"]
    reason = " ".join(str(error).split())
    assert warnings == [f"--log failing: {type(error).__name__}: {reason}; the run goes on without it"]
    assert many.members == [notes, recorder] and recorder.told.count(hook) >= 2


def test_one_that_is_dropped_may_close_what_it_holds():
    ended = []
    kind = type("Holding", (failing("step", ValueError("no")),), {"end": lambda self: ended.append(self)})
    many = Listeners([kind(), Notes()])
    tell(many, "step")
    tell(many, "end")
    assert len(ended) == 1


def test_a_keyboard_interrupt_passes():
    many = Listeners([failing("step", KeyboardInterrupt())(), Notes()])
    with pytest.raises(KeyboardInterrupt):
        tell(many, "step")
    assert len(many.members) == 2


def test_where_nobody_speaks_the_process_warns():
    with pytest.warns(UserWarning, match="--log failing: ValueError: no"):
        Listeners([failing("end", ValueError("no"))(), Listener()]).end()


def test_all_may_fail():
    many = Listeners([failing("note", ValueError("no"))() for _ in range(3)])
    with pytest.warns(UserWarning, match="--log failing"):
        many.note("anything")
    assert many.members == []


def test_one_that_does_not_start_is_left_out():
    notes = Notes()
    many = Listeners([notes])
    many.add(failing("__init__", RuntimeError("no server")))
    many.add(Notes)  # there is one already
    assert many.members == [notes]
    assert notes.told == ["--log failing: RuntimeError: no server; the run goes on without it"]


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "tensorboard"), ("wandb", "wandb")])
def test_a_missing_package_names_the_extra(name, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    notes = Notes()
    many = Listeners([notes])
    many.add(LISTENERS[name])
    (note,) = notes.told
    assert f"--log {name}: " in note and f"pip install 'fmtlbench[{name}]'" in note and many.members == [notes]


# -- in a run --------------------------------------------------------------------------------------------------------


def test_a_run_tells_its_listener_and_stays_as_it_is(tiny_run, shared_run, own, tmp_path):
    plain = shared_run("fedavg", rounds=2)
    told = tiny_run("fedavg", rounds=2, out=tmp_path / "told", log=own)
    assert files_of(told.folder) == files_of(plain.folder)
    assert told.folder.name == plain.folder.name
    first, *rounds, paid, end = (told.folder / "logs" / "diary.txt").read_text().splitlines()
    assert first == f"fedavg from 0 to 2 in {told.folder.name}" and len(rounds) == 2 and end == "end"
    assert paid == f"paid {told.summary['bytes_up']}"
    assert not (plain.folder / "logs").exists()
    assert [folder for folder, _ in locate_runs([tmp_path / "told"])[0]] == [told.folder]
    tiny_run("fedavg", rounds=2, out=tmp_path / "told", fresh=True)  # what was logged of the old run goes with it
    assert not (told.folder / "logs").exists()


def test_a_listener_that_fails_costs_a_warning_and_no_byte(tiny_run, shared_run, own, tmp_path):
    plain = shared_run("local", rounds=2)
    Path(own).write_text(OWN.replace("round {row['round']}", "round {row['number']}"))
    notes = Notes()
    told = tiny_run("local", rounds=2, out=tmp_path / "told", log=[own], progress=notes)
    assert files_of(told.folder) == files_of(plain.folder)
    assert [note for note in notes.told if "diary" in note] == [
        "--log diary: KeyError: 'number'; the run goes on without it"
    ]


@pytest.mark.slow
def test_a_bench_hands_it_to_its_runs(own, tmp_path, scenario_file, tiny_flags):
    out = tmp_path / "runs"
    words = [
        "bench",
        "--algos",
        "local",
        "--scenarios",
        scenario_file,
        "--rounds",
        "1",
        "--out",
        str(out),
        "--log",
        own,
    ]
    assert cli.main([*words, "--device", "cpu", "--format", "json", *tiny_flags]) == 0
    (run,) = [folder for folder, _ in locate_runs([out])[0]]
    assert (run / "logs" / "diary.txt").read_text().endswith("end\n")


def test_json_lines_stay_single(tmp_path, scenario_file, tiny_flags, capsys):
    words = ["run", "--algo", "local", "--scenario", scenario_file, "--rounds", "1", "--out", str(tmp_path)]
    assert cli.main([*words, "--device", "cpu", "--log", "json_lines", *tiny_flags]) == 0
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert [event for event in events if event != "note"] == ["begin", "round", "bill"]
