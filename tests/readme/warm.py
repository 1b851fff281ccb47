"""Start `python -m fmtlbench` and scripts by forking a process that has imported everything, not from nothing.

A start from nothing imports for some seconds, and a page has dozens of commands. Used by conftest.py:

    python warm.py serve SOCKET            imports once, then forks for whoever asks
    python warm.py ask SOCKET PYTHON …     does what PYTHON … would do, by such a fork where it can
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from typing import Any

IMPORTED = (
    "torch", "torch._dynamo", "torch.utils.flop_counter", "torchvision", "timm", "numba", "pandas", "scipy.stats",
    "matplotlib.pyplot", "skimage", "rich.console", "fmtlbench.api", "fmtlbench.cli", "fmtlbench.engine.run",
    "fmtlbench.engine.factory", "fmtlbench.metrics.edges.sweeps",
)  # fmt: skip


def ask(place: str, argv: list[str]) -> int:
    """Have argv done by a fork, with this process's folder, environment and streams; return its exit code."""
    if argv[1:3] != ["-m", "fmtlbench"] and not (len(argv) > 1 and argv[1].endswith(".py")):
        os.execv(argv[0], argv)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        request = json.dumps({"argv": argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}).encode()  # noqa: PTH109
        socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(request)
        answer = connection.recv(8)
    return int(answer) if answer else 70


def serve(place: str) -> dict[str, Any]:
    """Fork for every request, for ever; return in the forked processes only, with what was asked."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{place}.new")
    listener.listen(64)
    os.rename(f"{place}.new", place)  # noqa: PTH104 - whoever sees it is answered
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the keepers below are nobody's to wait for
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return _keep(connection)
        connection.close()


def _keep(connection: socket.socket) -> dict[str, Any]:
    """Fork once more; the child returns, its parent tells the exit code, and ends the child if the asker is gone."""
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(head, "big")))
    child = os.fork()
    if child == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return request
    running = threading.Lock()  # free while the child's number is the child's
    threading.Thread(target=_end_with, args=(connection, child, running), daemon=True).start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    running.acquire()  # for good: a number that is given back may be anybody's
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())
    os._exit(0)


def _end_with(connection: socket.socket, child: int, running: threading.Lock) -> None:
    """End the child if the asker is gone before it."""
    with contextlib.suppress(OSError):
        connection.recv(1)  # nothing ever comes: it is over
    with running:
        os.kill(child, signal.SIGTERM)


def do(request: dict[str, Any]) -> None:
    """Be the process that was asked for."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin, sys.stdout = (open(n, mode, encoding="utf-8", closefd=False) for n, mode in enumerate("rw"))  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.executable = os.environ["WARM_PYTHON"]  # so that what bench starts is started in the same way
    if request["argv"][0] == "-m":
        sys.argv = ["fmtlbench", *request["argv"][2:]]
        sys.path[0] = os.getcwd()  # noqa: PTH109
        from fmtlbench.cli import main

        sys.exit(main())
    sys.argv = request["argv"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120
    runpy.run_path(sys.argv[0], run_name="__main__")


def end(code: Any) -> None:
    """Leave as Python does, but for taking every imported module apart, which takes seconds in a fork."""
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(ask(sys.argv[2], sys.argv[3:]))
    for name in IMPORTED:
        __import__(name)
    gc.collect()
    gc.freeze()  # what is never collected is never copied
    request = serve(sys.argv[2])
    try:
        do(request)
        end(0)
    except SystemExit as leaving:
        end(leaving.code)
    except BaseException:
        traceback.print_exc()
        end(1)
