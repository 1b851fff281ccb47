"""The commit that the package lies at: found where there is one, and never a reason to fail."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from fmtlbench.runs.git_state import read_git_state


def git(folder, *words):
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def code(tmp_path):
    """A package with a sibling folder, in no repository yet."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    for folder in ("package", "beside", "docs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file.py").write_text("x = 1\n")
    return tmp_path


def state(code):
    return read_git_state([code / "package", code / "beside"])


def commit_all(code):
    git(code, "init", "-q")
    git(code, "add", "-A")
    git(code, "commit", "-q", "-m", "first")
    return git(code, "rev-parse", "HEAD")


def test_no_repository(code):
    assert state(code) == (None, None)


def test_clean_then_edited(code):
    commit = commit_all(code)
    assert state(code) == (commit, True)
    (code / "docs" / "file.py").write_text("x = 2\n")  # not of the package
    assert state(code) == (commit, True)
    (code / "beside" / "file.py").write_text("x = 2\n")
    assert state(code) == (commit, False)


def test_a_new_file_that_git_does_not_know_is_not_clean(code):
    commit = commit_all(code)
    (code / "package" / "new.py").write_text("")
    assert state(code) == (commit, False)


def test_a_repository_that_does_not_track_the_package(code):
    git(code, "init", "-q")
    git(code, "add", "docs")
    git(code, "commit", "-q", "-m", "somebody's project around an environment")
    assert state(code) == (None, None)


def test_a_repository_without_a_commit(code):
    git(code, "init", "-q")
    git(code, "add", "-A")
    assert state(code) == (None, None)


def test_no_git(code, monkeypatch):
    commit_all(code)
    monkeypatch.setenv("PATH", str(code))
    assert state(code) == (None, None)


def test_the_repository_of_a_hook_is_not_asked(code, monkeypatch):
    commit = commit_all(code)
    monkeypatch.setenv("GIT_DIR", str(code / "nowhere"))
    assert state(code) == (commit, True)
