"""The papers' tables as data, and the audit of their Δ."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UsageError
from fmtlbench.config.presets import preset_files
from fmtlbench.metrics import METRICS
from fmtlbench.reports.formats import render
from fmtlbench.reports.papers.published import (
    FOLDER,
    as_table,
    audit,
    audit_table,
    load_published,
    number,
    published_names,
)
from fmtlbench.scenarios import scenario_files

ORIGINALS = Path(__file__).parents[3] / "shared" / "published"


def test_the_audit_finds_the_three_rows_and_no_other():
    wrong = {(c.table, c.row): (c.printed, round(c.recomputed, 2)) for c in audit() if not c.follows}
    assert wrong == {
        ("fedhca2_supp_table1_client_scaling", "4C FedPer"): ("-2.96", -1.83),
        ("fedhca2_supp_table1_client_scaling", "4C FedProx"): ("-24.04", -23.89),
        ("fmtlbench_table7_niid6_ubcdmt_global", "swin-t FedProx-E TC"): ("16.53", 16.60),
    }


def test_every_printed_delta_is_checked_or_has_a_reason():
    checks = audit()
    printed = sum(len(load_published(name).deltas) * len(load_published(name).rows) for name in published_names())
    assert sum(bool(c.column) for c in checks) == printed
    assert all((c.recomputed is None) == bool(c.reason) for c in checks)
    unchecked = {c.table for c in checks if c.reason and c.column}
    assert unchecked == {
        "fmtlbench_table7_niid6_ubcdmt_global", "fmtlbench_table8_cost_iid1",
        "fmtlbench_table9_client_count_and_scratch",
    }  # fmt: skip
    words = [c.reason for c in checks if c.table == "fmtlbench_table7_niid6_ubcdmt_global" and c.reason]
    assert sorted(words) == ["printed as NULL"] * 2 + ["printed as OOM"] * 2
    assert "not printed" in next(c.reason for c in checks if c.table == "fmtlbench_table8_cost_iid1")


def test_by_hand_one_delta():
    # (5.86/51.69 + 2.36/49.94 − 0.20/80.91 + 0.16/15.76 + 0.13/71.95 − 0.39/41.86 + 0.0206/0.6487 + 0.06/20.59
    #  + 0.04/76.46) / 9 = 2.18 %
    check = next(c for c in audit(["fedhca2_table1_st_mt_1"]) if c.row == "FedHCA2")
    assert check.recomputed == pytest.approx(2.18, abs=0.005)


def test_table_6_is_checked_against_a_reference_that_is_called_derived():
    checks = audit(["fmtlbench_table6_niid4_ubsdmt"])
    assert len(checks) == 36
    assert all(c.derived and abs(c.recomputed - float(c.printed)) < 0.006 for c in checks)
    assert any("derived reference" in note for note in audit_table(checks).notes)
    assert not any("derived" in note for note in audit_table(audit(["fedhca2_table1_st_mt_1"])).notes)


def test_the_derived_reference_solves_the_table():
    table = load_published("fmtlbench_table6_niid4_ubsdmt")
    stored = table.entry["reference"]["derived"]
    for delta, split in table.deltas.items():
        columns = {name: m for name, m in table.scores.items() if m.split == split}
        signs = np.array([1 if m.higher_is_better else -1 for m in columns.values()])
        cells = np.array([[float(row[name]) for name in columns] for row in table.rows]) * signs
        printed = np.array([float(row[delta]) for row in table.rows])
        # Δ = 100/4 Σ ±(v/b − 1) is linear in 1/b.
        inverse, *_ = np.linalg.lstsq(25 * cells, printed + 25 * signs.sum(), rcond=None)
        assert [stored[name] for name in columns] == pytest.approx(list(1 / inverse), abs=1e-4)


def test_every_file_has_an_entry_and_every_entry_a_file():
    assert sorted(published_names()) == sorted(file.stem for file in FOLDER.glob("*.csv"))


@pytest.mark.parametrize("name", published_names())
def test_entries_mean_things_that_exist(name):
    table = load_published(name)
    columns = set(table.rows[0])
    assert set(table.heads) <= columns and set(table.deltas) <= columns
    assert set(table.scenarios) <= set(scenario_files())
    assert table.setting["preset"] in preset_files()
    directions = {metric.label: metric.higher_is_better for metric in METRICS.values()}
    for meaning in table.scores.values():
        if meaning.metric in directions:  # sal_mIoU is one of maxF's extras
            assert meaning.higher_is_better == directions[meaning.metric]
        else:
            assert meaning.metric == "sal_mIoU"
    if table.scores:
        titles = {method.title for method in ALGORITHMS.values()}
        for row in table.rows:
            assert table.label(row).split(" (")[0].removesuffix("-E") in titles, table.label(row)
            table.model(row)


@pytest.mark.parametrize("name", published_names())
def test_numbers_print_as_in_the_paper(name):
    table = load_published(name)
    text = render([as_table(table)], "csv")
    printed = list(csv.DictReader(text.splitlines()))
    assert len(printed) == len(table.rows)
    for ours, theirs in zip(printed, table.rows):
        for column, cell in theirs.items():
            if column.endswith("_std"):
                assert number(ours[column]) == number(cell)
            else:
                assert ours[column] == cell


def test_words_stay_words_and_blocks_are_marked_apart():
    text = render([as_table(load_published("fmtlbench_table7_niid6_ubcdmt_global"))], "table")
    assert text.count("OOM") == 14 and text.count("NULL") == 14
    md = render([as_table(load_published("fedhca2_supp_table1_client_scaling"))], "md")
    assert "**57.55**" in md and "**45.83**" in md and "**25.48**" in md  # one best per scale
    assert "0.6281" in md and "52.30" in md


def test_an_unknown_table_has_neighbours():
    with pytest.raises(UsageError, match="did you mean 'fedhca2_table1_st_mt_1'"):
        load_published("fedhca2_table1_st_mt1")


def test_the_files_are_those_that_were_typed_over():
    if not ORIGINALS.is_dir():
        pytest.skip("the typed tables are not beside this checkout")
    for file in ORIGINALS.glob("*.csv"):
        assert (FOLDER / file.name).read_text() == file.read_text()


# -- what was run in the rows of Table 7 -------------------------------------------------------------------------------

TABLE_7 = "fmtlbench_table7_niid6_ubcdmt_global"


def rows_of_7():
    return {(row["backbone"], row["method"], row["arch"]): row for row in load_published(TABLE_7).rows}


def test_labels_of_table_7_row_by_row():
    table = load_published(TABLE_7)
    labels = {key: table.label(row) for key, row in rows_of_7().items()}
    for (backbone, method, arch), label in labels.items():
        name = method.removesuffix("-E")
        if name in ("Local", "FedAvg", "MaT-FL", "FedRep"):
            assert label == method
        elif arch == "MD" or name in ("FedAMP", "FedMTL"):  # different task sets: encoders, whatever is printed
            assert label == f"{name}-E", (backbone, method, arch)
        else:
            assert label == name, (backbone, method, arch)
    assert len(labels) == 36


def test_what_is_inferred_is_said_beside_the_table():
    table = load_published(TABLE_7)
    said = [note for note in as_table(table).notes if note.startswith("inferred: ")]
    for row in table.rows:
        here = [note for note in said if f" {table.row_name(row)}" in note.split(" as ")[0].replace(",", "")]
        other = table.label(row) != row["method"]
        assert len(here) == 1 if other else len(here) <= 1
        assert all(f" as {table.label(row)}: " in note for note in here)
    assert len(said) == 7
    text = render([as_table(table)], "table")
    assert "inferred: swin-t PCGrad MD as PCGrad-E: whole MD models cannot be averaged here" in text
    assert not any("inferred" in note for note in as_table(load_published("fmtlbench_table6_niid4_ubsdmt")).notes)


@pytest.mark.parametrize("backbone", ["resnet", "swin-t"])
def test_the_scores_that_the_inferences_name(backbone):
    rows = {(method.removesuffix("-E"), arch): row for (b, method, arch), row in rows_of_7().items() if b == backbone}
    value = lambda method, column, arch="TC": float(rows[method, arch][column])
    scores = list(load_published(TABLE_7).scores)
    near = lambda a, b: max(abs(value(a, c) / value(b, c) - 1) for c in scores)
    assert near("FedProx", "FedAvg") < 0.021 < 0.06 < near("FedProx", "FedRep")
    assert near("FedAMP", "Local") < 0.02 and near("FedMTL", "Local") < 0.02
    assert value("FedProx", "nyud_normals_mErr_std") == value("FedAvg", "nyud_normals_mErr_std")
    assert value("CAGrad", "nyud_normals_mErr_std") == value("FedAvg", "nyud_normals_mErr_std")
    for column in ("nyud_edge_loss_x100", "pascal_human_parts_mIoU", "pascal_normals_mErr"):
        theirs, whole, encoders = (value(method, column) for method in ("CAGrad", "FedAvg", "FedRep"))
        assert abs(theirs - whole) < abs(theirs - encoders), column
    edge = "nyud_edge_loss_x100"
    assert value("PCGrad", edge) - value("Local", edge) > 0.1
    assert value("PCGrad", edge, "MD") - value("Local", edge, "MD") < 0.05
    assert rows["FedAvg", "MD"][edge] == "NULL"


def test_fedrep_is_explained_wherever_it_stands():
    for name in published_names():
        table = load_published(name)
        has = name.startswith("fmtlbench") and any("FedRep" in (*row.values(), *row) for row in table.rows)
        assert has == any(note.startswith("FedRep: the public code has no such method") for note in table.notes), name
