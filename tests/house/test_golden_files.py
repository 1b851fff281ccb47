"""The golden files are there, unchanged, and so are the tests that read them: parity cannot pass for want of either."""

from __future__ import annotations

import hashlib
import importlib
import math
from collections import Counter
from pathlib import Path

import golden_files
import numpy as np
import pytest
from golden_files import FULL, GOLDEN, INDEX, Folder, cases, find, load

TESTS = GOLDEN.parent

FILES = {"A_aggregation": 39, "B_losses": 2, "C_meters": 15, "D_edges": 11, "E_models": 1, "F_transforms": 2}

# How many cases a plain checkout has at least, by test. The full set beside it adds to them.
CASES = {
    "algorithms/test_conflict_averse.py": {"test_reaches_the_certified_optimum": 1},
    "algorithms/test_golden_fedhca2.py": {
        "test_fedhca2_matches_the_public_code": 6,
        "test_the_common_update_is_the_public_one": 6,
        "test_hyper_weights_move_as_in_the_public_code": 7,
        "test_without_weight_decay_they_would_not": 1,
        "test_decoders_match_with_clients_interleaved": 1,
        "test_encoders_match_with_clients_interleaved_if_only_neighbours_are_alike": 1,
        "test_fedavg_matches_the_public_code": 1,
    },
    "algorithms/test_golden_zoo.py": {
        "test_fedavg": 1,
        "test_fedamp": 3,
        "test_pcgrad_with_unit_length_updates_and_the_recorded_orders": 2,
        "test_cagrad": 4,
        "test_cagrad_reaches_the_certified_optimum": 2,
        "test_matfl_clusters_of_fmtl_bench": 2,
        "test_matfl_code": 5,
        "test_soft_groups_of_the_matfl_code": 3,
    },
    "engine/test_losses.py": {
        "test_values_and_gradients_equal_the_public_code": 1,
        "test_weighted_total_equals_the_public_multi_task_loss": 6,
    },
    "metrics/test_metrics_golden_decoding.py": {"test_decoding": 18},
    "metrics/test_metrics_golden_meters.py": {
        "test_miou": 3,
        "test_maxf": 3,
        "test_maxf_scores_the_empty_mask_on_which_the_public_meter_divides_by_zero": 1,
        "test_merr": 1,
        "test_rmse": 1,
        "test_edge_loss": 1,
    },
    "metrics/test_metrics_options.py": {"test_a_papers_preset_scores_as_its_public_meters": 18},
    "metrics/test_metrics_golden_edges.py": {
        "test_thinning_equals_the_converged_maps": 1,
        "test_nms_equals_the_original": 5,
        "test_matching_equals_the_exact_maximum": 1,
        "test_label_edges": 3,
        "test_precision_recall_curve": 1,
        "test_end_to_end_equals_the_exact_variant": 4,
    },
    "data/test_real_readers.py": {"test_edges_are_those_of_the_public_code": 1},
    "data/test_transforms_reference.py": {
        "test_scaling": 1,
        "test_cropping": 1,
        "test_mirroring": 1,
        "test_padding": 1,
        "test_evaluation": 2,
        "test_normalisation": 1,
    },
    "data/test_golden_loading.py": {"test_the_validation_pipeline": 2, "test_to_tensors": 2},
    "networks/test_complexity.py": {"test_tensors_equal_the_reference": 1},
    "networks/test_golden_sizes.py": {
        "test_totals": 6,
        "test_every_task": 6,
        "test_tensors_and_outputs_of_fedhca2": 2,
    },
}


def test_every_file_is_there_as_listed():
    paths = sorted(GOLDEN.glob("[A-Z]_*/*"))
    found = {path.relative_to(GOLDEN).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    assert found == INDEX  # tests/golden/make_subset.py writes both
    assert Counter(name.partition("/")[0] for name in INDEX) == FILES


@pytest.mark.parametrize("file", CASES)
def test_no_case_is_lost(file, monkeypatch):
    monkeypatch.syspath_prepend((TESTS / file).parent)
    module = importlib.import_module(Path(file).stem)
    assert Path(module.__file__) == TESTS / file
    for test, count in CASES[file].items():
        marks = getattr(getattr(module, test), "pytestmark", [])
        assert {mark.name for mark in marks} <= {"parametrize"}, test  # none is skipped
        assert math.prod(len(mark.args[1]) for mark in marks) >= count, test


def test_a_missing_file_is_an_error_and_not_a_skip(tmp_path, monkeypatch):
    for look in (find, load, lambda name: Folder() / name, lambda name: Folder() / "B_losses" / name):
        with pytest.raises(FileNotFoundError, match=r"golden file .*none\.npz is neither in"):
            look("none.npz")
    monkeypatch.setattr(golden_files, "GOLDEN", tmp_path)
    monkeypatch.setattr(golden_files, "FULL", tmp_path)
    assert cases("C_meters/sal_set{}.npz", range(3)) == [0]  # set 0 is listed: its test runs, and fails
    with pytest.raises(FileNotFoundError):
        load("C_meters/sal_set0.npz")


if FULL.is_dir():

    def test_values_are_those_of_the_full_set():
        for name in INDEX:
            ours, full = GOLDEN / name, FULL / name
            if name.endswith(".json"):
                assert ours.read_bytes() == full.read_bytes(), name
                continue
            with np.load(ours) as kept, np.load(full) as whole:
                for key in kept.files:
                    assert kept[key].dtype == whole[key].dtype and kept[key].shape == whole[key].shape, (name, key)
                    assert kept[key].tobytes() == whole[key].tobytes(), (name, key)
