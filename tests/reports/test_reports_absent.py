"""Refused and failed runs: an explicit row, the reason below the table, and nothing once the run is there."""

from __future__ import annotations

import pytest
from made_runs import ST_MT_1, summary, write_absence, write_run

from fmtlbench.base.stored import DamagedRun
from fmtlbench.cli import main
from fmtlbench.cli._installed import Installed
from fmtlbench.reports.collect import collect
from fmtlbench.reports.formats import render
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.papers.compare import compare
from fmtlbench.runs.absence import read_absence


def board(root, **given):
    (table,) = leaderboards(collect([root]), **given)
    return table


def row(table, label):
    return next(row for row in table.rows if row.labels == (label,))


def test_a_refused_method_is_a_row_of_null_with_its_reason(tmp_path):
    write_run(tmp_path, algorithm="local")
    write_run(tmp_path, algorithm="fedper")
    write_absence(tmp_path, algorithm="fedavg", reason="models do not fit")
    table = board(tmp_path)
    assert [r.labels[0] for r in table.rows] == ["Local", "FedAvg", "FedPer"]  # where it belongs
    null = row(table, "FedAvg")
    assert [cell.word for cell in null.cells[:-1]] == ["NULL"] * (len(table.columns) - 1)
    assert null.cells[-1].value == 0 and null.note == "refused: models do not fit"
    assert all(cell.mark == "" for cell in null.cells)
    text = render([table], "table")
    assert "FedAvg [a]" in text and "[a] refused: models do not fit" in text
    assert "NULL" in render([table], "latex") and ",NULL," in render([table], "csv")
    assert [r.labels[0] for r in board(tmp_path, sort="delta").rows][-1] == "FedAvg"


def test_a_variant_s_refusal_has_the_variant_s_label(tmp_path):
    write_run(tmp_path, algorithm="local")
    write_run(tmp_path, algorithm="fedprox", options={"shared": "encoder", "mu": 0.01})
    write_absence(tmp_path, algorithm="fedprox", options={"shared": "all", "mu": 0.5})
    assert [r.labels[0] for r in board(tmp_path).rows] == ["Local", "FedProx (mu=0.5)", "FedProx-E"]


def test_another_setting_s_refusal_stays_out(tmp_path):
    write_run(tmp_path, algorithm="local")
    write_absence(tmp_path, setting="f" * 64)
    assert [r.labels[0] for r in board(tmp_path).rows] == ["Local"]


def test_a_finished_run_outweighs_an_old_refusal(tmp_path):
    write_run(tmp_path, algorithm="local")
    write_run(tmp_path, algorithm="fedavg")
    write_absence(tmp_path, algorithm="fedavg")
    table = board(tmp_path)
    assert row(table, "FedAvg").cells[0].value == 50.0 and "refused" not in render([table], "md")


def test_a_failed_method_says_failed_and_a_failed_seed_is_a_note(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path, algorithm="local", seed=seed)
    write_run(tmp_path, algorithm="fedper", seed=0)
    write_absence(tmp_path, "failed", "out of memory", algorithm="fedper", seed=1)
    for seed in (0, 1):
        write_absence(tmp_path, "failed", "a NaN loss", algorithm="ditto", seed=seed)
    table = board(tmp_path)
    assert row(table, "Ditto").cells[0].word == "failed" and row(table, "Ditto").note == "failed: seed 0, 1: a NaN loss"
    assert "FedPer failed, seed 1: out of memory" in table.notes
    assert not any("no finished run" in note for note in table.notes)


def test_a_failed_run_is_told_once_and_forgotten_when_it_is_finished(tmp_path, capsys):
    write_run(tmp_path, algorithm="local")
    folder = write_run(tmp_path, algorithm="fedavg", name="nano-synth-s0-12345678")
    write_absence(tmp_path, "failed", "the disk is full", leaf=folder.name)
    assert collect([tmp_path]).problems == collect([tmp_path]).absences == []
    (folder / "summary.json").unlink()
    (folder / "config.yaml").write_text("seed: 0\n")
    (problem,) = collect([tmp_path]).problems
    assert problem == f"{folder}: failed: the disk is full"
    assert main(["leaderboard", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.count("the disk is full") == 1 and err == f"left out: {problem}\n"


def test_a_folder_of_failures_alone_says_them(tmp_path, capsys):
    write_absence(tmp_path, "failed", "no dataset")
    assert main(["leaderboard", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "failed: no dataset" in err and "no finished run" in err


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"why": "bored"}'])
def test_a_damaged_note_is_a_problem_and_no_more(tmp_path, text):
    write_run(tmp_path)
    write_absence(tmp_path).write_text(text)
    found = collect([tmp_path])
    assert found.absences == [] and len(found.problems) == 1 and "absent.json" in found.problems[0]


def test_wrong_types_are_no_note(tmp_path):
    assert read_absence(write_absence(tmp_path, reason="x", later=1)).reason == "x"
    for change in ({"title": 1}, {"options": []}, {"why": "bored"}):
        with pytest.raises(DamagedRun):
            read_absence(write_absence(tmp_path, **change))


def test_overlapping_folders_give_a_note_once(tmp_path):
    write_run(tmp_path)
    write_absence(tmp_path)
    assert len(collect([tmp_path, tmp_path / "duo"]).absences) == 1


def test_compare_says_why_a_method_is_not_there(tmp_path):
    made = summary(algorithm="local", clients=ST_MT_1, scenario="st_mt_1")
    write_run(tmp_path, made)
    write_absence(tmp_path, algorithm="fedavg", scenario="st_mt_1", reason="it does not fit")
    (table,) = compare(collect([tmp_path]), "fedhca2_table1_st_mt_1", Installed())
    assert "FedAvg refused: it does not fit" in table.notes


def test_pages_still_sort_by_the_numbers_around_a_null(tmp_path):
    from fmtlbench.reports.site.tables import html_table

    write_run(tmp_path, algorithm="local")
    write_run(tmp_path, algorithm="fedper")
    write_absence(tmp_path, algorithm="fedavg")
    page = str(html_table(board(tmp_path)))
    assert ">NULL" in page and page.count('data-sort="text"') == 1  # the names of methods
