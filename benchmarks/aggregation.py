"""Server steps at Swin-T size: time ÷ the time that their bytes take, peak extra memory ÷ the size of the encoder rows.

Run: python benchmarks/aggregation.py [--methods fedhca2 cagrad] [--repeat 9] [--threads 1]
     python benchmarks/aggregation.py --clients 24      (st_mt_1 four times over: only the total memory is judged)

The bound is what the method's definition must read and write (PASSES), at the speed this machine reads (a dot product
over the rows) and writes (a copy of the rows to fresh memory, less the reading), so that it means the same on every
processor. Beside it stands the ratio to one mean over the encoder rows, written to memory at hand, which does not. A
method that PASSES does not have is measured too, against reading what was sent and writing what it returns, which every
server does; this may be less than it must, so it is marked with "?" and not judged.

Each method has a process of its own, in which its steps from the second round on, the read, the copy and the mean take
turns; the fastest turn of each counts, since other work on the machine only adds time. On one thread, the default,
processor time is taken, so that other work on the machine does not count; on more, wall time, which means something on
an idle machine only. The allocator has its default settings: results and the copy are both written to new memory of the
system, in huge pages where numpy gets these. What that costs varies on a virtual machine, so memory is given back to
the system just before each turn. The column `median` has the ratio of the medians; it is far from the first one if the
machine was busy.
Memory is the process's peak resident size over two rounds, less its size once the inputs (`before`, `after`) exist:
the returned rows and what the method keeps count as extra.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

# Some virtual CPUs announce matrix instructions they do not have (fmtlbench/engine/precision.py).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# Threads that wait by spinning lose a time slice at every small step if another process needs their core.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import psutil
import torch

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.matfl import MaTFL, voting_tensors
from fmtlbench.exchange import Owner, Party, Round, Rows, TensorSlice
from fmtlbench.exchange.algebra import empty_like
from fmtlbench.networks.backbones import Encoder
from fmtlbench.networks.fedhca2 import MultiDecoderNet
from fmtlbench.networks.flat import FlatModel
from fmtlbench.scenarios import load_scenario

TIME_LIMIT = 1.5  # × the bound, for every method
MEMORY_LIMITS = {"fedhca2": 1.5}  # × the encoder rows
TOTAL_LIMIT = 12.0  # GiB, with 24 clients
VARIANTS = {"matfl": {"variant": "voting"}, "fedbn": {"norms": "all"}}  # measured besides the defaults
GIB = 1 << 30


@dataclass(frozen=True)
class Passes:
    """What a definition must read and write, in matrices of all rows [R, d] and in single rows [d]."""

    read: float
    written: float = 0
    read_rows: int = 0
    written_rows: int = 0

    def bytes(self, rows: Rows) -> tuple[float, float]:
        """Return (bytes to read, bytes to write)."""
        matrix, row = rows.after.nbytes, rows.after[0].nbytes
        return self.read * matrix + self.read_rows * row, self.written * matrix + self.written_rows * row


# One mean that all rows share: `after` is read, one row written.
MEAN = Passes(1, written_rows=1)
# One row that all share, from where they started and where they went.
MOVED_MEAN = Passes(2, written_rows=1)
# The same with what an optimiser keeps: its rows are read, and written anew.
WITH_MOMENTUM = Passes(2, read_rows=1, written_rows=2)
WITH_TWO_MOMENTS = Passes(2, read_rows=2, written_rows=3)
# Means within groups: `after` is read, every row written (the rows are new memory, also of a group of one).
GROUP_MEANS = Passes(1, written=1)
# Distances or cosines of all pairs first, then combinations of `after`, for which all of it is read again.
BY_SIMILARITY = Passes(2, written=1)
# The Gram matrix of Δ first, then before + a combination of Δ: `before` and `after` twice.
BY_UPDATES = Passes(4, written=1)
PASSES: dict[str, Passes | dict[str, Passes]] = {
    **dict.fromkeys(("fedavg", "fedprox", "ditto", "fedper", "fedrep", "fedbabu", "fedsta"), MEAN),
    **dict.fromkeys(("apfl", "fedala", "pfedme"), MEAN),  # what is new in them is on the client
    "mas": {"encoder": MEAN, "decoder": GROUP_MEANS},  # before it splits
    "ifca": Passes(1, written=1, written_rows=2),  # the k = 2 encoders are kept
    **dict.fromkeys(("single_task_fl", "lg_fedavg", "task_means", "fedatlas"), GROUP_MEANS),
    "fedbn": MEAN,  # of a network without batch norms
    "fedbn norms=all": GROUP_MEANS,  # every row is another one
    "fednova": MOVED_MEAN,
    "fedavgm": WITH_MOMENTUM,
    "feddyn": WITH_MOMENTUM,
    "fedadam": WITH_TWO_MOMENTS,
    "fedyogi": WITH_TWO_MOMENTS,
    "scaffold": Passes(2, read_rows=1, written_rows=2),  # the second time it is what clients told
    "fedfomo": Passes(1, written=1),  # all rows are kept
    "fedmtl": Passes(1, written=1, written_rows=1),  # the sum over all is kept
    "fedamp": BY_SIMILARITY,
    "matfl": BY_SIMILARITY,
    "cagrad": BY_UPDATES,
    "pcgrad": BY_UPDATES,
    "colnet": BY_UPDATES,
    "fedbone": Passes(4, written=1, read_rows=1, written_rows=1),  # with last round's common update, and this round's
    # The start and `after` twice, and the elected vector, written and read: the factors are known at the end of it.
    "emr": Passes(2, written=1, read_rows=3, written_rows=1),
    "fedhca2": {
        "encoder": Passes(4, written=1, read_rows=1, written_rows=1),  # with last round's Ũ, and this round's
        # Last round's Ã, and this round's. A tensor's Gram matrix, then its rows: the second time from the cache.
        "decoder": Passes(3, written=2),
    },
}


def find_passes(job: Job, kind: str, rows: Rows, returned: torch.Tensor | None) -> Passes:
    """Return what a method must read and write of a kind; of an unknown method, what it has been sent and returns."""
    if job.options.get("variant") == "voting":  # Δ of the layers that vote, then before and Δ of all
        voters = voting_tensors(rows.tensors)[-MaTFL.Params().vote_layers :]
        return Passes(2 + 2 * sum(t.stop - t.start for t in voters) / rows.tensors[-1].stop, written=1)
    declared = PASSES.get(job.title, PASSES.get(job.method))
    if declared is None:
        if returned is None:
            return Passes(1)
        return MEAN if returned.stride(0) == 0 else GROUP_MEANS
    return declared[kind] if isinstance(declared, dict) else declared


@dataclass(frozen=True)
class Job:
    """One method to measure."""

    method: str
    options: dict
    clients: int
    repeat: int  # 0: memory only
    threads: int

    @property
    def title(self) -> str:
        return " ".join([self.method, *(f"{key}={value}" for key, value in self.options.items())])

    @property
    def judged(self) -> bool:
        return self.method in PASSES


@dataclass(frozen=True)
class Times:
    """Seconds."""

    step: float
    mean: float
    bound: float


@dataclass(frozen=True)
class Measured:
    """Sizes in bytes."""

    fastest: Times | None
    median: Times | None
    extra: int
    total: int
    rows: int  # size of the encoder matrix


def make_layouts() -> dict[str, tuple[TensorSlice, ...]]:
    """Return the tensor layouts of the real model, without memory for its parameters."""
    with torch.device("meta"):
        model = FlatModel(MultiDecoderNet(Encoder("swin_tiny", (448, 576)), {"depth": 1}))
    return {kind: model.layout(kind) for kind in ("encoder", "decoder")}


def parties(count: int) -> tuple[Party, ...]:
    """Return `count` clients: those of st_mt_1, repeated."""
    specs = load_scenario("st_mt_1").parties()
    chosen = [specs[i % len(specs)] for i in range(count)]
    return tuple(Party(i, f"{s.id}-{i}", s.dataset, s.tasks, 1000) for i, s in enumerate(chosen))


def noise_like(shape: tuple[int, int], seed: int, length: int = 1 << 20) -> torch.Tensor:
    """Fill rows with normal noise: a short piece, repeated from another start in each row, to save time and memory."""
    pool = torch.empty(length).normal_(generator=torch.Generator().manual_seed(seed))
    rows = torch.empty(shape)
    for i, row in enumerate(rows):
        shifted = pool.roll(104_729 * (i + 1))
        for piece in row.split(length):
            piece.copy_(shifted[: len(piece)])
    return rows


def make_rows(owners: list[Owner], tensors: tuple[TensorSlice, ...]) -> Rows:
    shape = (len(owners), tensors[-1].stop)
    before, after = noise_like(shape, 0).mul_(0.02), noise_like(shape, 1).mul_(1e-3)
    after += before
    return Rows(tuple(owners), before, after, tensors)


def make_inputs(members: tuple[Party, ...], tensors: dict[str, tuple[TensorSlice, ...]]) -> dict[str, Rows]:
    owners = {
        "encoder": [Owner(party.index) for party in members],
        "decoder": [Owner(party.index, task) for party in members for task in party.tasks],
    }
    return {kind: make_rows(owners[kind], tensors[kind]) for kind in owners}


def tell(method: str, party: Party, rows: dict[str, Rows]) -> dict[str, torch.Tensor]:
    """Return what a client tells the server beside its rows, for methods that need it."""
    if method == "fedatlas":
        return {"features": noise_like((len(party.tasks), 768), party.index)}
    if method == "ifca":
        return {"choice": torch.tensor([party.index % 2.0])}
    if method == "scaffold":  # as much as it sends
        own = {kind: [k for k, owner in enumerate(r.owners) if owner.client == party.index] for kind, r in rows.items()}
        return {kind: rows[kind].before[places] for kind, places in own.items()}
    return {}


class Server:
    """A method and the rounds it goes through."""

    def __init__(self, job: Job, members: tuple[Party, ...], rows: dict[str, Rows]) -> None:
        chosen = ALGORITHMS[job.method]
        self.method = chosen(chosen.Params(**job.options), members)
        self.members, self.rows, self.index = members, rows, 0
        self.steps = {party.index: 100 + party.index for party in members}
        self.measured = {party.index: tell(job.method, party, rows) for party in members}

    def round(self) -> dict[str, torch.Tensor]:
        shared = self.method.shared(self.index)
        # Fresh Rows: what one round caches in them does not help the next.
        sent = {kind: Rows(r.owners, r.before, r.after, r.tensors) for kind, r in self.rows.items() if kind in shared}
        rnd = Round(self.index, self.members, **sent, steps=self.steps, measured=self.measured)
        self.index += 1
        return self.method.aggregate(rnd)


def peak_size() -> int:
    """Return the largest resident size that this process has had, in bytes."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@torch.no_grad()
def measure(job: Job) -> Measured:
    torch.set_num_threads(job.threads)
    members = parties(job.clients)
    tiny = (TensorSlice("a.weight", "a", 0, 4096),)
    warm = Server(job, members, make_inputs(members, {"encoder": tiny, "decoder": tiny}))
    for _ in range(2):  # imports, thread pools
        warm.round()
    rows = make_inputs(members, make_layouts())
    matrix = rows["encoder"].after
    server = Server(job, members, rows)
    return_freed_memory()
    size = psutil.Process().memory_info().rss
    server.round()
    new = server.round()
    total = peak_size()
    if not job.repeat:
        return Measured(None, None, total - size, total, matrix.nbytes)
    kinds = server.method.shared(server.index)
    touched = [find_passes(job, kind, rows[kind], new.get(kind)).bytes(rows[kind]) for kind in kinds]
    del new
    flat, mean = matrix.view(-1), torch.empty_like(matrix[0])
    turns = time_in_turns(
        job,
        matrix.nbytes * 3 // 2,
        lambda: server.round(),
        lambda: torch.mean(matrix, 0, out=mean),
        lambda: torch.dot(flat, flat),
        lambda: empty_like(matrix).copy_(matrix),
    )

    def times(statistic: Callable[[list[float]], float]) -> Times:
        step, mean, read, copy = (statistic(took) / matrix.nbytes for took in turns)
        bound = sum(reads * read + writes * (copy - read) for reads, writes in touched)
        return Times(step * matrix.nbytes, mean * matrix.nbytes, bound)

    return Measured(times(min), times(statistics.median), total - size, total, matrix.nbytes)


def time_in_turns(job: Job, size: int, *runs: Callable[[], object]) -> list[list[float]]:
    """Time the `runs` in turns, with `size` bytes of memory freed before each; return the seconds of each."""
    clock = time.process_time if job.threads == 1 else time.perf_counter
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(job.repeat + 1):
        for took, run in zip(times, runs):
            refresh_free_memory(size)
            began = clock()
            run()
            took.append(clock() - began)
    return [took[1:] or took for took in times]  # the first one warms up


def refresh_free_memory(size: int) -> None:
    """Take memory from the system, write to it and give it back, so that what follows gets the same pages.

    On a virtual machine, memory that was freed seconds ago took up to ten times as long to get as memory freed just now
    (measured; probably the host took it back in between), which would hit whichever run comes late.
    """
    np.empty(size, dtype=np.uint8).fill(0)


def return_freed_memory() -> None:
    """Let glibc return unused memory to the system; do nothing with other libraries."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def make_jobs(arguments: argparse.Namespace) -> list[Job]:
    """Return a job for every method asked for whose clients send something to the server."""
    found = []
    for name in arguments.methods or sorted(ALGORITHMS):
        chosen = ALGORITHMS.resolve(name)
        variants = [{}, VARIANTS[name]] if name in VARIANTS else [{}]
        if chosen(chosen.Params(), parties(arguments.clients)).shared(0):
            repeat = arguments.repeat if arguments.clients == 6 else 0
            found += [Job(name, options, arguments.clients, repeat, arguments.threads) for options in variants]
    return found


def compare_with_limit(value: float, limit: float | None) -> tuple[str, bool]:
    """Return the value with its limit as text, and whether it is within the limit."""
    bound = "        " if limit is None else f" (≤ {limit:<4g})"
    return f"{value:7.2f}{bound}", limit is None or value <= limit


def report(job: Job, got: Measured) -> bool:
    if job.repeat:
        one, typical = got.fastest, got.median
        speed, fast = compare_with_limit(one.step / one.bound, TIME_LIMIT if job.judged else None)
        memory, small = compare_with_limit(got.extra / got.rows, MEMORY_LIMITS.get(job.method))
        cells = f"{speed}  {typical.step / typical.bound:6.2f}  {one.step / one.mean:6.2f}  {memory}"
        cells += f"  {one.step * 1e3:7.0f}  {one.bound * 1e3:8.0f}  {one.mean * 1e3:7.0f}"
    else:
        cells, small = compare_with_limit(got.total / GIB, TOTAL_LIMIT)
        fast = True
    verdict = "ok  " if fast and small else "FAIL"
    print(f"{verdict if job.judged else '?   '}  {job.title:22}  {cells}", flush=True)
    return fast and small


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=6, help="6: time and memory; else total memory (default: 6)")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="default: every method with a server step")
    parser.add_argument("--repeat", type=int, default=9, help="timed rounds (default: 9)")
    parser.add_argument("--threads", type=int, default=1, help="of torch, for all that is timed (default: 1)")
    arguments = parser.parse_args()
    head = "× bound          median  × mean  extra ÷ rows     step ms  bound ms  mean ms"
    if arguments.clients != 6:
        head = "peak GiB"
    print(f"      {'method':22}  {head}")
    verdicts = []
    context = multiprocessing.get_context("spawn")
    for job in make_jobs(arguments):
        with context.Pool(1) as pool:
            verdicts.append(report(job, pool.apply(measure, (job,))))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
