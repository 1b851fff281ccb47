"""What -o may name: a file is replaced in one step, links are followed, devices and FIFOs are written to."""

from __future__ import annotations

import argparse
import os
import stat
import threading
from pathlib import Path

import pytest
from made_runs import ST_MT_1, write_run

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.files import check_folder, check_output, replace_file, write_json, write_output, write_output_text
from fmtlbench.cli import build_parser, main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, FIFOs and links as POSIX has them")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for algorithm, seed in (("local", 0), ("local", 1), ("fedavg", 0), ("fedavg", 1)):
        write_run(folder / "runs", algorithm=algorithm, seed=seed, clients=ST_MT_1, scenario="st_mt_1")
    return folder / "runs"


@pytest.fixture
def full(tmp_path):
    """A device that is always full; one of our own where we may make one, so that a mistake costs nothing."""
    if not Path("/dev/full").is_char_device():
        pytest.skip("no /dev/full here")
    device = tmp_path / "full.png"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        device.open("wb").close()
    except OSError:
        device.unlink(missing_ok=True)
        device.symlink_to("/dev/full")
    return device


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def kind(path):
    return stat.S_IFMT(path.stat().st_mode)


def read_in_background(fifo):
    found = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    return reader, found


# -- the writer --------------------------------------------------------------------------------------------------------


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "deep").mkdir()
    target, link, second = tmp_path / "deep" / "target", tmp_path / "link", tmp_path / "second"
    target.write_text("old")
    link.symlink_to("deep/target")
    second.symlink_to("link")
    write_output_text(second, "new")
    assert target.read_text() == "new" and link.is_symlink() and second.is_symlink()
    dangling = tmp_path / "dangling"
    dangling.symlink_to("deep/later")
    write_output_text(dangling, "made")
    assert (tmp_path / "deep" / "later").read_text() == "made" and dangling.is_symlink()
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["later", "target"]


def test_a_replaced_file_keeps_its_permissions_and_a_long_name_will_do(tmp_path):
    file = tmp_path / ("n" * 255)
    write_output_text(file, "old")
    file.chmod(0o600)
    write_output_text(file, "new")
    assert file.read_text() == "new" and stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_may_not_be_written_stays(tmp_path, monkeypatch):
    file = tmp_path / "a"
    file.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everything
    with pytest.raises(FmtlbenchError, match=r"could not write .*a: Permission denied") as caught:
        write_output_text(file, "new")
    assert not isinstance(caught.value, UsageError)
    assert file.read_text() == "old" and listed(tmp_path) == ["a"]


def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path, full):
    file = tmp_path / "a"
    file.write_text("old")

    def fill(temporary):
        temporary.write_text("half")
        with full.open("wb", buffering=0) as stream:
            stream.write(b"x")

    with pytest.raises(FmtlbenchError, match=r"could not write .*a: No space left on device"):
        write_output(file, fill)
    assert file.read_text() == "old" and listed(tmp_path) == ["a", "full.png"]


def test_a_device_and_a_fifo_are_written_to(tmp_path, full):
    before = kind(full)
    with pytest.raises(FmtlbenchError, match="No space left on device"):
        write_output_text(full, "text")
    assert kind(full) == before == stat.S_IFCHR
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader, found = read_in_background(fifo)
    write_output(fifo, lambda temporary: temporary.write_bytes(b"\0bytes"))
    reader.join(10)
    assert found == [b"\0bytes"] and kind(fifo) == stat.S_IFIFO
    with pytest.raises(OSError, match="not a regular file"):  # in the place of a file of ours, which nobody reads
        replace_file(fifo, lambda temporary: temporary.write_bytes(b""))
    assert listed(tmp_path) == ["fifo", "full.png"]


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no /dev/fd here")
def test_an_open_file_is_gone_on_with(tmp_path):
    file = tmp_path / "log"
    with file.open("wb", buffering=0) as stream:
        stream.write(b"first ")
        inode = file.stat().st_ino
        write_output_text(f"/dev/fd/{stream.fileno()}", "second ")
        stream.write(b"third")
    assert file.read_bytes() == b"first second third" and file.stat().st_ino == inode


def test_a_dash_is_the_standard_output(tmp_path, capsysbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_output("-", lambda temporary: temporary.write_bytes(b"\x89PNG"))
    assert capsysbinary.readouterr().out == b"\x89PNG" and not listed(tmp_path)


def test_wrong_kinds_are_told_in_one_line(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nothing").symlink_to("no/where")
    for path, said in (
        (tmp_path, "a folder, expected a file"),
        (tmp_path / "no" / "x", "no folder"),
        (tmp_path / "file" / "x", "no folder"),
        (tmp_path / "loop", "symbolic links"),
        (tmp_path / "nothing", "no folder .*no"),
        (tmp_path / ("n" * 300), "too long"),
        ("a\0b", "NUL"),
    ):
        with pytest.raises(FmtlbenchError, match=said) as caught:
            check_output(path)
        assert "\n" not in str(caught.value) and "\0" not in str(caught.value)
    for path, said in (
        (tmp_path / "file", "a file, expected a folder"),
        (tmp_path / "file" / "x", "a file, expected a folder"),
        (tmp_path / "nothing", "a link to nothing, expected a folder"),
        ("-", "the standard output, expected a folder"),
        ("a\0b", "NUL"),
    ):
        with pytest.raises(UsageError, match=said):
            check_folder(path)
    assert check_folder(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    with pytest.raises(OSError, match="a folder, expected a file"):
        write_json(tmp_path, {})


# -- the commands ------------------------------------------------------------------------------------------------------


FILES = [
    ["export", "RUNS"], ["export", "RUNS", "--format", "json"], ["leaderboard", "RUNS"], ["cost", "RUNS"],
    ["stats", "--noise", "RUNS"], ["papers", "list", "fedhca2_table1_st_mt_1"],
    ["papers", "compare", "RUNS", "--published", "fedhca2_table1_st_mt_1"], ["cost", "RUNS", "--format", "json"],
    ["papers", "claims"],
]  # fmt: skip
FIGURES = [
    ["plot", "pvalues", "RUNS"], ["data", "show", "synth-nyud", "--count", "1", "--size", "32", "32"],
    ["show", "scenario", "st_mt_1"],
]  # fmt: skip
FOLDERS = [
    ["stats", "RUNS"], ["leaderboard", "RUNS", "--format", "html"],
    ["score", "--task", "depth", "--dataset", "nyud", "--pred", "x", "--gt", "y"], ["predict", "RUN"],
    ["export", "--weights", "RUN"], ["score", "x", "--name", "Mine", "--scenario", "st_mt_1"],
    ["verify", "x.zip"],
    ["papers", "reproduce", "fmtlbench_figure2", "--preset", "nano"],
]  # fmt: skip
PROBE = ["probe", "--algos", "local"]
SUBMIT = ["submit", "RUNS"]  # tests/submissions packs runs that it takes
OUT = [  # of these, --out is the folder that runs are kept in
    ["run", "--algo", "local", "--scenario", "st_mt_1"], ["bench", "--algos", "local", "--scenarios", "st_mt_1"],
    PROBE, ["papers", "reproduce", "fedhca2_figure6", "--preset", "nano"],
]  # fmt: skip


def call(command, runs, output, capsys, flag="-o"):
    places = {"RUNS": runs, "RUN": next(runs.glob("*/*/*"))}
    code = main([str(places.get(word, word)) for word in command] + [flag, str(output)])
    return code, *capsys.readouterr()


def with_output(parser, words=()):
    """Every command below a parser that has -o, as its words."""
    actions = parser._actions
    found = [words] if any("-o" in action.option_strings for action in actions) else []
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [each for name, inner in action.choices.items() for each in with_output(inner, (*words, name))]
    return found


def test_every_command_that_writes_is_tried_here():
    commands = (*FILES, *FIGURES, *FOLDERS, PROBE, SUBMIT)
    tried = {tuple(command[:length]) for command in commands for length in (1, 2)}
    found = with_output(build_parser())
    assert len(found) > 15
    assert [words for words in found if words not in tried] == []


@pytest.mark.parametrize("command", [*FILES, *FIGURES], ids=" ".join)
def test_every_command_writes_through_it(command, runs, tmp_path, full, capsys):
    target, link = tmp_path / "target.png", tmp_path / "link.png"
    target.write_text("old")
    link.symlink_to("target.png")
    code, _, err = call(command, runs, link, capsys)
    assert code == 0, err
    assert link.is_symlink() and target.read_bytes() != b"old"

    code, _, err = call(command, runs, full, capsys)
    assert code == 1 and err.endswith(f"could not write {full}: No space left on device\n"), err
    assert kind(full) == stat.S_IFCHR

    fifo = tmp_path / "fifo.png"
    os.mkfifo(fifo)
    reader, found = read_in_background(fifo)
    assert call(command, runs, fifo, capsys)[0] == 0
    reader.join(10)
    assert found == [target.read_bytes()] and kind(fifo) == stat.S_IFIFO

    (tmp_path / "folder.png").mkdir()
    code, _, err = call(command, runs, tmp_path / "folder.png", capsys)
    assert code == 2 and "a folder, expected a file" in err and len(err.splitlines()) == 1
    assert listed(tmp_path) == ["fifo.png", "folder.png", "full.png", "link.png", "target.png"]


@pytest.mark.parametrize("command", FILES, ids=" ".join)
def test_a_dash_is_no_file(command, runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = main([str(runs) if word == "RUNS" else word for word in command]), *capsys.readouterr()
    assert call(command, runs, "-", capsys) == plain and not listed(tmp_path)


@pytest.mark.parametrize("command", [*FOLDERS, *OUT], ids=lambda command: command[0])
def test_only_a_folder_is_taken_where_a_folder_belongs(command, runs, tmp_path, full, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flag = "--out" if command in OUT else "-o"
    (tmp_path / "file").write_text("old")
    os.mkfifo(tmp_path / "fifo")
    for name, target in (("link", "file"), ("nothing", "no/where"), ("loop", "loop"), ("null", "/dev/null")):
        (tmp_path / name).symlink_to(target)
    before = listed(tmp_path)
    for name, said in (
        ("file", "a file, expected a folder"),
        ("file/below", "a file, expected a folder"),
        ("link", "a file, expected a folder"),
        ("nothing", "a link to nothing, expected a folder"),
        ("loop", "Too many levels of symbolic links"),
        ("fifo", "a file, expected a folder"),
        ("null", "a file, expected a folder"),
        (full, "a file, expected a folder"),
        ("-", "the standard output, expected a folder"),
        ("a\0b", "NUL"),
    ):
        code, out, err = call(command, runs, name, capsys, flag)
        assert code in (1, 2) and out == "" and len(err.splitlines()) == 1 and said in err, (name, err)
    assert (tmp_path / "file").read_text() == "old" and listed(tmp_path) == before
    assert kind(tmp_path / "fifo") == stat.S_IFIFO


def test_a_figure_on_a_stream_needs_an_ending(runs, capsys):
    for output in ("-", "/dev/null"):
        code, out, err = call(["plot", "pvalues", "RUNS"], runs, output, capsys)
        assert code == 2 and out == "" and f"-o {output}: expected a name ending in .pdf, .png, .svg" in err
    assert not Path("/dev/null.pdf").exists()
    for output in (".", ".."):
        assert "a folder, expected a file" in call(["plot", "pvalues", "RUNS"], runs, output, capsys)[2]


@pytest.mark.parametrize("command", [PROBE, SUBMIT], ids=lambda command: command[0])
def test_nothing_begins_that_could_not_be_written(command, runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for output, said in ((".", "a folder, expected a file"), ("no/where", "no folder no"), ("a\0b", "NUL")):
        code, out, err = call(command, runs, output, capsys)
        assert code == 2 and out == "" and said in err and len(err.splitlines()) == 1
    assert not listed(tmp_path)
