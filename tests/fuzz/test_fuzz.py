"""Whatever is asked: success, or one line and exit code 1 or 2. Never a traceback, a hang, or a way out of the folder.

$FMTLBENCH_FUZZ sets the number of examples of each kind; benchmarks/fuzz.py runs thousands and counts.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from cases import FINE, run_command
from commands import COMMANDS
from faulty import Patient, hook_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("FMTLBENCH_FUZZ", "8"))
# Derandomised: a suite that fails must fail again. More examples by the variable are other ones.
SETTINGS = settings(
    max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, print_blob=False,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_command_succeeds_or_is_refused_in_one_line(kind):
    @SETTINGS
    @given(COMMANDS[kind])
    def check(case):
        with tempfile.TemporaryDirectory() as folder:
            outcome, said = run_command(case, Path(folder))
        assert outcome in FINE, f"{outcome}: {said}"

    check()


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    return Patient(tmp_path_factory.mktemp("faulty"))


def test_a_hook_s_answer_is_taken_or_refused_in_one_line(patient):
    @settings(SETTINGS, max_examples=3 * EXAMPLES)
    @given(hook_cases())
    def check(case):
        outcome, said = patient.try_case(case)
        assert outcome in FINE, f"{outcome}: {said}"

    check()


def test_a_case_that_goes_well_is_told_from_one_that_does_not(patient, tmp_path):
    """The oracle itself: every outcome is recognised."""
    from cases import Case, judge
    from faulty import HookCase

    assert run_command(Case("x", ("list", "presets")), tmp_path)[0] == "ok"
    assert run_command(Case("x", ("show", "scenario", "nowhere.yml")), tmp_path)[0] == "refused"
    assert run_command(Case("x", ("no-such-verb",)), tmp_path)[0] == "refused"
    assert judge(1, "", "one\ntwo\n")[0] == judge(3, "", "fmtlbench: x\n")[0] == "untidy"
    assert judge(0, '{"runs": [{"folder": "runs/../../up"}]}', "")[0] == "escaped"
    assert patient.try_case(HookCase("diagnostics", {"x": 1}, "value", None))[0] == "ok"
    slow = HookCase("diagnostics", type("Endless", (Exception,), {"__init__": lambda *given: wait()}), "raise", None)
    assert patient.try_case(slow, deadline=0.5)[0] == "hang"


def wait():
    while True:
        pass


def test_examples_are_found(tmp_path):
    """Both outcomes occur, so that neither the generators nor the checks are trivial."""
    seen = set()

    @settings(SETTINGS, max_examples=25)
    @given(st.one_of(COMMANDS["name"], COMMANDS["output"]))
    def collect(case):
        with tempfile.TemporaryDirectory() as folder:
            seen.add(run_command(case, Path(folder))[0])

    collect()
    assert seen == {"ok", "refused"}
