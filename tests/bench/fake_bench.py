"""`fmtlbench bench` whose runs are imitations (fake_run.py): fake_bench.py STARTS MODES ARGV…, MODES by method."""

import json
import sys
from pathlib import Path

from fmtlbench import cli
from fmtlbench.bench import child, workers


def imitation(modes, starts):
    def command(run, *_):
        mode = modes.get(run.label, "fine")
        script = Path(__file__).with_name("fake_run.py")
        return [sys.executable, "-S", "-E", str(script), mode, str(run.store.folder), str(starts)]

    return command


if __name__ == "__main__":
    starts, modes, *argv = sys.argv[1:]
    child.run_command = imitation(json.loads(modes), starts)
    workers.PAUSE, workers.LOOK_AGAIN = 0.02, 0.1
    cli.VERBS = ("bench",)  # the only one that is tried here
    sys.exit(cli.main(argv))
