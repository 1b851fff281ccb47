"""Parity with the public meters (FedHCA²), under the options that reproduce them. Tolerances: golden README, C."""

from __future__ import annotations

import numpy as np
import pytest
from golden_files import cases
from golden_meters import feed

from fmtlbench.metrics import RMSE, EdgeLoss, EdgeLossPublic, MaxF, MeanAngle, MeanIoU

SETS = cases("C_meters/sal_set{}.npz", range(3))  # every meter has the same sets


@pytest.mark.parametrize("number", SETS)
@pytest.mark.parametrize(("name", "classes"), [("semseg_pascalcontext", 21), ("semseg_nyud", 40), ("human_parts", 7)])
def test_miou(golden, name, classes, number):
    file = golden(f"C_meters/{name}_set{number}.npz")
    meter = feed(MeanIoU(num_classes=classes, absent="zero"), file, lambda p, g: (p, g.astype(np.int64)))
    confusion = meter.state()["confusion"]
    hit = confusion.diagonal()
    np.testing.assert_array_equal(hit, file["state_tp"])
    np.testing.assert_array_equal(confusion.sum(0) - hit, file["state_fp"])
    np.testing.assert_array_equal(confusion.sum(1) - hit, file["state_fn"])
    expected = golden("C_meters/scores_fedhca2.json")[f"{name}_set{number}"]["mIoU"]
    assert meter.compute().value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("number", SETS)
@pytest.mark.parametrize("name", ["sal", "sal_emptymask", "sal_integer_preds"])
def test_maxf(golden, name, number):
    file = golden(f"C_meters/{name}_set{number}.npz")
    meter = feed(MaxF(), file, lambda p, g: (p / np.float32(255), g))
    state = meter.state()
    np.testing.assert_array_equal(state["hit"], file["state_true_positives"])
    np.testing.assert_array_equal(state["predicted"], file["state_predicted_positives"])
    assert state["actual"] == file["state_actual_positives"][0]
    expected = golden("C_meters/scores_fedhca2.json")[f"{name}_set{number}"]
    result = meter.compute()
    assert result.value == pytest.approx(expected["maxF"], abs=1e-3)
    assert result.extras["sal_mIoU"] == pytest.approx(expected["mIoU"], abs=1e-3)


@pytest.mark.parametrize("number", SETS)
def test_maxf_scores_the_empty_mask_on_which_the_public_meter_divides_by_zero(golden, number):
    assert "ZeroDivisionError" in golden("C_meters/scores_fedhca2.json")[f"sal_crash_set{number}"]["raises"]
    meter = feed(MaxF(), golden(f"C_meters/sal_crash_set{number}.npz"), lambda p, g: (p / np.float32(255), g))
    result = meter.compute()
    assert 0 < result.value < 100
    assert 0 < result.extras["sal_mIoU"] < 100


@pytest.mark.parametrize("number", SETS)
def test_merr(golden, number):
    file = golden(f"C_meters/normals_set{number}.npz")
    meter = feed(MeanAngle(zero="count"), file, lambda p, g: (np.moveaxis(p, 3, 1) / 255 * 2 - 1, g))
    assert meter.state()["pixels"] == file["state_total"]
    expected = golden("C_meters/scores_fedhca2.json")[f"normals_set{number}"]["mErr"]
    assert meter.compute().value == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("number", SETS)
def test_rmse(golden, number):
    file = golden(f"C_meters/depth_nyud_set{number}.npz")
    meter = feed(RMSE(), file, lambda p, g: (p, g))
    assert meter.state()["pixels"] == file["state_n_valid"]
    assert meter.state()["relative"] == pytest.approx(float(file["state_abs_rel"]), rel=1e-5)
    expected = golden("C_meters/scores_fedhca2.json")[f"depth_nyud_set{number}"]["RMSE"]
    assert meter.compute().value == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("number", SETS)
def test_edge_loss(golden, number):
    """The public meter reads probabilities as logits: the same number twice, from either of our two metrics."""
    file = golden(f"C_meters/edge_pascalcontext_set{number}.npz")
    expected = golden("C_meters/scores_fedhca2.json")[f"edge_pascalcontext_set{number}"]["loss"]
    plain = feed(EdgeLoss(), file, lambda p, g: (p / 255, g))
    public = feed(EdgeLossPublic(), file, lambda p, g: (np.log(p / (255 - p.astype(float))), g))
    for meter in (plain, public):
        assert meter.state()["pixels"] == file["state_n"]
        assert meter.compute().value == pytest.approx(expected, abs=1e-6)
