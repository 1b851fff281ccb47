"""Predictions that were made elsewhere with something wrong in them, for `fmtlbench score`."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from pathlib import Path

import numpy as np
from cases import ODD_TEXT, Case, Fifo, Link, odd_text
from damaged_runs import DATASET, damaged, new_folder, run_of, trained_runs
from evaluate_inputs import CHANGES, INSTEAD, PICTURES, picture
from hypothesis import strategies as st
from robots import good_array, npy, robots


@functools.cache
def predicted_runs() -> Path:
    """The trained runs, a scenario, and in `out` what one of them predicts."""
    import shutil

    from fmtlbench.cli import main

    folder = new_folder()
    shutil.copytree(trained_runs(), folder, dirs_exist_ok=True)
    run = next((folder / "runs/duo/local").iterdir())
    words = ["predict", str(run), "--device", "cpu", "-o", str(folder / "out")]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            assert main([*words, "--arrays"]) == 0
        except SystemExit:  # an older package, in which depth alone is an array
            assert main(words) == 0
    return folder


@st.composite
def outside_predictions(draw):
    """Predictions in the setting of a run, or on a dataset in a folder, of which something is wrong."""
    name = draw(odd_text) if draw(st.integers(0, 3)) == 0 else "Mine"
    more = draw(st.sampled_from(((), (), (), ("--by", "A. Author"), ("--by", "a\nb"), ("--split", "personal"),
                                 ("--split", "x"), ("--trust",), ("--client", "nobody"), ("--tasks", "depth"),
                                 ("--seed", "1"), ("-o", "there.txt"), ("-o", "-"))))  # fmt: skip
    files = {"there.txt": b"old"}
    if draw(st.integers(0, 2)):
        template = predicted_runs()
        run, _ = run_of("local")
        argv = ("score", "out", "--name", name, "--like", run, *more)
        good = sorted(file for file in (template / "out").rglob("*.npy") if "examples" not in file.parts)
        place = draw(st.sampled_from(good))
        target, array = str(place.relative_to(template)), np.load(place)
        if draw(st.integers(0, 5)) == 0:  # the run instead of what is predicted
            target, content = f"{run}/config.yaml", (template / run / "config.yaml").read_bytes()
            files[target] = draw(damaged("config.yaml", content))
            return Case("external", argv, files, str(template), lists_first=True)
    else:
        template = None
        files |= {**robots(), "robots/dataset.yml": json.dumps(DATASET).encode()}
        files |= {f"out/{task}/2.npy": npy(good_array(task, 2)) for task in ("semseg", "depth")}
        files["out/semseg/2.npy"] = npy(good_array("semseg", 2) % 3)
        argv = ("score", "out", "--name", name, "--dataset", "robots/dataset.yml", *more)
        task = draw(st.sampled_from(("semseg", "depth")))
        target, array = f"out/{task}/2.npy", good_array(task, 2)
    how = draw(st.sampled_from(("array",) * 4 + ("picture", "instead", "more", "nothing")))
    if how == "array":
        with np.errstate(all="ignore"):
            files[target] = npy(_changed(draw(st.sampled_from(sorted(CHANGES))), array))
    elif how == "picture":
        files[target] = None
        files[target.replace(".npy", ".png")] = picture(draw(st.sampled_from(PICTURES)), np.nan_to_num(array))
    elif how == "instead":
        files[target] = draw(st.sampled_from(INSTEAD))
    elif how == "more":
        other = draw(st.sampled_from([text for text in ODD_TEXT if "/" not in text and text.strip(". ")]))
        files[f"out/{other}"] = draw(st.sampled_from((b"x", Link("."), Link("gone"), Fifo())))
    return Case("external", argv, files, None if template is None else str(template), lists_first=True)


def _changed(how: str, array: np.ndarray) -> np.ndarray:
    try:
        return CHANGES[how](array)
    except (ValueError, TypeError):  # a change that an array of this shape does not have
        return array
