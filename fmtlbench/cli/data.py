"""`fmtlbench data`: look at datasets, check them, or decode them once for all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._parser import add_actions


def add(verbs) -> None:
    parser = verbs.add_parser("data", help="look at a dataset, check it, or decode it for faster runs")
    add_actions(parser, "data", ("show", "check", "cache"))


def add_dataset_arguments(parser) -> None:
    """Add the flags that every action on a dataset takes."""
    parser.add_argument("dataset", help="a name (fmtlbench list datasets), or a dataset's .py or .yml file")
    parser.add_argument(
        "--data-root",
        metavar="DIR",
        help="folder that holds NYUDv2/, PASCALContext/ or cityscapes/ (or that folder itself); else $FMTLBENCH_DATA, "
        "else data_root in the user's config file",
    )
    parser.add_argument("--layout", metavar="NAME", help="of nyud: NYUDv2 or NYUD_MT, where both are there")
    parser.add_argument("--size", type=int, nargs=2, metavar=("H", "W"), help="of embedded data; default: 64 64")


def dataset_info(args):
    """Return the dataset that the arguments name; refuse options that do not fit it."""
    from ..base.errors import UsageError
    from ..data.datasets import find_dataset

    info = find_dataset(args.dataset)
    if info.source == "real" and args.size:
        raise UsageError("--size: for embedded data only; real images keep their own size")
    for flag, given in (("--data-root", args.data_root), ("--layout", args.layout)):
        if info.source == "synth" and given:
            raise UsageError(f"{flag} {given}: {info.name} is rendered, not read")
    return info


@contextmanager
def show_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function of (done, total) that draws a progress bar if stderr is a terminal, and does nothing else."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bars:
        bar = bars.add_task(what)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
