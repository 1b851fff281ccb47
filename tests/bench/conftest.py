"""A bench whose runs are imitations, in this process and in others."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


class Bench:
    """Everything below one folder; `starts` has a line for every process that a bench started."""

    def __init__(self, folder, scenario):
        self.out, self.scenario, self.started = folder / "runs", scenario, folder / "starts"

    def grid(self, algos="local,fedavg", seeds="0", overrides=None, scenario=None, file=None, rounds=2):
        from fmtlbench.bench.grid import Flags, read_grid

        flags = Flags(algos, scenario or self.scenario, seeds, rounds=rounds, overrides=overrides or {})
        return read_grid(file, flags)

    def plan(self, *args, with_local=True, **given):
        from fmtlbench.bench.plan import make_plan
        from fmtlbench.config.request import RunRequest

        how = {name: given.pop(name) for name in ("energy", "country", "region", "data_root") if name in given}
        return make_plan(self.grid(*args, **given).asked(), RunRequest("", "", out=self.out, **how), "cpu", with_local)

    def work(self, plan, modes=None, display=None, until=None, **given):
        """Do the plan in this process; the budget is used up once a run of the method `until` has left a round."""
        from fake_bench import imitation

        from fmtlbench.bench.display import Lines
        from fmtlbench.bench.estimate import Pace
        from fmtlbench.bench.workers import Workers

        class Until(Lines):
            def tick(self, loop):
                super().tick(loop)
                if any(working.run.label == until and working.job.round for working in loop.working):
                    loop.budget = 0.0

        self.said = io.StringIO()
        display = display or (Until if until else Lines)(self.said)
        return Workers(plan, imitation(modes or {}, self.started), display, Pace(), **given).work()

    def events(self):
        return [json.loads(line) for line in self.said.getvalue().splitlines()]

    def starts(self):
        """(method, folder) of every start."""
        text = self.started.read_text() if self.started.exists() else ""
        return [tuple(line.split()[1:3]) for line in text.splitlines()]

    def gpus(self):
        """CUDA_VISIBLE_DEVICES of every start."""
        return [line.split()[4] for line in self.started.read_text().splitlines()]

    def pids(self):
        return [int(line.split()[0]) for line in self.started.read_text().splitlines()]

    def process(self, *argv, modes=None):
        """`fmtlbench bench` as a process of its own."""
        command = [
            sys.executable, str(HERE / "fake_bench.py"), str(self.started), json.dumps(modes or {}), "bench",
            "--scenarios", self.scenario, "--rounds", "2", "--device", "cpu", "--out", str(self.out), *argv,
        ]  # fmt: skip
        # The test may itself run in a background job, whose children ignore SIGINT unless told otherwise.
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip


@pytest.fixture
def bench(tmp_path, scenario_file, monkeypatch):
    from fmtlbench.bench import workers

    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr(workers, "PAUSE", 0.02)
    monkeypatch.setattr(workers, "LOOK_AGAIN", 0.1)
    return Bench(tmp_path, scenario_file)


@pytest.fixture
def command(bench, monkeypatch, capsys):
    """The verb in this process with imitated runs: (exit code, stdout, stderr)."""
    from fake_bench import imitation

    from fmtlbench import cli
    from fmtlbench.bench import local_jobs

    monkeypatch.setattr(cli, "VERBS", ("bench",))

    def call(*argv, modes=None, scenario=bench.scenario, out=bench.out, imitate=True):
        if imitate:
            monkeypatch.setattr(local_jobs, "run_command", imitation(modes or {}, bench.started))
        capsys.readouterr()
        words = ["bench", "--scenarios", scenario, "--rounds", "2", "--device", "cpu", "--out", str(out), *argv]
        try:
            code = cli.main(words)
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return call
