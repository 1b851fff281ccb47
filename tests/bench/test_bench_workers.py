"""The loop over processes: what is run, tried again, left, shared with others, and said."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_bench import summary_text
from rich.console import Console

from fmtlbench.bench import local_jobs, workers
from fmtlbench.bench.display import Live
from fmtlbench.bench.local_jobs import Job
from fmtlbench.bench.reservations import reserve, worked_on


def outcomes(outcome):
    return {(r.run.label, r.run.config.seed): r.outcome for r in outcome.records.values()}


def test_missing_runs_are_done_and_a_second_bench_reuses_them(bench):
    outcome = bench.work(bench.plan(seeds="0-1"))
    assert outcome.complete and outcome.stopped is None
    assert set(outcomes(outcome).values()) == {"ran"} and len(outcomes(outcome)) == 4
    assert [name for name, _ in bench.starts()] == ["local", "fedavg", "local", "fedavg"]
    again = bench.work(bench.plan(seeds="0-2"))
    assert outcomes(again) == {
        **{(label, seed): "reused" for label in ("local", "fedavg") for seed in (0, 1)},
        ("local", 2): "ran", ("fedavg", 2): "ran",
    }  # fmt: skip
    assert len(bench.starts()) == 6


@pytest.mark.parametrize(("mode", "reason"), [("fail_once", "the disk is on fire"), ("die_once", "killed by SIGKILL")])
def test_a_run_that_fails_once_is_tried_again_after_the_others(bench, mode, reason):
    outcome = bench.work(bench.plan(), {"local": mode})
    assert outcome.complete and outcomes(outcome) == {("local", 0): "ran", ("fedavg", 0): "ran"}
    assert [name for name, _ in bench.starts()] == ["local", "fedavg", "local"]
    (retry,) = [event for event in bench.events() if event["event"] == "retry"]
    assert reason in retry["error"] and retry["name"] == "local"
    record = next(r for r in outcome.records.values() if r.run.label == "local")
    assert record.attempts == 2 and record.error is None


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("fail", "the disk is on fire"),
        ("die", "killed by SIGKILL (out of memory?)"),
        ("nothing", "without a result in"),
    ],
)
def test_a_run_that_keeps_failing_is_listed_and_the_others_go_on(bench, mode, reason):
    outcome = bench.work(bench.plan(), {"local": mode}, retries=2)
    assert outcomes(outcome) == {("local", 0): "failed", ("fedavg", 0): "ran"} and not outcome.complete
    assert Counter(name for name, _ in bench.starts()) == {"local": 3, "fedavg": 1}
    record = next(r for r in outcome.records.values() if r.outcome == "failed")
    assert reason in record.error
    log = (bench.out / ".bench" / "logs").rglob("*.log")
    assert record.log in map(str, log)


def test_the_log_of_a_run_has_its_command_and_its_words(bench):
    outcome = bench.work(bench.plan("fedavg", with_local=False), {"fedavg": "fail_once"})
    (record,) = outcome.records.values()
    lines = Path(record.log).read_text().splitlines()
    assert sum(line.startswith("$ ") and "fake_run.py" in line for line in lines) == 2
    assert "fmtlbench: the disk is on fire" in lines
    assert json.loads(lines[-1])["event"] == "round"


def test_wrong_usage_is_not_tried_again(bench):
    outcome = bench.work(bench.plan(), {"fedavg": "usage"}, retries=5)
    assert outcomes(outcome) == {("local", 0): "ran", ("fedavg", 0): "failed"}
    assert len(bench.starts()) == 2


def test_jobs_run_side_by_side_and_share_the_cores(bench, monkeypatch):
    monkeypatch.setattr(local_jobs, "cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    most = []

    class Watch(workers.Display):
        def tick(self, working):
            most.append(len(working.working))

    plan = bench.plan(seeds="0-3", overrides={"train.threads": None})
    assert bench.work(plan, jobs=2, display=Watch()).complete
    assert max(most) == 2
    assert {line.split()[3] for line in bench.started.read_text().splitlines()} == {"3"}


@pytest.mark.parametrize(("threads", "jobs", "given"), [(1, 2, None), (None, 1, None), (None, 2, "5")])
def test_threads_are_left_alone_where_somebody_decided_them(bench, monkeypatch, threads, jobs, given):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    bench.work(bench.plan(overrides={"train.threads": threads}), jobs=jobs)
    assert {line.split()[3] for line in bench.started.read_text().splitlines()} == {given or "-"}


@pytest.fixture
def given(bench, monkeypatch):
    """`given(hosts)`: start a run whose process never is, and return it; `.gpu` is what it was given."""

    class Imitated:
        def __init__(self, command, log, environment, lock):
            self.gpu, self.process = environment.get("CUDA_VISIBLE_DEVICES"), SimpleNamespace(returncode=None)

    monkeypatch.setattr(local_jobs, "LocalJob", Imitated)
    run = bench.plan("local").runs[0]
    return lambda hosts: hosts.start(run, [], Path("log"), 0)


@pytest.mark.parametrize(
    ("jobs", "gpus", "dealt"),
    [(2, ["0", "1"], "0 1"), (5, ["0", "1"], "0 1 0 1 0"), (3, ["GPU-ab", "7"], "GPU-ab 7 GPU-ab"), (2, "0123", "0 1")],
)
def test_jobs_are_spread_over_the_gpus(given, jobs, gpus, dealt):
    hosts = local_jobs.LocalJobs(jobs, gpus)
    assert [given(hosts).gpu for _ in range(jobs)] == dealt.split()


def test_the_gpu_with_the_fewest_runs_gets_the_next(given):
    hosts = local_jobs.LocalJobs(4, ["0", "1"])
    first, second, third, fourth = (given(hosts) for _ in range(4))
    second.process.returncode, fourth.process.returncode = 0, -9
    assert [given(hosts).gpu for _ in range(2)] == ["1", "1"]
    first.process.returncode = third.process.returncode = 0
    assert given(hosts).gpu == "0"


@pytest.mark.parametrize(("jobs", "gpus"), [(1, ["0", "1"]), (2, ["0"]), (2, [])])
def test_gpus_are_left_alone_where_there_is_nothing_to_spread(bench, monkeypatch, jobs, gpus):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    bench.work(bench.plan(), jobs=jobs, hosts=local_jobs.LocalJobs(jobs, gpus))
    assert set(bench.gpus()) == {"5"}


def test_budget_stops_so_that_the_next_bench_goes_on(bench):
    outcome = bench.work(bench.plan(seeds="0-1"), {"fedavg": "hang_once"}, until="fedavg")
    assert outcome.stopped == "budget" and not outcome.complete
    assert outcomes(outcome) == {
        ("local", 0): "ran", ("fedavg", 0): "left", ("local", 1): "left", ("fedavg", 1): "left"
    }  # fmt: skip
    interrupted = bench.started.with_name("starts.interrupted").read_text().split()
    assert interrupted == [str(bench.pids()[-1])]  # asked to stop, once, and not killed
    plan = bench.plan(seeds="0-1")
    assert {(run.label, run.config.seed): run.state for run in plan.runs} == {
        ("local", 0): "done", ("fedavg", 0): "resume", ("local", 1): "new", ("fedavg", 1): "new"
    }  # fmt: skip
    assert plan.runs[1].rounds_done > 0


def test_a_run_that_does_not_stop_is_killed_after_a_while(bench, monkeypatch):
    monkeypatch.setattr(workers, "GRACE", 0.3)
    outcome = bench.work(bench.plan("fedavg", with_local=False), {"fedavg": "stubborn"}, until="fedavg")
    assert outcome.stopped == "budget" and outcome.count("left") == 1


def test_a_run_that_another_process_has_is_waited_for(bench):
    plan = bench.plan()
    theirs, mine = plan.runs
    held = reserve(bench.out / ".bench", theirs.key)

    class Other(workers.Display):
        def settled(self, record, working):
            if record.run is mine:  # meanwhile the other one finishes
                theirs.store.folder.mkdir(parents=True)
                (theirs.store.folder / "summary.json").write_text(summary_text(theirs))
                held.release()

    outcome = bench.work(plan, display=Other())
    assert outcome.records[theirs].outcome == "elsewhere" and outcome.complete
    assert [name for name, _ in bench.starts()] == ["fedavg"]  # not waiting, as long as there is something else to do


def test_a_run_that_another_bench_gave_up_is_done_here(bench):
    plan = bench.plan()
    held = reserve(bench.out / ".bench", plan.runs[1].key)

    class Other(workers.Display):
        def settled(self, record, working):
            if record.run is plan.runs[0]:
                held.release()

    assert set(outcomes(bench.work(plan, display=Other())).values()) == {"ran"}


def test_a_folder_that_a_plain_run_has_open_is_no_failure(bench):
    """The run's own process cannot have it; the bench waits and does not count a failure."""
    plan = bench.plan("fedavg", with_local=False)
    (run,) = plan.runs
    with run.store.opened():
        assert worked_on(run.store.folder)
        outcome = bench.work(plan, {"fedavg": "fail"}, budget=0.6)
    assert not worked_on(run.store.folder)
    assert outcome.records[run].outcome == "left" and outcome.records[run].attempts == 0
    assert len(bench.starts()) == 1  # and it is not started again and again meanwhile


def test_lines_tell_what_happens(bench):
    bench.work(bench.plan(), {"fedavg": "fail"}, retries=0)
    events = bench.events()
    assert [e["event"] for e in events if e["event"] != "round"] == ["start", "ran", "start", "failed"]
    rounds = [e for e in events if e["event"] == "round"]
    assert rounds and all(e["rounds"] == 2 and e["name"] == "local" for e in rounds)
    assert events[-1]["error"] == "the disk is on fire" and (events[-1]["settled"], events[-1]["total"]) == (2, 2)


def test_the_live_display_shows_runs_and_failures(bench, monkeypatch):
    text = io.StringIO()
    live = Live(Console(file=text, force_terminal=True, width=120))
    ticks = []
    original = live.tick

    def tick(working):
        live.shown = 0.0
        original(working)
        ticks.append(len(working.working))

    monkeypatch.setattr(live, "tick", tick)
    live.planned(bench.plan("fedavg[algo.shared=encoder]"), "the plan")
    bench.work(bench.plan(), {"fedavg": "fail"}, display=live, retries=0)
    shown = text.getvalue()
    assert "fedavg[algo.shared=encoder]" in shown and "the plan" in shown
    assert (
        "round 1/2" in shown and "0 of 2 runs" in shown and "time left unknown" in shown and "duo · local · s0" in shown
    )
    assert "failed: duo · fedavg · s0 (2/2): the disk is on fire" in shown and max(ticks) == 1


class Elsewhere:
    """Hosts without processes: a run waits until it has been looked at `looks` times, and then is done."""

    def __init__(self, looks, lost=False):
        self.looks, self.lost, self.asked = looks, lost, 0

    def start(self, run, command, log, lock):
        hosts = self
        self.asked += 1

        class Far(Job):
            waiting, seen = True, 0

            def poll(self):
                self.seen += 1
                self.waiting = self.waiting and self.seen < hosts.looks
                if self.interrupted:
                    return -2
                if hosts.lost and self.seen > hosts.looks and hosts.asked == 1:
                    self.lost = True
                    return 1
                if self.seen > hosts.looks:
                    run.store.folder.mkdir(parents=True, exist_ok=True)
                    (run.store.folder / "summary.json").write_text(summary_text(run))
                    return 0
                return None

            def interrupt(self):
                self.interrupted = True

        return Far(log)


def test_a_run_that_waits_for_its_place_is_queued_and_then_started(bench):
    text = io.StringIO()
    live = Live(Console(file=text, force_terminal=True, width=120))
    plan = bench.plan("fedavg", with_local=False)
    assert bench.work(plan, hosts=Elsewhere(3)).complete
    assert [event["event"] for event in bench.events()] == ["queued", "start", "ran"]
    live.shown = -1e9
    stopped = bench.work(bench.plan("fedper", with_local=False), display=live, hosts=Elsewhere(1e9), budget=0.8)
    assert stopped.count("left") == 1 and "waiting for a place" in text.getvalue()


def test_a_run_that_never_found_a_place_was_not_started(bench):
    outcome = bench.work(bench.plan("fedavg", with_local=False), hosts=Elsewhere(1e9), budget=0.3)
    (record,) = outcome.records.values()
    assert (record.outcome, record.seconds) == ("left", 0.0)
    assert [event["event"] for event in bench.events()] == ["queued", "note"]


def test_a_lost_run_is_tried_again_even_if_its_folder_is_still_open(bench):
    """What is left of it may be at work: that is waited for, and the loss counts all the same."""
    plan = bench.plan("fedavg", with_local=False)
    (run,) = plan.runs
    with run.store.opened():
        first = bench.work(plan, hosts=(hosts := Elsewhere(1, lost=True)), budget=0.6)
    assert first.records[run].attempts == 1 and first.count("left") == 1 and hosts.asked == 1
    outcome = bench.work(bench.plan("fedavg", with_local=False), hosts=Elsewhere(1, lost=True))
    assert [record.attempts for record in outcome.records.values()] == [2] and outcome.complete


def test_a_run_that_cannot_be_started_fails_in_one_line(bench, monkeypatch):
    def full(*_, **__):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("fmtlbench.bench.local_jobs.subprocess.Popen", full)
    outcome = bench.work(bench.plan(), retries=1)
    assert outcome.count("failed") == 2
    assert all("Cannot allocate memory" in r.error and r.attempts == 2 for r in outcome.records.values())
