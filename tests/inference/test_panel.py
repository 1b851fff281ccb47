"""The panel: one row per image, clients with other tasks side by side, true borders on predicted classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fmtlbench.inference.panel import (
    LARGEST,
    SMALLEST,
    PanelRow,
    PanelTask,
    draw_panel,
    merge_clients,
    write_examples,
)

SIDE = 8


def label(task):
    if task == "semseg":
        return np.repeat(np.array([0, 1], np.uint8), SIDE // 2)[None].repeat(SIDE, 0)  # left and right
    return np.full((SIDE, SIDE), 2.0, np.float32)


def row(client, tasks, image="00000", shade=0.5):
    picture = np.full((SIDE, SIDE, 3), shade)
    names = {"semseg": ("wall", "floor")}
    of = [PanelTask(task, label(task), [label(task).copy()] * 2, names.get(task)) for task in tasks]
    return PanelRow(client, image, picture, of)


def pictures(figure):
    return [axes for axes in figure.axes if axes.images]


def test_clients_of_the_same_images_share_a_row():
    rows = [row("a", ["semseg"]), row("a", ["semseg"], "00001"), row("b", ["depth"]), row("b", ["depth"], "00001")]
    merged = merge_clients(rows)
    assert [(r.client, r.image, [of.task for of in r.tasks]) for r in merged] == [
        ("a, b", "00000", ["semseg", "depth"]),
        ("a, b", "00001", ["semseg", "depth"]),
    ]
    assert len(pictures(draw_panel(merged, ["One", "Two"]))) == 2 * (1 + 2 * 3)


@pytest.mark.parametrize("other", [row("b", ["semseg"]), row("b", ["depth"], "00007"), row("b", ["depth"], shade=0.6)])
def test_other_images_and_equal_tasks_stay_apart(other):
    rows = [row("a", ["semseg"]), other]
    assert merge_clients(rows) == rows


def test_true_borders_lie_on_predictions_only():
    figure = draw_panel([row("a", ["semseg"])], ["One", "Two"])
    _, truth, *predicted = pictures(figure)
    assert not truth.lines and len(predicted) == 2
    for axes in predicted:
        border = axes.lines[0]
        assert set(border.get_xdata()) == {SIDE / 2 - 0.5}  # between the two halves
        assert axes.get_xlim() == (-0.5, SIDE - 0.5)


def test_a_large_picture_is_made_smaller_before_it_is_drawn():
    large = replace(row("a", ["depth"]), picture=np.random.default_rng(0).random((600, 1200, 3)))
    [drawn, *_] = pictures(draw_panel([large], ["One"]))
    assert drawn.images[0].get_array().shape == (256, 512, 3)
    assert drawn.images[0].get_array().std() < 0.8 * large.picture.std()  # averaged, not picked


def test_examples_are_pictures_without_a_border(tmp_path):
    write_examples(tmp_path, [row("a", ["semseg", "depth"])])
    found = sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.png"))
    names = ("depth-prediction", "depth-truth", "input", "semseg-prediction", "semseg-truth")
    assert found == [f"a/00000/{name}.png" for name in names]
    with Image.open(tmp_path / "a" / "00000" / "input.png") as picture:
        pixels = np.array(picture.convert("RGB"))
    assert SMALLEST <= pixels.shape[1] <= LARGEST and abs(pixels.astype(int) - 128).max() <= 1
