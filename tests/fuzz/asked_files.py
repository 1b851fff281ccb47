"""Files that say what to run, with something wrong in them: presets, run files, grids with ranges; and such flags."""

from __future__ import annotations

import json

from cases import (
    GRID,
    KEYS,
    ODD_TEXT,
    ODD_YAML,
    Case,
    Fifo,
    Link,
    dump,
    encoded,
    json_plan,
    odd_value,
    stored_config,
    yaml_text,
)
from hypothesis import strategies as st

PRESET = {
    "description": "small", "extends": "nano",
    "data": {"size": {"nyud": [32, 64]}, "train_samples": {"nyud": 8}}, "model": {"backbone": "swin_nano"},
    "train": {"lr": 0.005, "batch_size": 4, "local_epochs": {"nyud": 1, "pascal": 1}},
    "federation": {"rounds": 2}, "algorithms": {"fedhca2": {"c": 0.2}}, "checkpoint_every": 1,
}  # fmt: skip
RUN = {
    "algo": "fedavg", "scenario": "st_mt_1", "preset": "nano", "seed": 1, "rounds": 2, "out": "runs",
    "set": {"train.lr": 0.001, "data.train_samples.nyud": 8}, "log": [], "fresh": False, "keep": "weights",
    "device": "cpu", "data-root": None, "reuse": "same-code", "energy": False, "executor": "serial",
}  # fmt: skip
# What a preset may extend: names, itself, a file beside it, a circle of two, a chain to a bomb, and no file at all.
EXTENDS = ("nano", "paper", "low.yml", "mine.yml", "circle.yml", "bomb.yml", "pipe.yml", "loop.yml", "sub/../mine.yml",
           "no.yml", "../../up.yml", "", "NANO", 5, ["nano"], None)  # fmt: skip


@st.composite
def presets(draw):
    """A preset by its file, with what it extends, for everything that takes one."""
    tree = {**PRESET, "extends": draw(st.sampled_from(EXTENDS))} if draw(st.booleans()) else PRESET
    text = draw(yaml_text(tree)) if draw(st.integers(0, 3)) else dump(tree)
    files = {
        "mine.yml": encoded(text),
        "low.yml": encoded(draw(yaml_text(PRESET)) if draw(st.booleans()) else dump(PRESET)),
        "circle.yml": b"extends: mine.yml\n",
        "bomb.yml": encoded(draw(st.sampled_from(ODD_YAML))),
        "pipe.yml": Fifo(),
        "loop.yml": Link("loop.yml"),
    }
    name = draw(st.sampled_from(("mine.yml",) * 6 + ("circle.yml", "bomb.yml", "pipe.yml", "loop.yml", "nano.yml")))
    argv = draw(
        st.sampled_from(
            (
                ("show", "preset", name),
                ("show", "preset", name, "--json"),
                ("show", "config", "--algo", "fedhca2", "--scenario", "st_mt_1", "--preset", name, "--device", "cpu"),
                ("bench", "--algos", "fedavg", "--scenarios", "st_mt_1", "--preset", name, *json_plan),
                ("score", "out", "--name", "Mine", "--scenario", "st_mt_1", "--preset", name),
            )
        )
    )
    return Case("preset", argv, files)


@st.composite
def run_files(draw):
    """A file for --config: the words of flags, or the config of an earlier run."""
    tree = draw(st.sampled_from((RUN, RUN, stored_config())))
    text = draw(yaml_text(tree)) if draw(st.integers(0, 5)) else dump(tree)
    more = draw(st.sampled_from(((), (), ("--seed", "3"), ("--rounds", "0"), ("--algo", "local"), ("--preset", "x"),
                                 ("--set", "train.lr=1"), ("--scenario", "mine.yml"))))  # fmt: skip
    # No GPU is here: what gets as far as to be run is refused for that, not trained for hours.
    verb = draw(st.sampled_from((("show", "config", "--device", "cpu"),) * 3 + (("run", "--device", "cuda"),)))
    return Case("run file", (*verb, "--config", "mine.yml", *more), {"mine.yml": encoded(text)})


NUMBERS = ("0.1", "1", "1e-4", "1e-2", "4", "0", "-1", "1e400", "nan", "inf", "true", "x", "", "1e-320", "9" * 30, "é")
ENDS = ("", ":5", ":log5", ":log", ":0", ":1", ":-3", ":1001", ":log1001", ":9999999999999999999999", ":x", ":", "::5")
BOTH = (("train.batch_size", "1..4"), ("fedavg:train.batch_size", "1,2,4"), ("train.optimizer", "adam,sgd"))
GOOD = {
    "sweep": (("train.lr", "1e-4..1e-2:log5"), ("train.lr", "0.1..0.5:5"), ("fedhca2:algo.c", "0.1..0.4:3"), *BOTH),
    "search": (("train.lr", "1e-4..1e-2:log"), ("train.lr", "0.1..0.8"), ("fedhca2:algo.c", "0.1..0.4"), *BOTH),
}
KEYS_OF_RANGES = ("train.lr", "fedavg:train.lr", "local:train.batch_size", "algo.c", "fedhca2:algo.c", "no:train.lr")


@st.composite
def interval(draw):
    low, high = (draw(st.sampled_from(NUMBERS[:5] if draw(st.integers(0, 2)) else NUMBERS)) for _ in range(2))
    dots = ".." if draw(st.integers(0, 5)) else draw(st.sampled_from(("...", ".", "....", "../", ",")))
    return f"{low}{dots}{high}{draw(st.sampled_from(ENDS[:4] if draw(st.booleans()) else ENDS))}"


values = st.lists(st.sampled_from((*NUMBERS, "adam", "sgd", "[1, 2]", "{a: 1}", "[")), max_size=4).map(",".join)
a_range = st.one_of(interval(), interval(), values, st.sampled_from(ODD_TEXT), st.sampled_from(ODD_YAML))


@st.composite
def ranges(draw):
    """Ranges of values to try, most of them malformed, by flags or in a grid."""
    key = st.sampled_from(KEYS_OF_RANGES if draw(st.integers(0, 3)) else (*KEYS, *ODD_TEXT))
    flag = draw(st.sampled_from(("sweep", "sweep", "search")))
    pairs = [draw(st.sampled_from(GOOD[flag]))]
    if draw(st.booleans()):
        pairs = [*pairs[draw(st.integers(0, 1)) :], (draw(key), draw(a_range))]
    tuned = draw(st.booleans())
    more = draw(st.sampled_from((("--tune",), ("--tune", "--tune-on", "local"), ("--tune", "--validation", "0.5"),
                                 ("--tune", "--validation", "nan"), ("--tune", "--tune-seeds", "0-1"),
                                 ("--tune", "--tune-seeds", "x")))) if tuned else ()  # fmt: skip
    if flag == "search" or draw(st.integers(0, 9)) == 0:
        more += ("--trials", draw(st.sampled_from(("3", "3", "3", "1", "0", "-1", "1001", "x"))))
    plan = ("--dry-run", "--format", draw(st.sampled_from(("json", "table", "sh"))), "--out", "runs")
    if draw(st.integers(0, 2)):
        words = [word for name, text in pairs for word in (f"--{flag}", f"{name}={text}")]
        argv = ("bench", "--algos", "fedavg,fedhca2", "--scenarios", "st_mt_1", *words, *more, *plan)
        return Case("range", argv)
    lists = draw(st.booleans())
    told = {name: draw(odd_value) if lists and draw(st.booleans()) else text for name, text in pairs}
    tree = {**GRID, flag: told}
    if flag == "search" or draw(st.integers(0, 9)) == 0:
        tree["trials"] = draw(st.sampled_from((3, 3, 3, 0, "x", 10**12, None)))
    if draw(st.booleans()):
        tree["tune"] = {draw(st.sampled_from(("fedavg", "no-such", ""))): told}
    text = dump(tree) if draw(st.booleans()) else draw(yaml_text(json.loads(json.dumps(tree))))
    return Case("range", ("bench", "grid.yml", *more, *plan), {"grid.yml": encoded(text)})
