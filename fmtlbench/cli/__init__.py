"""The command line: one file per verb, heavy imports inside the handlers. Results on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shlex
import sys
from collections.abc import Sequence

from ..base.names import public_modules

# In this order they are listed; a verb that is not here comes last.
ORDER = (
    "run", "bench", "probe", "list", "show", "data", "runs", "predict", "score", "leaderboard", "stats", "cost", "plot",
    "papers", "export", "submit", "verify", "completion",
)  # fmt: skip
VERBS = tuple(public_modules(__path__, ORDER))
# A verb that is no more, maybe with a flag → what to type instead; {} is the rest of what was typed.
FORMER = {
    "evaluate": "`fmtlbench score{}`",
    "score-external": "`fmtlbench score{}`",
    "stability": "`fmtlbench stats --noise{}`",
    "published --claims": "`fmtlbench papers claims{}`",
    "published": "`fmtlbench papers list{}`",
    "compare": "`fmtlbench papers compare{}`",
    "reproduce": "`fmtlbench papers reproduce{}`",
    "export-weights": "`fmtlbench export --weights{}`",
    "time": "`fmtlbench cost RUNS --over MACHINES.yml`",
    "import-config": "`fmtlbench list scenarios` has the public code's; its settings: docs/deviations.md",
    "pretrain": "`make weights` in a clone of the repository makes the package's encoder weights",
}


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Build the parser of all verbs, or of the one alone that `words`, the command's, begin with: that is quicker."""
    from ._parser import Parser

    parser = Parser(
        prog="fmtlbench",
        description="Benchmark suite and baseline zoo for hetero-client federated multi-task learning.",
        epilog="First steps: fmtlbench run --algo fedhca2 --scenario st_mt_1",
    )
    parser.add_argument("--version", action=_Version)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    asked = words[0] if words else ""
    for verb in [asked] if asked in VERBS else VERBS:
        importlib.import_module(f".{verb}", __name__).add(verbs)
    return parser


def refuse_former(words: Sequence[str]) -> None:
    """Refuse a verb that is no more: say the whole command that takes its place."""
    from ..base.errors import UsageError

    for former, instead in FORMER.items():
        if words and words[0] == former.split()[0] and {*former.split()} <= {*words}:
            rest = shlex.join(word for word in words if word not in former.split())
            raise UsageError(f"no verb {words[0]!r} any more: {instead.format(rest and ' ' + rest)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0 for done, 1 for failed, 2 for wrong usage."""
    from ..base.errors import FmtlbenchError, UsageError, one_line, shorten
    from ._parser import add_list_if_missing

    _replace_unprintable()
    try:
        if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow, and nothing is run
            from ._completing import complete

            complete(build_parser())
        words = sys.argv[1:] if argv is None else argv
        refuse_former(words)
        args = build_parser(words).parse_args(add_list_if_missing(words))
        code = args.func(args) or 0
        sys.stdout.flush()
        return code
    except FmtlbenchError as error:
        print(f"fmtlbench: {shorten(one_line(error), longest=1000)}{error.advice}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("fmtlbench: interrupted; the same command goes on from the last complete round", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `fmtlbench list | head`
        _drop_stdout()
        return 0
    except MemoryError:
        print(
            "fmtlbench: out of memory; smaller batches (train.batch_size) or images (data.size) need less",
            file=sys.stderr,
        )
        return 1
    except OSError as error:  # a disk or a permission, not a bug
        _drop_stdout()
        print(f"fmtlbench: {shorten(one_line(error), longest=1000)}", file=sys.stderr)
        return 1


def _replace_unprintable() -> None:
    """Let streams that cannot show a character such as α or ↑ print a question mark instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _drop_stdout() -> None:
    """Discard what is still to be printed; else Python would try to print it on exit and fail again."""
    with contextlib.suppress(OSError, ValueError):  # stdout may have been replaced by something without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Version(argparse.Action):
    def __init__(self, option_strings, dest, **_):
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser, namespace, values, option_string=None):
        from .. import __version__

        print(f"fmtlbench {__version__}")
        parser.exit()
