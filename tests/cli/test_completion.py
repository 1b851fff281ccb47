"""What a shell completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from fmtlbench.cli import VERBS, main
from fmtlbench.cli.completion import SHELLS


def complete(line: str) -> list[str]:
    """Ask as a shell does: the answer comes on file descriptor 8."""
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SHELL": "bash", "COMP_TYPE": "9"}
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": ""}
    read, write = os.pipe()
    code = "import os, sys; os.dup2(int(sys.argv.pop(1)), 8); from fmtlbench.cli import main; main()"
    with os.fdopen(read) as answer:
        subprocess.run(
            [sys.executable, "-c", code, str(write)],
            env={k: v for k, v in {**os.environ, **asked}.items() if v},
            pass_fds=(write,),
            check=True,
            timeout=120,
        )
        os.close(write)
        return [word.strip() for word in answer.read().split("\n") if word.strip()]


def test_verbs_are_completed():
    assert set(complete("fmtlbench ")) >= {*VERBS}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("fmtlbench run --algo fedh", "fedhca2"),
        ("fmtlbench bench --algos local,fedp", "local,fedper"),
        ("fmtlbench bench --algos local,fedavg+gradn", "local,fedavg+gradnorm"),
        ("fmtlbench run --algo local --scenario st_mt_2", "st_mt_2"),
        ("fmtlbench run --preset na", "nano"),
        ("fmtlbench leaderboard --sp", "--split"),
    ],
)
def test_names_and_flags_are_completed(line, word):
    assert word in complete(line)


@pytest.mark.parametrize("shell", SHELLS)
def test_code_for_every_shell(shell, capsys):
    assert main(["completion", shell]) == 0
    code = capsys.readouterr().out
    assert "fmtlbench" in code
    if shell == "bash" and shutil.which("bash"):
        subprocess.run(["bash", "-n"], input=code, text=True, check=True)
