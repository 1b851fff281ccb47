"""Stands in for `fmtlbench run`: a process that behaves as its first argument says. Standard library only.

fake_run.py MODE FOLDER STARTS CODE: every start adds a line to the file STARTS; a round takes about 0.1 s. CODE is what
the summary says of the code. The mode `mIoU=57` ends with that score of one client.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

ROUNDS = 2
# As little as the summary of a finished run can say.
SUMMARY = {
    "algorithm": "",
    "scenario": "",
    "preset": "",
    "data": "",
    "seed": 0,
    "rounds": 2,
    "clients": [],
    "scores": [],
}


def tell(**event):
    sys.stderr.write(json.dumps(event) + "\n")
    sys.stderr.flush()


def summary(mode):
    """As little as a summary can say, with the score that the mode names."""
    word, _, value = mode.partition("=")
    if word != "mIoU":
        return SUMMARY
    client = {"id": "a", "dataset": "nyud", "tasks": ["semseg"]}
    score = {"client": "a", "dataset": "nyud", "split": "global", "task": "semseg", "metric": "mIoU", "unit": "%"}
    score |= {"value": float(value), "primary": True, "higher_is_better": True, "trivial": 1.0}
    return {**SUMMARY, "clients": [client], "scores": [score]}


def train(folder, code, rounds=ROUNDS, mode=""):
    rows = folder / "metrics.jsonl"
    done = len(rows.read_text().splitlines()) if rows.exists() else 0
    tell(event="begin", rounds=rounds, done=done, steps_per_round=1)
    for index in range(done, rounds):
        time.sleep(0.05)
        with rows.open("a") as file:
            file.write(json.dumps({"round": index + 1, "bytes_up": 1, "bytes_down": 1}) + "\n")
        tell(event="round", round=index + 1, rounds=rounds, seconds=0.05, eta_seconds=0.05 * (rounds - index - 1))
    (folder / "cost.json").write_text(json.dumps({"seconds": {}, "seconds_total": 0.05 * rounds}))
    (folder / "summary.json").write_text(json.dumps({**summary(mode), "code": json.loads(code)}))


def main(mode, folder, starts, code):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    given = [os.environ.get(name, "-") for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")]
    with Path(starts).open("a") as file:
        file.write(" ".join([str(os.getpid()), folder.parent.name, folder.name, *given]) + "\n")
    before = (folder / "started").exists()
    (folder / "started").touch()
    if mode == "fail" or (mode == "fail_once" and not before):
        sys.exit("fmtlbench: the disk is on fire")
    if mode == "usage":
        sys.stderr.write("fmtlbench: --rounds x\n")
        sys.exit(2)
    if mode == "die" or (mode == "die_once" and not before):
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "nothing":
        return
    if mode == "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if mode in ("stubborn", "hang") or (mode == "hang_once" and not before):
        train(folder, code, rounds=100_000)
    train(folder, code, mode=mode)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        with Path(sys.argv[3] + ".interrupted").open("a") as file:
            file.write(f"{os.getpid()}\n")
        sys.exit("fmtlbench: interrupted")
