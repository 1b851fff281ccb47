"""Parity of the odsF pipeline with the original C++/MATLAB steps. Tolerances: golden README, D."""

from __future__ import annotations

import numpy as np
import pytest

from fmtlbench.metrics import OdsF
from fmtlbench.metrics.edges import curve, image, nms
from fmtlbench.metrics.edges import sweeps as kernels


def test_thinning_equals_the_converged_maps(golden):
    file = golden("D_edges/thinning.npz")
    names = [key[:-3] for key in file.files if key.endswith("_in")]
    assert len(names) >= 30
    for name in names:
        np.testing.assert_array_equal(image.thin(file[f"{name}_in"]), file[f"{name}_out_converged"], err_msg=name)


@pytest.mark.parametrize("number", range(5))
def test_nms_equals_the_original(golden, number):
    file = golden("D_edges/nms.npz")
    ours, theirs = nms.suppress(file[f"m{number}_in_uint8"]), file[f"m{number}_out_uint8"]
    assert (ours != theirs).sum() <= 0.003 * np.count_nonzero(theirs)


def test_matching_equals_the_exact_maximum(golden):
    file = golden("D_edges/correspond.npz")
    for pair in golden("D_edges/correspond_counts.json"):
        prediction, truth = file[f"{pair['id']}_pred"], file[f"{pair['id']}_gt"]
        for max_dist in ("0.0075", "0.011"):
            expected = pair[f"maxDist_{max_dist}"]
            radius = float(max_dist) * np.hypot(*prediction.shape)
            assert radius == pytest.approx(expected["radius_px"])
            matched, predicted = kernels.sweep(
                prediction, truth, np.ones(1, np.int32), curve.chord(radius), thinning=False
            )
            assert matched.tolist() == [expected["exact_max_cardinality"]], pair["id"]
            assert predicted.tolist() == [pair["n_pred"]]


@pytest.mark.parametrize("number", range(3))
def test_label_edges(golden, number):
    file, g = golden("D_edges/gt_conversion.npz"), f"g{number}_"
    np.testing.assert_array_equal(image.boundaries(file[g + "labelmap"]), file[g + "seg2bmap"])
    pascal = image.label_edges(file[g + "labelmap"], "labelmap")
    np.testing.assert_array_equal(pascal, file[g + "pascal_eval_gt"])
    nyud = image.label_edges(file[g + "nyud_boundaries_in"], "seism")
    np.testing.assert_array_equal(nyud, file[g + "nyud_eval_gt"])
    plain = image.label_edges(file[g + "nyud_boundaries_in"], "plain")
    np.testing.assert_array_equal(plain, image.thin(file[g + "nyud_boundaries_in"]))


def test_precision_recall_curve(golden):
    file = golden("D_edges/pr_aggregation.npz")
    for case in golden("D_edges/pr_aggregation_scores.json"):
        hit_g, actual, hit_p, predicted = (file[f"{case['id']}_{key}"] for key in ("cntR", "sumR", "cntP", "sumP"))
        precision, recall, f = curve.precision_recall(hit_p.sum(0), predicted.sum(0), hit_g.sum(0), actual.sum(0))
        best = (np.arange(len(hit_g)), curve.precision_recall(hit_p, predicted, hit_g, actual)[2].argmax(1))
        ois = curve.precision_recall(hit_p[best].sum(), predicted[best].sum(), hit_g[best].sum(), actual[best].sum())
        assert f.max() == pytest.approx(case["odsF"], abs=1e-9)
        assert ois[2] == pytest.approx(case["oisF"], abs=1e-9)
        assert curve.average_precision(precision, recall) == pytest.approx(case["AP_seism"], abs=1e-9)


@pytest.mark.parametrize("max_dist", ["0.011", "0.0075"])
@pytest.mark.parametrize("route", ["soft", "nms"])
def test_end_to_end_equals_the_exact_variant(golden, max_dist, route):
    """From the soft map through our NMS, and from the original's NMS output: counts equal, scores to 1e-6."""
    file = golden("D_edges/end_to_end.npz")
    counts = file[f"counts_exact_maxDist{max_dist}"]  # [image, (cntR, sumR, cntP, sumP), threshold]
    meter = OdsF(max_dist=float(max_dist), gt="labelmap", nms=route == "soft")
    for number in range(len(counts)):
        strength, labels = file[f"i{number}_{route}_uint8"], file[f"i{number}_labelmap"]
        meter.update(strength[None] / np.float32(255), labels[None])
    state = meter.state()
    np.testing.assert_array_equal(state["matched"], counts[:, 0].sum(0))
    np.testing.assert_array_equal(state["predicted"], counts[:, 3].sum(0))
    assert state["actual"] == counts[:, 1, 0].sum()
    scores = golden("D_edges/end_to_end_scores.json")[f"maxDist_{max_dist}"]
    exact = scores["exact_matching_converged_thinning"]
    result = meter.compute()
    assert result.value / 100 == pytest.approx(exact["odsF"], abs=1e-6)
    assert result.extras["oisF"] / 100 == pytest.approx(exact["oisF"], abs=1e-6)
    assert result.extras["AP"] / 100 == pytest.approx(exact["AP_seism"], abs=1e-6)
    assert result.extras["threshold"] == pytest.approx(exact["ods_threshold"])
    assert result.extras["precision"] / 100 == pytest.approx(exact["ods_precision"], abs=1e-6)
    assert result.extras["recall"] / 100 == pytest.approx(exact["ods_recall"], abs=1e-6)
    for repeat in scores["pybsds_repeats"]:  # the published matcher is random; its spread is 2e-4
        assert result.value / 100 == pytest.approx(repeat["odsF"], abs=1e-3)
        assert result.extras["oisF"] / 100 == pytest.approx(repeat["oisF"], abs=1e-3)
        assert result.extras["AP"] / 100 == pytest.approx(repeat["AP_seism"], abs=1e-3)
