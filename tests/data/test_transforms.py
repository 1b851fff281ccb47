"""The papers' transforms: image and labels move together, labels are never mixed, padding is ignored."""

from __future__ import annotations

import numpy as np
import pytest
from fake_real import position_sample

from fmtlbench.base.errors import UsageError
from fmtlbench.data.tensors import to_tensors
from fmtlbench.data.transforms import AUGMENTATIONS, COLOUR, geometry, test_transform, train_transform
from fmtlbench.data.transforms.geometry import centred, draw_crop

scored = test_transform
del test_transform  # pytest would take it for a test
ALL = AUGMENTATIONS


def rng(seed=0):
    return np.random.default_rng(seed)


def inside(result):
    """Where there is no padding: depth is never zero in these samples."""
    return result["depth"] > 0


# -- evaluation: padding -----------------------------------------------------------------------------------------------


def test_padding_is_centred_and_marked_in_every_label():
    sample = position_sample(5, 8)
    result = scored(sample, (8, 13))
    body = np.s_[1:6, 2:10]  # the odd pixel goes below and to the right
    for key, fill in {"semseg": 255, "human_parts": 255, "sal": 255, "edge": 255, "normals": 0, "depth": 0}.items():
        assert np.array_equal(result[key][body], sample[key])
        rest = np.ones((8, 13), bool)
        rest[body] = False
        assert result[key].dtype == sample[key].dtype and (result[key][rest] == fill).all()
    assert np.array_equal(result["image"][body], sample["image"]) and result["image"].dtype == np.float32
    assert (result["image"][rest] == COLOUR).all()


def test_padding_is_the_mean_colour_and_ignored_once_it_is_a_tensor():
    result = scored(position_sample(4, 4), (4, 6))
    tensors = to_tensors({key: value[None] for key, value in result.items()}, "cpu")
    assert tensors["image"][..., [0, 5]].abs().max() < 1e-6
    assert all((tensors[key][..., [0, 5]] == 255).all() for key in tensors if key != "image")


def test_an_image_larger_than_the_size_loses_its_border():
    sample = position_sample(11, 20)
    result = scored(sample, (6, 24))
    assert np.array_equal(result["semseg"][:, 2:22], sample["semseg"][2:8])
    assert np.array_equal(result["image"][:, 2:22], sample["image"][2:8])


def test_human_parts_without_people_are_ignored_as_a_whole():
    sample = position_sample(6, 6)
    sample["human_parts"][:] = 0
    sample["human_parts"][0] = 255
    assert (scored(sample, (6, 6))["human_parts"] == 255).all()
    sample["human_parts"][3, 3] = 4
    assert np.array_equal(scored(sample, (6, 6))["human_parts"], sample["human_parts"])


# -- training ----------------------------------------------------------------------------------------------------------


def test_without_augmentations_training_is_evaluation():
    sample = position_sample(9, 14)
    for key, value in train_transform(sample, (12, 12), (), rng()).items():
        assert np.array_equal(value, scored(sample, (12, 12))[key])


@pytest.mark.parametrize("augment", [("scale",), ("crop",), ("flip",), ("scale", "crop", "flip"), ALL])
def test_image_and_labels_stay_aligned(augment):
    """All labels of a pixel come from one source pixel, and the image shows that pixel there."""
    sample = position_sample(60, 80)
    for seed in range(20):
        result = train_transform(sample, (48, 56), augment, rng(seed))
        assert {value.shape[:2] for value in result.values()} == {(48, 56)}
        kept = inside(result)
        source = result["semseg"][kept], result["human_parts"][kept]
        for key in ("sal", "edge"):
            assert np.array_equal(result[key][kept], sample[key][source])
        ratio = result["depth"][kept] / sample["depth"][source]
        assert np.ptp(ratio) < 1e-5 and 0.49 < ratio[0] < 2.01 and (ratio[0] == 1 or "scale" in augment)
        sides = [np.array_equal(result["normals"][kept], sample["normals"][source] * [side, 1, 1]) for side in (1, -1)]
        assert sides[0] or (sides[1] and "flip" in augment)
        if "photometric" not in augment:
            away = np.abs(result["image"][kept][:, :2] / 2 - np.stack(source, -1))
            assert away.max() <= 1.51  # half a pixel for interpolation; labels are taken at corners, not centres
        for key in ("semseg", "human_parts", "sal", "edge"):
            assert (result[key][~kept] == 255).all()


def test_scale_keeps_depth_consistent_and_never_mixes_labels():
    sample = position_sample(40, 50)
    sample["depth"][:, ::3] = 0  # holes
    values = {key: set(np.unique(sample[key]).tolist()) for key in ("semseg", "human_parts", "sal", "edge")}
    for seed in range(6):
        scale = geometry.draw_scale(rng(seed))
        result = train_transform(sample, (90, 110), ("scale",), rng(seed))
        height, width = int(40 * scale), int(50 * scale)
        assert np.count_nonzero(result["edge"] != 255) == height * width
        window = centred((40, 50), (90, 110), scale)
        moved = sample["depth"][window.rows.nearest()[:, None], window.columns.nearest()]
        np.testing.assert_allclose(result["depth"][window.inside], moved / scale, rtol=1e-6)
        assert all(set(np.unique(result[key]).tolist()) <= allowed | {255} for key, allowed in values.items())


def test_half_of_the_images_are_mirrored_and_their_normals_turned():
    sample = position_sample(10, 12)
    mirrored = 0
    for seed in range(60):
        result = train_transform(sample, (10, 12), ("flip",), rng(seed))
        if not np.array_equal(result["image"], sample["image"]):
            mirrored += 1
            for key, value in result.items():
                turned = value * np.float32([-1, 1, 1]) if key == "normals" else value
                assert np.array_equal(turned[:, ::-1], sample[key])
    assert 18 < mirrored < 42


def test_a_flat_image_stays_flat_at_any_scale():
    sample = {"image": np.full((31, 17, 3), 99, np.uint8)}
    for seed in range(8):
        window = centred((31, 17), (70, 40), geometry.draw_scale(rng(seed)))
        assert (window.image(sample["image"], np.uint8) == 99).all()


# -- the crop rule -----------------------------------------------------------------------------------------------------


def share(labels):
    counts = np.bincount(labels[labels != 255].ravel(), minlength=2)
    return counts.max() / max(counts.sum(), 1)


def test_a_crop_has_at_most_three_quarters_of_one_class_where_there_is_such_a_crop():
    sample = position_sample(64, 64)
    sample["semseg"][:] = 3
    sample["semseg"][20:44, 20:44] = 5
    sample["semseg"][:4] = 255  # does not count as a class
    shares = [share(train_transform(sample, (24, 24), ("crop",), rng(seed))["semseg"]) for seed in range(40)]
    plain = [
        share(draw_crop(centred((64, 64), (24, 24)), None, rng(s)).label(sample["semseg"], 255)) for s in range(40)
    ]
    assert sum(s <= 0.75 for s in shares) > 30 > 1.5 * sum(s <= 0.75 for s in plain)


def test_a_single_class_falls_back_to_some_crop():
    sample = position_sample(40, 40)
    sample["semseg"][:] = 3
    starts = {float(train_transform(sample, (8, 8), ("crop",), rng(seed))["image"][0, 0, 0]) for seed in range(20)}
    assert len(starts) > 5


def test_crops_reach_every_corner():
    window = centred((10, 12), (8, 9))
    drawn = [draw_crop(window, None, rng(seed)) for seed in range(200)]
    assert {(w.rows.start, w.columns.start) for w in drawn} == {(r, c) for r in range(3) for c in range(4)}


# -- randomness and wrong inputs ---------------------------------------------------------------------------------------


def test_the_generator_decides_everything_and_the_sample_is_left_alone():
    sample = position_sample(30, 40)
    before = {key: value.copy() for key, value in sample.items()}
    for value in sample.values():
        value.flags.writeable = False
    one, two, other = (train_transform(sample, (24, 24), ALL, rng(seed)) for seed in (4, 4, 5))
    assert all(np.array_equal(one[key], two[key]) for key in one)
    assert not np.array_equal(one["image"], other["image"])
    assert all(np.array_equal(sample[key], before[key]) for key in sample)


def test_the_order_of_names_does_not_matter():
    sample = position_sample(30, 40)
    one, two = (train_transform(sample, (24, 24), names, rng(1)) for names in (ALL, ALL[::-1]))
    assert all(np.array_equal(one[key], two[key]) for key in one)


def test_wrong_inputs_are_named():
    with pytest.raises(UsageError, match=r"no augmentation 'flop'; did you mean 'flip'"):
        train_transform(position_sample(8, 8), (8, 8), ("flop",), rng())
    sample = position_sample(8, 8)
    sample["depth"] = sample["depth"][:, :-1]
    for call in (lambda: scored(sample, (8, 8)), lambda: train_transform(sample, (8, 8), ALL, rng())):
        with pytest.raises(UsageError, match="depth has 8×7 pixels, its image 8×8"):
            call()
