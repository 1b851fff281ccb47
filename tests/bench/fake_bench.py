"""`fmtlbench bench` whose runs are imitations (fake_run.py): fake_bench.py STARTS MODES ARGV…, MODES by method."""

import json
import sys
from pathlib import Path

from fake_run import SUMMARY

from fmtlbench import cli
from fmtlbench.bench import local_jobs, workers


def code_text(run):
    """What the summary of a run says of the code that made it."""
    return json.dumps({"sha256": run.store.code.sha256, "parts": run.store.code.parts})


def summary_text(run):
    """As little as the summary of this run can say when it is finished."""
    return json.dumps({**SUMMARY, "code": json.loads(code_text(run))})


def imitation(modes, starts):
    def command(run, *_):
        mode = modes.get(run.label, "fine")
        script = Path(__file__).with_name("fake_run.py")
        return [sys.executable, "-S", "-E", str(script), mode, str(run.store.folder), str(starts), code_text(run)]

    return command


if __name__ == "__main__":
    starts, modes, *argv = sys.argv[1:]
    local_jobs.run_command = imitation(json.loads(modes), starts)
    workers.PAUSE, workers.LOOK_AGAIN = 0.02, 0.1
    cli.VERBS = ("bench",)  # the only one that is tried here
    sys.exit(cli.main(argv))
