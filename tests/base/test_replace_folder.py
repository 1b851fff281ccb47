"""Folders that are replaced as a whole: whatever happens, the old one or the new one is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from fmtlbench.base.files import replace_folder

DAY = 24 * 3600


def fill(folder, name, **how):
    with replace_folder(folder, **how) as new:
        (new / name).write_text(name)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_replaces_all_of_the_old(tmp_path):
    fill(tmp_path / "a" / "p", "one")
    fill(tmp_path / "a" / "p", "two")
    assert names(tmp_path / "a" / "p") == ["two"] and names(tmp_path / "a") == ["p"]


def test_what_a_link_points_at_is_replaced(tmp_path):
    fill(tmp_path / "real", "one")
    (tmp_path / "link").symlink_to("real")
    fill(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink() and names(tmp_path / "real") == ["two"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_keeps_all_of_the_old(tmp_path, error):
    fill(tmp_path / "p", "one")
    with pytest.raises(type(error)), replace_folder(tmp_path / "p") as new:
        (new / "half").write_text("")
        raise error
    assert names(tmp_path / "p") == ["one"] and names(tmp_path) == ["p"]


def test_a_failing_second_rename_is_undone(tmp_path, monkeypatch):
    fill(tmp_path / "p", "one")
    rename = type(tmp_path).rename

    def refuse(self, target):
        if self.suffix == ".tmp":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(type(tmp_path), "rename", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        fill(tmp_path / "p", "two")
    assert names(tmp_path / "p") == ["one"] and names(tmp_path) == ["p"]


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path):
    fill(tmp_path / "p", "one")
    code = (
        "import os, sys, pathlib\n"
        "from fmtlbench.base.files import replace_folder\n"
        "rename = pathlib.Path.rename\n"
        "def kill(self, target):\n"
        "    os.kill(os.getpid(), 9) if self.suffix == '.tmp' else rename(self, target)\n"
        "pathlib.Path.rename = kill\n"
        "with replace_folder(sys.argv[1]) as new:\n"
        "    (new / 'two').write_text('')\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p")], timeout=60)
    assert killed.returncode == -signal.SIGKILL and not (tmp_path / "p").exists()
    with pytest.raises(KeyError), replace_folder(tmp_path / "p", alone=True):
        raise KeyError
    assert names(tmp_path / "p") == ["one"] and names(tmp_path) == ["p"]


def test_what_was_never_finished_is_removed_when_nobody_can_be_at_it(tmp_path):
    for name, age in ((".p.1-a.tmp", DAY + 60), (".p.2-b.tmp", 60), (".other.1-a.tmp", DAY + 60)):
        (tmp_path / name).mkdir()
        now = (tmp_path / name).stat().st_mtime
        os.utime(tmp_path / name, (now - age, now - age))
    fill(tmp_path / "p", "one")
    assert names(tmp_path) == [".other.1-a.tmp", ".p.2-b.tmp", "p"]
    fill(tmp_path / "p", "two", alone=True)
    assert names(tmp_path) == [".other.1-a.tmp", "p"]


@pytest.mark.parametrize(("good", "left"), [(True, ["faster"]), (False, ["slower"])])
def test_a_faster_process_s_folder_stays_if_it_is_as_good(tmp_path, good, left):
    with replace_folder(tmp_path / "p", keeps=lambda there: good) as new:
        (new / "slower").write_text("")
        fill(tmp_path / "p", "faster")
    assert names(tmp_path / "p") == left and names(tmp_path) == ["p"]
