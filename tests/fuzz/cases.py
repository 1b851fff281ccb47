"""What a generated request is, odd values to make some of, and how one ends: success or one line, in time."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
import signal
import sys
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from hypothesis import strategies as st

OUTCOMES = ("ok", "refused", "untidy", "escaped", "memory", "traceback", "hang")
FINE = ("ok", "refused")
DEADLINE = 40.0  # seconds: a case takes a tenth of one, a site six, and on a loaded machine far more


@dataclass(frozen=True)
class Link:
    """A symbolic link in place of a file."""

    target: str


@dataclass(frozen=True)
class Fifo:
    """A named pipe in place of a file: whoever opens it to read waits for ever."""


@dataclass(frozen=True)
class Case:
    """A command line, and the files it finds in its folder."""

    kind: str
    argv: tuple[str, ...]
    files: dict[str, bytes | Link | Fifo | None] = field(default_factory=dict)  # None: removed
    template: str | None = None  # a folder to copy first; its large files are shared
    lists_first: bool = False  # lines about single files may come before the one that refuses
    environment: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        files = {name: content[:80] if isinstance(content, bytes) else content for name, content in self.files.items()}
        return f"{' '.join(self.argv)} {files or ''}"


# -- values ------------------------------------------------------------------------------------------------------------

ODD_TEXT = (
    "", " ", "\0", "a\nb", "\x1b[31m", "..", "../../up", "/no/such/place", ".", ".hidden", "a/b", "a\\b", "~",
    "$clients",
    "é" * 60, "x" * 300, "\u202e", "-", "null", "1e400", "0x" + "f" * 40, "nan", "<<", "*a", "&a", "!!python/none", "%",
    "@",
)  # fmt: skip
ODD_NUMBERS = (
    0, 1, -1, 2, 3, 16, 10**6, 10**9, 10**12, 2**63 - 1, 2**63, 10**30, 10**400, 0.0, -0.0, 0.5, 1e-300, 1e300,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
WORDS = ("nyud", "pascal", "depth", "edge", "semseg", "local", "fedavg", "encoder", "global", "linear", "real", "fixed")

odd_text = st.one_of(st.sampled_from(ODD_TEXT), st.text(max_size=12), st.sampled_from(WORDS))
odd_scalar = st.one_of(st.none(), st.booleans(), st.sampled_from(ODD_NUMBERS), odd_text)


def near(value) -> st.SearchStrategy:
    """Values about like one: of the same type and wrong, or right and of another type."""
    if isinstance(value, bool) or value is None:
        return st.sampled_from((True, False, None, 0, 1, "true"))
    if isinstance(value, int):
        return st.sampled_from((value + 1, value - 1, -value, 0, 2**40, 10**30, float(value), str(value), True, None))
    if isinstance(value, float):
        some = (-value, 0.0, 2 * value, 1e300, 1e-300, float("inf"), float("-inf"), float("nan"), str(value), 1, None)
        return st.sampled_from(some)
    if isinstance(value, str):
        return st.sampled_from(("", value + "x", value.upper(), "x" * 300, "a\nb", "../../up", "\0", *WORDS, 1, None))
    if isinstance(value, list):
        some = ([], value[:1], value[1:], value + value, value[::-1], [None], [value], dict.fromkeys(WORDS, 0), None)
        return st.sampled_from(some)
    less = dict(list(value.items())[1:])
    return st.sampled_from(({}, less, {**value, "more": 1}, list(value), list(value.values()), {"": value}, None))


odd_value = st.recursive(
    odd_scalar,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*WORDS, "id", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


def bomb(width: int, lines: int) -> str:
    """Lists of lists by aliases, some hundred bytes for `width` ** `lines` values."""
    rows = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, lines)]
    return "\n".join(rows) + "\n"


ODD_YAML = (
    bomb(9, 9), bomb(2, 30), "[" * 2000, "{a: " * 300, "- " * 500, "&a [*a]", "!!bool maybe", "!!int ''",
    "!!timestamp x", "!!set {a, b}", "!!binary aGk=", "2024-13-01", "1" * 5000, "0x" + "f" * 6000, "1" + ":59" * 3000,
    "? [a]\n: b", "\t",
    "a: 1\na: 2", "{", "'", "|", "---\n---\n", "\ufeff", "\x07", "<<: 1", "{<<: [1]}",
)  # fmt: skip


def dump(tree) -> str:
    """A tree as YAML that holds whatever it holds."""
    try:
        return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)
    except (yaml.YAMLError, ValueError):  # more digits than Python writes
        return "{"


@st.composite
def altered(draw, tree):
    """The tree with one or two of its values, or keys, replaced by something odd."""
    tree = json.loads(json.dumps(tree))
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(tree))
        parent, key = draw(st.sampled_from(places))
        action = draw(st.sampled_from(("value", "value", "value", "drop", "rename")))
        if action == "value" or isinstance(parent, list):
            parent[key] = draw(near(parent[key]) if draw(st.integers(0, 3)) else odd_value)
        elif action == "drop":
            del parent[key]
        else:
            parent[draw(st.sampled_from([*ODD_TEXT, *WORDS]))] = parent.pop(key)
        if not tree:
            break
    return tree


def _places(node):
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in list(pairs):
        yield node, key
        yield from _places(inner)


@st.composite
def yaml_text(draw, tree):
    """A file about like `tree`: altered as data, as text, or not YAML at all."""
    how = draw(st.sampled_from(("data", "data", "data", "text", "odd")))
    text = dump(draw(altered(tree)) if how == "data" else tree)
    if how == "odd":
        return draw(st.sampled_from(ODD_YAML)) if draw(st.booleans()) else text + draw(st.sampled_from(ODD_YAML))
    if how == "text":
        place = draw(st.integers(0, len(text)))
        return text[:place] + draw(st.sampled_from((*ODD_YAML, *ODD_TEXT))) + text[place + draw(st.integers(0, 5)) :]
    return text


def encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")


# -- cases -------------------------------------------------------------------------------------------------------------

SCENARIO = {
    "description": "two", "paper": "none", "version": 1,
    "clients": [{"dataset": "pascal", "tasks": ["human_parts"], "id": "one"},
                {"dataset": "nyud", "tasks": ["depth", "edge"], "count": 2}],
    "partition": {"kind": "equal"}, "evaluation": ["global", "personal"], "exchange": "decoders",
}  # fmt: skip
PARAMETERS = {"clients": {"default": 4, "low": 1, "high": 10, "doc": "how many"}}
GRID = {
    "algos": ["fedavg", "fedhca2[algo.c=0.2]"], "scenarios": ["st_mt_1"], "seeds": "0-1", "preset": "nano", "rounds": 2,
    "set": {"train.lr": 0.001},
    "variants": [{"algo": "fedprox", "name": "prox", "set": {"algo.mu": 0.1}}],
}  # fmt: skip
# What --set may name, with values that are right or nearly so.
KEYS = {
    "train.lr": (0.001, 1, 0.0, -0.1, "1e-3"),
    "train.batch_size": (1, 8, 0, 10**6, 2.0),
    "train.local_epochs.nyud": (1, 3, 0, 10**9),
    "train.local_epochs": ({"nyud": 2}, {"pascal": 1, "nyud": 1}, {"default": 2}, {}, 2),
    "train.optimizer": ("sgd", "adamw", "adam", "Adam"),
    "train.augment": (["flip"], [], ["flip", "flip"], ["turn"], "flip"),
    "train.scales": ({"nyud": [0.5, 2.0]}, [0.5, 2.0], [1.0], [2.0, 0.5], []),
    "train.betas": ([0.9, 0.95], [0.9], [0.9, 1.0], [0.95, 0.9, 0.9]),
    "train.threads": (1, 2, 0, 10**6),
    "train.warmup_epochs": (0, 5, -1, 10**9),
    "train.loss_weights.depth": (1.0, 0.0, -1.0, 10),
    "train.clip_norm": (1.0, None, 0.0, -1.0),
    "data.size.nyud": ([64, 64], [32, 96], [0, 64], [64], [10**6, 10**6], [64.0, 64]),
    "data.size": ({"nyud": [32, 32]}, {"default": [64, 64]}, [64, 64], {}),
    "data.train_samples.nyud": (1, 64, 0, 10**9, 10**15),
    "data.train_samples": ({"nyud": 8, "pascal": 8}, {"nyud": 8}, 8),
    "data.test_samples.pascal": (1, 64, 0, 10**12),
    "data.source": ("synth", "real", "unreal"),
    "data.workers": (0, 2, -1, 10**6),
    "data.personal_fraction": (0.5, 0.0, 1.0, 1.5),
    "model.backbone": ("swin_nano", "resnet_nano", "swin_tiny_patch4_window7_224", "resnet18", "resnet"),
    "model.weights": (None, "weights.safetensors", "/no/where"),
    "model.architecture": ("md", "tc", "fedhca2", "no-such"),
    "model.drop_path": (0.0, 0.1, 1.0, -0.1),
    "federation.rounds": (1, 4, 0, 10**9, 10**12),
    "federation.participation": (1.0, 0.5, 0.0, 2),
    "federation.exchange": ("encoder", "decoders", "all", "none"),
    "evaluation.every": (1, 4, 0, 10**9),
    "evaluation.batch_size": (1, 8, 0, 10**9),
    "evaluation.metrics.depth": ("rmse", "miou", "absrel", "./m.py"),
    "evaluation.metric_options.miou": ({"absent": "zero"}, {"absent": "maybe"}, {"abs": 1}, {}),
    "evaluation.unseen_epochs": (1, 0, -1),
    "scenario.clients": (4, 3, 0, 10**6, []),
    "scenario.clients.0.id": ("one", "a/b", ""),
    "scenario.clients.0.count": (2, 0, 10**6),
    "scenario.clients.0.tasks": (["depth"], ["semseg"], [], ["depth", "depth"]),
    "scenario.partition": ({"kind": "equal"}, {"kind": "dirichlet"}, "equal"),
    "scenario.partition.alpha": (0.5, 0.0, 1e300),
    "scenario.evaluation": (["global"], ["personal", "global"], [], ["local"]),
    "scenario.version": (1, 2, 0),
    "checkpoint_every": (1, 5, 0, 10**9),
    "algo.c": (0.1, 0.4, 0.0, -1),
    "algo.mu": (0.1, 0.0, -1),
    "algo.lr": (0.1, 0, 10**30),
    "seed": (0, 1, 2**40, -1),
    "train": ({"lr": 0.01}, {}, 1),
    **dict.fromkeys(("algo", "scenario", "train.", ".", "", "data.size.nyud.0", "nothing.at.all"), (1, "x")),
}
USUAL_KEYS = [key for key in KEYS if "." in key.strip(".") and not key.startswith(("scenario", "algo", "nothing"))]
METHOD = """\
from dataclasses import dataclass
from fmtlbench.algorithms import ALGORITHMS, Algorithm

@ALGORITHMS.register({name})
class Mine(Algorithm):
    title, paper = "Mine", "none"

    @dataclass(frozen=True)
    class Params:
        strength: float = 0.5

{later}
"""
LATER = (
    "", "Mine.name = {name}", "import sys; sys.exit(0)", "raise SystemExit", "1 / 0", "import nothing_of_the_kind",
    "def f(:",
    "Mine.tracks = ('x',)", "Mine.title = None", "Mine.Params = int", "Mine.refuses = classmethod(lambda *a: 1)",
    "\\x00",
    "Mine.shared = lambda self, index: 'encoder'", "Mine.local_schedule = lambda self, epochs: 'all'",
)  # fmt: skip

TARGETS = (
    "new.csv", "there.csv", "folder", "folder/x.csv", "there.csv/x", "link", "loop", "dangling", "full", "null", "-",
)  # fmt: skip
THERE = {
    "there.csv": b"old",
    "folder/keep": b"",
    "link": Link("there.csv"),
    "loop": Link("loop"),
    "dangling": Link("no/where"),
    "full": Link("/dev/full"),
    "null": Link("/dev/null"),
}
json_plan = ("--dry-run", "--format", "json", "--out", "runs")


@st.composite
def overrides(draw):
    """One to three --set: most with a value that is right or nearly so, since those get far."""
    words = []
    for _ in range(draw(st.integers(1, 3))):
        key = draw(st.sampled_from(USUAL_KEYS if draw(st.integers(0, 3)) else list(KEYS)))
        if draw(st.integers(0, 4)):
            good = draw(st.sampled_from(KEYS[key][: 2 if draw(st.booleans()) else None]))
            text = dump(draw(near(good)) if draw(st.integers(0, 4)) == 0 else good)
        else:
            text = draw(st.one_of(st.sampled_from(ODD_YAML), odd_value.map(dump), odd_text))
        words += ["--set", f"{key}={text.removesuffix('...' + chr(10)).strip(chr(10))}"]
    algo = draw(st.sampled_from(("fedhca2", "local", "fedrep", "fedprox")))
    scenario = draw(st.sampled_from(("st_mt_1", "iid1_sdmt", "st_mt_1_unseen")))
    return Case("override", ("bench", "--algos", algo, "--scenarios", scenario, *words, *json_plan))


@st.composite
def scenarios(draw):
    tree = dict(SCENARIO)
    if draw(st.booleans()):
        clients = [SCENARIO["clients"][0], {**SCENARIO["clients"][1], "count": "$clients"}]
        tree = {**SCENARIO, "parameters": PARAMETERS, "clients": clients}
    text = encoded(draw(yaml_text(tree)))
    show = ("show", "scenario", "s.yml") + (("--json",) if draw(st.booleans()) else ())
    plan = ("bench", "--algos", "fedavg", "--scenarios", "s.yml", *json_plan)
    return Case("scenario", draw(st.sampled_from((show, plan))), {"s.yml": text})


@st.composite
def grids(draw):
    return Case("grid", ("bench", "grid.yml", *json_plan), {"grid.yml": encoded(draw(yaml_text(GRID)))})


@st.composite
def names(draw):
    """An odd name of a client, a scenario's file, or a method."""
    name = draw(odd_text)
    what = draw(st.sampled_from(("client", "scenario", "method")))
    if what == "method":
        later = draw(st.sampled_from(LATER)).replace("{name}", ascii(draw(odd_text)))
        registered = draw(st.sampled_from((name, "mine", 5, None)))
        files = {"m.py": encoded(METHOD.format(name=ascii(registered), later=later))}
        return Case("name", ("bench", "--algos", "./m.py", "--scenarios", "st_mt_1", *json_plan), files)
    stem, tree = "s", json.loads(json.dumps(SCENARIO))
    if what == "client":
        tree["clients"][0]["id"] = name
    else:
        stem = name.replace("/", "").replace("\0", "").encode("utf-8", "replace").decode()[:60] or "."
    argv = ("bench", "--algos", "fedavg", "--scenarios", f"{stem}.yml", *json_plan)
    return Case("name", argv, {f"{stem}.yml": encoded(dump(tree))})


@functools.cache
def stored_config() -> dict:
    from fmtlbench.config.resolve import resolve

    return yaml.safe_load(resolve("fedavg", "st_mt_1").dump())


@st.composite
def stored_configs(draw):
    """The config.yaml of a run that somebody sends."""
    return Case("stored", ("predict", "run"), {"run/config.yaml": encoded(draw(yaml_text(stored_config())))})


@st.composite
def outputs(draw):
    # Nothing but names in the case's own folder: what is named is written.
    name = draw(st.sampled_from(TARGETS) | odd_text.filter(lambda text: "/" not in text))
    what = draw(st.sampled_from((("papers", "list", "matfl_table1"), ("show", "scenario", "st_mt_1"))))
    return Case("output", (*what, "-o", name), THERE)


# -- what becomes of one -----------------------------------------------------------------------------------------------


class TookTooLong(BaseException):
    """Raised by an alarm; no `except Exception` on the way stops it."""


@contextlib.contextmanager
def alarm(seconds: float):
    """Raise TookTooLong after so many seconds of work, or six times as many on the clock: machines are busy."""

    def ring(number, frame):
        raise TookTooLong

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, 6 * seconds)}
    before = {number: signal.signal(number, ring) for number in timers}
    for timer, most in timers.values():
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def set_up(case: Case, folder: Path) -> None:
    """Put the files of a case where its command finds them."""
    if case.template is not None:
        shutil.copytree(case.template, folder, symlinks=True, dirs_exist_ok=True, copy_function=_copy)
    for name, content in case.files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # it may be shared with the template
            if isinstance(content, Link):
                path.symlink_to(content.target)
            elif isinstance(content, Fifo):
                os.mkfifo(path)
            elif content is not None:
                path.write_bytes(content)
        except (OSError, ValueError):  # a name that no file system takes: then the file is missing
            continue


def _copy(source: str, target: str) -> None:
    # Nothing that is as large as weights is ever written in place.
    (os.link if Path(source).stat().st_size > 2**18 else shutil.copyfile)(source, target)


def run_command(case: Case, folder: Path, deadline: float = DEADLINE) -> tuple[str, str]:
    """(outcome, what was said) of a case in this process, in an empty folder."""
    from fmtlbench.cli import main

    set_up(case, folder)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2))
    here, before = Path.cwd(), {key: os.environ.get(key) for key in case.environment}
    os.chdir(folder)
    os.environ.update(case.environment)
    try:
        with (
            alarm(deadline),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("default", RuntimeWarning)  # of arithmetic: on a terminal they would be seen
            warnings.showwarning = lambda text, kind, file, line, *more: sys.stderr.write(
                f"Warning: {text} at {file}:{line}\n"
            )
            code = main(list(case.argv))
    except SystemExit as error:  # argparse's own complaints; from elsewhere it is a plug-in that got away
        frames = traceback.extract_tb(error.__traceback__)
        if "argparse" not in frames[-1].filename:
            return "traceback", f"SystemExit({error.code}) at {frames[-1].filename}:{frames[-1].lineno}"
        return "refused", f"argparse: {error.code}"
    except TookTooLong:
        return "hang", f"longer than {deadline} s"
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        return "traceback", f"{type(error).__name__}: {str(error)[:100]} at {frames[-1].filename}:{frames[-1].lineno}"
    finally:
        os.chdir(here)
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))
    return judge(code, *texts, case.lists_first)


def judge(code: int, out: str, err: str, lists_first: bool = False) -> tuple[str, str]:
    """Exit code and streams → outcome."""
    lines = err.splitlines()
    if any(line.startswith(("Warning: ", "Traceback")) for line in lines):
        return "untidy", f"{code}: {err[:300]!r}"
    if code == 0:
        try:
            runs = json.loads(out)["runs"]
        except (ValueError, KeyError, TypeError):
            return "ok", ""
        for run in [run for run in runs if isinstance(run, dict)]:  # `runs diff` names two folders
            parts = Path(run["folder"]).parts
            if len(parts) != 4 or parts[0] != "runs" or ".." in parts or not run["folder"].isprintable():
                return "escaped", run["folder"]
        return "ok", ""
    if "out of memory" in err:
        return "memory", f"{code}: {err[:300]!r}"
    failed = [line for line in out.splitlines() if line.startswith("failed: ")]
    if code == 1 and failed and all(line.startswith('{"event": ') for line in lines):  # a bench tells so of its runs
        return "refused", f"{code}: {failed[0][:300]!r}"
    refusals = [line for line in lines if line.startswith("fmtlbench: ")]
    alone = lines == refusals or (lists_first and len(lines) < 20 and lines[-1:] == refusals)
    tidy = code in (1, 2) and len(refusals) == 1 and alone and max(map(len, lines)) < 2000
    return ("refused" if tidy else "untidy"), f"{code}: {err[:300]!r}"
