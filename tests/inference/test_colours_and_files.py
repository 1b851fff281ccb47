"""One palette for everything, and files that hold exactly what they say."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.data.datasets._files import read_array
from fmtlbench.inference.prediction_folder import ABOUT, replace_predictions
from fmtlbench.tasks import TASKS
from fmtlbench.tasks._kinds._colours import blend_depth, class_colours, palette, voc_palette

NAMES = {"semseg": tuple(map(str, range(21))), "human_parts": ("background", *"abcdef")}


def write_prediction(folder, task, name, value, names):
    TASKS[task].kind.write_prediction(folder, name, value, names.get(task))


def read_prediction(path, task):
    return TASKS[task].kind.read_prediction(read_array(path))


def test_voc_colours_are_vocs():
    colours = (voc_palette(21) * 255).astype(int).tolist()
    assert colours[:5] == [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128]]
    assert colours[8] == [64, 0, 0] and colours[15] == [192, 128, 128] and colours[20] == [0, 64, 128]


@pytest.mark.parametrize("count", [7, 13, 21, 40])
def test_every_class_has_its_own_colour_and_ignored_another(count):
    colours = class_colours(count)
    assert colours.shape == (count + 1, 3)
    assert len(np.unique((colours * 255).round(), axis=0)) == count + 1


def test_other_counts_use_the_one_palette_and_a_pale_background():
    assert np.array_equal(class_colours(40)[:-1], palette(40))
    assert np.ptp(class_colours(7, NAMES["human_parts"])[0]) == 0
    assert np.array_equal(class_colours(7, NAMES["human_parts"])[1:-1], palette(7)[1:])


@pytest.mark.parametrize("task", ["semseg", "human_parts"])
def test_class_numbers_come_back_and_look_like_their_colours(tmp_path, task):
    count = len(NAMES[task])
    value = np.random.default_rng(0).integers(0, count, (9, 14))
    write_prediction(tmp_path, task, "a", value, NAMES)
    assert np.array_equal(read_prediction(tmp_path / "a.png", task), value)
    with Image.open(tmp_path / "a.png") as picture:
        seen = np.array(picture.convert("RGB"))
    assert np.array_equal(seen, np.rint(class_colours(count, NAMES[task])[value] * 255))


def test_eight_bits_are_half_a_step_off_at_most(tmp_path):
    rng = np.random.default_rng(0)
    probability = rng.random((9, 14), np.float32)
    normals = rng.normal(size=(3, 9, 14)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=0)
    write_prediction(tmp_path, "sal", "s", probability, NAMES)
    write_prediction(tmp_path, "normals", "n", normals, NAMES)
    assert np.abs(read_prediction(tmp_path / "s.png", "sal") - probability).max() <= 0.5 / 255 + 1e-6
    assert np.abs(read_prediction(tmp_path / "n.png", "normals") - normals).max() <= 0.5 / 127.5 + 1e-6


def test_depth_is_exact_and_its_picture_has_a_fixed_scale(tmp_path):
    metres = np.array([[0.5, 5.0], [10.0, 80.0]], np.float32)
    write_prediction(tmp_path, "depth", "d", metres, NAMES)
    assert np.array_equal(read_prediction(tmp_path / "d.npy", "depth"), metres)
    picture = blend_depth(metres, TASKS["depth"].kind.highest)
    with Image.open(tmp_path / "d.png") as saved:
        assert np.array_equal(np.array(saved), picture)
    assert np.array_equal(picture[1, 0], picture[1, 1]) and not np.array_equal(picture[0, 0], picture[0, 1])


# -- folders that are replaced as a whole ----------------------------------------------------------------------------


def fill(folder, text):
    with replace_predictions(folder) as partial:
        (partial / ABOUT).write_text("{}")
        (partial / text / "depth").mkdir(parents=True)
        (partial / text / "depth" / "0.png").write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_replaces_all_of_the_old(tmp_path):
    fill(tmp_path / "a" / "p", "one")
    fill(tmp_path / "a" / "p", "two")
    assert names(tmp_path / "a" / "p") == [ABOUT, "two"] and names(tmp_path / "a") == ["p"]


@pytest.mark.parametrize(
    ("error", "told"),
    [(OSError(28, "No space left on device"), FmtlbenchError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_a_failure_keeps_all_of_the_old(tmp_path, error, told):
    fill(tmp_path / "p", "one")
    with pytest.raises(told), replace_predictions(tmp_path / "p") as partial:
        (partial / "half").write_text("")
        raise error
    assert names(tmp_path / "p") == ["one", ABOUT] and names(tmp_path) == ["p"]


def test_other_peoples_folders_are_left_alone(tmp_path):
    (tmp_path / "p").mkdir()
    fill(tmp_path / "p", "one")  # an empty folder is free
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    for name, said in (("mine", "holds other files"), ("file", "expected a folder")):
        with pytest.raises(UsageError, match=said):
            fill(tmp_path / name, "x")
    assert names(tmp_path / "mine") == ["thesis.tex"] and names(tmp_path) == ["file", "mine", "p"]


def test_files_of_others_among_predictions_stay(tmp_path):
    folder = tmp_path / "p"
    fill(folder, "one")
    (folder / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match=r"would remove thesis\.tex"):
        fill(folder, "two")
    assert (folder / "thesis.tex").read_text() == "mine"
