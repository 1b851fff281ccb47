"""`fmtlbench bench` as a user meets it: what it prints where, its exit codes, and real runs at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit import TINY

from fmtlbench import cli
from fmtlbench.bench import device, local_jobs, workers
from fmtlbench.cli._request import request_from
from fmtlbench.runs.folder import RunFolder


def test_a_dry_run_touches_nothing(bench, command, tmp_path, monkeypatch):
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    code, out, err = command("--algos", "all", "--seeds", "0-1", "--dry-run", out="runs", imitate=False)
    assert (code, err) == (0, "")
    assert "fedhca2\t2 new" in out and "training time: unknown" in out
    assert not list(folder.iterdir())


def test_the_plan_as_json(bench, command):
    assert command("--algos", "fedavg")[0] == 0
    code, out, err = command("--algos", "fedavg,fedper", "--seeds", "0", "--dry-run", "--format", "json")
    plan = json.loads(out)
    assert (code, err) == (0, "") and plan["counts"] == {
        "done": 2,
        "resume": 0,
        "new": 1,
        "other code": 0,
        "damaged": 0,
        "refused": 0,
    }
    assert plan["estimate"] == {"seconds": pytest.approx(0.1), "unknown_runs": 0}
    assert [(run["name"], run["state"]) for run in plan["runs"]] == [
        ("local", "done"), ("fedavg", "done"), ("fedper", "new")
    ]  # fmt: skip


def test_success_is_a_table_on_stdout_and_events_on_stderr(bench, command):
    code, out, err = command("--algos", "fedavg,local", "--seeds", "0-1", "--jobs", "2")
    assert code == 0
    assert out.splitlines()[:3] == ["name\tduo", "fedavg\t2 ran", "local\t2 ran"]
    assert out.splitlines()[-1].startswith("4 ran in ")
    events = [json.loads(line) for line in err.splitlines()]
    assert events[0]["event"] == "plan" and events[0]["counts"]["new"] == 4 and "4 new" in events[0]["message"]
    assert events[0]["table"] == [{"name": "fedavg", "duo": "2 new"}, {"name": "local", "duo": "2 new"}]
    assert sum(event["event"] == "ran" for event in events) == 4
    code, out, _ = command("--algos", "fedavg,local", "--seeds", "0-1")
    assert code == 0 and "4 reused in " in out and len(bench.starts()) == 4


def test_failures_are_listed_and_the_exit_code_is_1(command):
    code, out, _ = command("--algos", "fedavg,fedper", "--retries", "0", modes={"fedavg": "fail"})
    assert code == 1
    (line,) = [line for line in out.splitlines() if line.startswith("failed: ")]
    assert line.startswith("failed: duo · fedavg · s0: the disk is on fire (log: ")
    assert "fedavg\t1 failed" in out and "fedper\t1 ran" in out


def test_the_result_as_json(command):
    participation = ("--set", "federation.participation=0.5")
    code, out, err = command(
        "--algos", "fedavg,local,fedper", "--format", "json", *participation, modes={"fedper": "fail"}
    )
    result = json.loads(out)
    assert code == 1 and result["stopped"] is None
    assert result["counts"] == {"ran": 1, "reused": 0, "elsewhere": 0, "failed": 1, "left": 0, "refused": 1}
    (refused,) = result["refused"]
    assert refused["name"] == "local" and "has no meaning" in refused["reason"] and refused["reason"] in err
    failed = next(run for run in result["runs"] if run["outcome"] == "failed")
    assert failed["error"] == "the disk is on fire" and failed["attempts"] == 2
    assert "the disk is on fire" in Path(failed["log"]).read_text()


def test_a_used_up_budget_says_how_to_go_on_and_is_exit_code_1(command):
    code, out, _ = command("--algos", "fedavg", "--budget", "1s", modes={"fedavg": "hang_once"})
    assert code == 1 and out.splitlines()[-1] == "the budget is used up, runs left: 1; the same command goes on"
    code, out, _ = command("--algos", "fedavg")
    assert code == 0 and "1 ran, 1 reused in " in out


def test_a_grid_file_from_the_command_line(command, tmp_path):
    file = tmp_path / "grid.yml"
    file.write_text("variants:\n  - {name: enc, algo: fedavg, set: {algo.shared: encoder}}\nseeds: 0-1\n")
    code, out, _ = command(str(file), "--seeds", "3")
    assert code == 0 and out.splitlines()[1:3] == ["enc\t1 ran", "local\t1 ran"]


def test_an_output_folder_that_cannot_be_had_is_one_line(bench, command, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = command("--algos", "fedavg", out=tmp_path / "file")
    assert code == 2 and "fmtlbench: " in err.splitlines()[-1] and "Traceback" not in err


def test_the_command_of_a_run_gives_the_same_config_back(bench, monkeypatch):
    overrides = {
        "data.size": {"pascal": [32, 32], "nyud": [32, 64]}, "train.lr": 1e-3, "train.min_lr": 1e-7,
        "train.clip_norm": None, "train.augment": ["flip"], "model.pretrained": False,
        "scenario.description": "1e-4 = “ü”, [x]",
    }  # fmt: skip
    monkeypatch.setattr(cli, "VERBS", ("run",))
    for run in bench.plan("fedhca2[algo.c=0.25]", seeds="3", overrides=overrides).runs:
        args = cli.build_parser().parse_args(local_jobs.run_command(run)[3:])
        assert request_from(args) == run.request and request_from(args).config() == run.config
        assert (args.out, args.format, args.data_root, args.device) == (str(bench.out), "json", None, "cpu")


@pytest.mark.parametrize(
    "flags, asked",
    [
        ([], (None, None, None)),
        (["--no-energy"], (False, None, None)),
        (["--energy", "--country", "USA", "--region", "vermont"], (True, "USA", "vermont")),
    ],
)
def test_every_run_is_measured_as_the_bench_was_asked(command, monkeypatch, flags, asked):
    commands = []

    def work(self):
        commands.extend(map(self.command, self.plan.runs))
        return self.outcome

    monkeypatch.setattr(workers.Workers, "work", work)
    command("--algos", "fedavg", *flags, imitate=False)
    monkeypatch.setattr(cli, "VERBS", ("run",))
    requests = [request_from(cli.build_parser().parse_args(words[3:])) for words in commands]
    assert [request.algo for request in requests] == ["local", "fedavg"]
    assert {(request.energy, request.country, request.region) for request in requests} == {asked}


def test_the_executor_and_its_cluster_are_each_runs_own(command, monkeypatch):
    """The bench's hosts stay on this machine; what Ray's workers are asked for is no part of a config."""
    seen = []
    monkeypatch.setattr(workers.Workers, "work", lambda self: seen.append(self) or self.outcome)
    spread = ("--executor", "ray", "--ray-address", "auto", "--set", "ray.workers=2")
    command("--algos", "fedavg", "--no-local", *spread, imitate=False)
    (run,) = seen[0].plan.runs
    words = local_jobs.run_command(run)
    assert isinstance(seen[0].hosts, local_jobs.LocalJobs) and "ray" not in run.config.dump()
    monkeypatch.setattr(cli, "VERBS", ("run",))
    request = request_from(cli.build_parser().parse_args(words[3:]))
    assert (request.executor, request.ray_address, request.ray_options().workers) == ("ray", "auto", 2)
    assert request.config().hash() == run.config.hash()


def test_the_data_root_goes_to_runs_on_real_data_only(bench):
    real = {"data.source": "real", "model.init": "torch"}
    assert "--data-root" in local_jobs.run_command(bench.plan("fedavg", overrides=real, data_root="data").runs[0])
    assert "--data-root" not in local_jobs.run_command(bench.plan("fedavg", data_root="data").runs[0])


def test_auto_is_the_cpu_without_asking_where_no_gpu_can_be(monkeypatch):
    monkeypatch.setattr(device.sys, "platform", "linux")
    monkeypatch.setattr(device, "GPU_FILES", ("/nowhere",))
    monkeypatch.setattr(device.subprocess, "run", lambda *_, **__: pytest.fail("asked"))
    assert device.find_device("auto") == device.find_device("cpu") == device.Device("cpu")


def test_a_possible_gpu_is_asked_for_in_another_process(monkeypatch):
    from fmtlbench.base.errors import FmtlbenchError

    def answer(code, out, err):
        return lambda *_, **__: subprocess.CompletedProcess([], code, out, err)

    monkeypatch.setattr(device, "GPU_FILES", ("/",))
    monkeypatch.setattr(device.subprocess, "run", answer(0, "cuda 2\n", "a warning"))
    assert device.find_device("auto") == device.find_device("cuda") == device.Device("cuda", 2)
    assert device.find_device("cuda:1") == device.Device("cuda", 0)  # the user chose: nothing is spread
    monkeypatch.setattr(device.subprocess, "run", answer(1, "", "--device cuda: 0 CUDA devices here\n"))
    with pytest.raises(FmtlbenchError, match=r"^--device cuda: 0 CUDA devices here$"):
        device.find_device("cuda")
    assert device.find_device("cuda", here=False) == device.Device("cuda")  # other machines may have one


def test_the_probe_tells_kind_and_count(monkeypatch):
    """The real process, on a machine with or without GPUs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(device, "GPU_FILES", ("/",))
    assert device.find_device("auto") == device.Device("cpu", 0)


@pytest.mark.parametrize(
    ("visible", "names"),
    [(None, ["0", "1"]), ("3,1", ["3", "1"]), ("GPU-8f, MIG-2a,GPU-77", ["GPU-8f", "MIG-2a"])],
)
def test_visible_gpus_keep_the_names_that_the_user_gave_them(monkeypatch, visible, names):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device.Device("cuda", 2).names() == names


@pytest.mark.parametrize(("flags", "gpus"), [((), {"3", "1"}), (("--device", "cpu"), {"3,1"})])
def test_jobs_of_the_command_are_spread_over_the_visible_gpus(bench, command, monkeypatch, flags, gpus):
    """A count of GPUs as the probe would tell it; the imitated runs say what they were given."""
    found = subprocess.CompletedProcess([], 0, "cuda 2\n", "")
    monkeypatch.setattr(device.subprocess, "run", lambda *_, **__: found)
    monkeypatch.setattr(device, "GPU_FILES", ("/",))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    code, _, err = command("--algos", "fedavg,fedper", "--jobs", "2", "--device", "auto", *flags)
    assert code == 0, err
    assert set(bench.gpus()) == gpus


def shell_lines(text):
    """The commands of `--format sh`, after bash has looked at the whole."""
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.slow
def test_missing_runs_as_commands_that_work_from_anywhere(bench, command, tmp_path, monkeypatch, tiny_flags):
    """One of them for real: the next list has one less."""
    monkeypatch.chdir(tmp_path)
    Path("it's mine.py").write_text(
        "from fmtlbench.algorithms import ALGORITHMS\nfrom fmtlbench.algorithms.fedavg import FedAvg\n\n\n"
        '@ALGORITHMS.register("mine")\nclass Mine(FedAvg):\n    title, paper = "Mine", "none"\n'
    )
    words = ("--algos", "it's mine.py,fedavg", "--seeds", "0-1", "--no-energy", *tiny_flags)
    listing = ("--dry-run", "--format", "sh")
    code, out, err = command(*words, *listing, out="some runs", imitate=False)
    lines = shell_lines(out)
    assert (code, err) == (0, "") and len(lines) == 6 and "# 6 of 6 runs are missing" in out
    assert all(line.startswith("fmtlbench run --algo ") for line in lines) and not Path("some runs").exists()
    assert command(*words, *listing, out="some runs", imitate=False)[1] == out
    (mine,) = [line for line in lines if "mine.py" in line and "--seed 1" in line]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    typed = mine.replace("fmtlbench", f"{sys.executable} -m fmtlbench", 1)
    done = subprocess.run(["bash", "-c", typed], cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left = shell_lines(command(*words, *listing, out="some runs", imitate=False)[1])
    assert left == [line for line in lines if line != mine] and not list(elsewhere.iterdir())


def test_a_list_of_commands_tells_refusals_in_comments_and_may_be_empty(bench, command):
    refusing = ("--algos", "fedavg,local", "--set", "federation.participation=0.5")
    _, out, _ = command(*refusing, "--dry-run", "--format", "sh")
    assert len(shell_lines(out)) == 1 and "\n# refused: local on duo: " in out
    assert command(*refusing)[0] == 0
    code, out, _ = command(*refusing, "--dry-run", "--format", "sh")
    assert code == 0 and shell_lines(out) == [] and "# 0 of 1 runs are missing" in out


def test_a_list_of_commands_may_be_for_machines_with_gpus(command):
    """This one need not have one."""
    code, out, _ = command("--algos", "fedavg", "--device", "cuda", "--dry-run", "--format", "sh")
    assert code == 0 and all("--device cuda " in line for line in shell_lines(out))


@pytest.mark.slow
def test_real_runs_are_stopped_resumed_and_end_where_the_plan_looked(bench, monkeypatch):
    """Two real processes: one stopped by the budget after its first rounds, one that goes on to the end."""
    from fmtlbench.bench.estimate import Pace

    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", os.environ["ONEDNN_MAX_CPU_ISA"])
    wanted = {"algos": "fedavg", "overrides": TINY, "rounds": 4, "with_local": False, "energy": False}

    class StopAfterTheFirstRound(workers.Display):
        def tick(self, loop):
            if any(working.job.round for working in loop.working):
                loop.budget = 0.0

    def work(plan, display, pace):
        return workers.Workers(plan, local_jobs.run_command, display, pace).work()

    stopped = work(bench.plan(**wanted), StopAfterTheFirstRound(), Pace())
    assert stopped.stopped == "budget" and stopped.count("left") == 1
    plan = bench.plan(**wanted)
    assert plan.runs[0].state == "resume" and 1 <= plan.runs[0].rounds_done < 4
    pace = Pace()
    outcome = work(plan, workers.Display(), pace)
    (record,) = outcome.records.values()
    assert (record.outcome, record.error) == ("ran", None)
    assert pace.seconds(plan.runs[0]) > 0
    assert "going on after round" in Path(record.log).read_text()
    assert RunFolder(plan.runs[0].store.folder).cost()["energy"]["reason"] == "turned off (--no-energy)"
    assert json.loads((plan.runs[0].store.folder / "summary.json").read_text())["rounds"] == 4
    assert bench.plan(**wanted).runs[0].state == "done"
