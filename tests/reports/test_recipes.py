"""The papers' tables come out of runs that scored what the papers print, cell by cell."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from made_recipes import finish, plan

from fmtlbench.base.errors import UsageError
from fmtlbench.bench.recipes import choose_recipes, gather, make_table
from fmtlbench.cli import main
from fmtlbench.reports.formats import render
from fmtlbench.reports.labels import read_label
from fmtlbench.reports.papers.published import audit, load_published, number, published_names, table_names
from fmtlbench.reports.papers.recipes import COST, DELTAS, NETWORKS, SCORES, load_recipe, recipe_names, stand_ins

RECIPES = [load_recipe(name) for name in recipe_names()]
PRINTED = [r.name for r in RECIPES if r.kind == SCORES and r.table is not None and r.table.is_printed]
FULL = ("fedhca2_table1_st_mt_1", "fmtlbench_table6_niid4_ubsdmt", "matfl_table1")
TARGET = {"depth": 80.0, "edge": 5.0, "normals": 25.0, "semseg": 25.0}  # of Δ that are against a run not in the table


def printed_value(table, row):
    """What a row prints, as a run scores it."""
    at = {(m.dataset, m.task, m.metric, m.split): (column, m.times) for column, m in table.scores.items()}

    def value(*place):
        column, times = at.get(place, (None, 1))
        return float(row[column]) / times if column else 50.0

    return value


def derived_value(table):
    numbers = {k: str(v) for k, v in table.entry["reference"]["derived"].items()}
    return printed_value(table, numbers)


def finish_as_printed(planned):
    """Give every row's run the scores that the paper prints there; rows that print words are left."""
    recipe, table, done = planned.recipe, planned.recipe.table, set()
    for (place, _), asked in recipe.cells.items():
        row = table.rows[place]
        if all(number(row[column]) is not None for column in table.scores):
            for run in planned.runs(asked).values():
                if run.store.folder not in done:
                    finish(run, printed_value(table, row))
                    done.add(run.store.folder)
    for place, _ in recipe.cells:
        base = recipe.reference(place)
        for run in planned.runs(base).values() if base else ():
            if run.store.folder not in done:
                entry = table.entry["reference"]
                if "derived" in entry:
                    finish(run, derived_value(table))
                else:
                    other, row = table.reference_row(table.rows[place])
                    finish(run, printed_value(other, row))
                done.add(run.store.folder)


@pytest.mark.parametrize("name", PRINTED)
def test_runs_that_scored_what_the_paper_prints_give_its_table(name, tmp_path):
    planned = plan(name, tmp_path)
    finish_as_printed(planned)
    made = make_table(planned)
    table = planned.recipe.table
    assert not made.unlike and set(made.cells) == set(range(len(table.rows)))
    for place, cells in made.cells.items():
        for column, cell in zip(made.columns, cells):
            printed = table.rows[place][column.key]
            if number(printed) is None:
                assert cell.value is None, (place, column.key)
            elif column.key in table.scores:
                assert cell.value == pytest.approx(float(printed), abs=1e-6), (place, column.key)
    wrong = {(c.row, c.column) for c in _wrong_deltas(name)}
    for place, cells in made.cells.items():
        for column, cell in zip(made.columns, cells):
            printed = table.rows[place][column.key]
            at = (table.row_name(table.rows[place]), column.key)
            if column.key in table.deltas and number(printed) is not None and at not in wrong:
                assert cell.value == pytest.approx(float(printed), abs=0.021), at


def _wrong_deltas(name):
    return [check for check in audit([name]) if not check.follows]


@pytest.mark.parametrize("name", [r.name for r in RECIPES])
def test_every_recipe_can_be_planned_as_its_paper_has_it_and_covers_every_row(name, tmp_path):
    planned = plan(name, tmp_path)
    recipe = planned.recipe
    assert not planned.lacking
    assert all(planned.runs(asked) or planned.refusal(asked) for asked in recipe.wanted)
    assert all(run.config.preset == recipe.preset for asked in recipe.wanted for run in planned.runs(asked).values())
    if recipe.table is not None and recipe.kind != NETWORKS:
        assert {place for place, _ in recipe.cells} == set(range(len(recipe.table.rows)))
        for (place, column), asked in recipe.cells.items():
            row = recipe.table.rows[place]
            words = [row[c] for c in ([column] if column else recipe.table.columns)]
            null = set(words) == {"NULL"}
            assert bool(planned.refusal(asked)) == null or not recipe.table.is_printed, row


def test_a_row_that_is_refused_says_the_paper_s_null_and_one_that_was_not_run_says_so(tmp_path):
    planned = plan("fmtlbench_table7_niid6_ubcdmt_global", tmp_path)
    made, collection = gather(planned)
    assert not collection.runs
    words = {asked.label: one.word for asked, one in made.items()}
    assert words["FedAvg"] == "NULL" or "NULL" in {one.word for one in made.values()}
    table = make_table(planned)
    cells = [cell for row in table.cells.values() for cell in row]
    assert {cell.note for cell in cells if not cell.word} == {"not run yet"}
    assert all("do not fit together" in cell.note for cell in cells if cell.word == "NULL")


def test_deltas_by_method_are_against_the_target_run_on_the_row_s_images(tmp_path):
    planned = plan("fmtlbench_table9_client_count_and_scratch", tmp_path)
    recipe, table, printed = planned.recipe, planned.recipe.table, {}
    for (place, column), asked in recipe.cells.items():
        value = number(table.rows[place][column])
        for run in planned.runs(asked).values():
            printed.setdefault(run, {})[recipe.split(table.rows[place])] = value
    for run, by_split in printed.items():
        if None not in by_split.values():
            finish(run, lambda d, task, m, split, of=by_split: moved(task, of[split]))
    made = make_table(planned)
    assert recipe.kind == DELTAS and [c.key for c in made.columns] == table.columns
    for place, row in enumerate(table.rows):
        for column, cell in zip(table.columns, made.cells[place]):
            if number(row[column]) is None:
                assert cell.value is None and cell.note == "not run yet"
            else:
                assert cell.value == pytest.approx(float(row[column]), abs=1e-6)
    assert made.values(table.rows[0], "FedAvg") == {0: pytest.approx(19.90)}


def moved(task, delta):
    """A score that lies `delta` percent better than the target's."""
    sign = 1 if task == "semseg" else -1
    return TARGET[task] * (1 + sign * delta / 100)


def test_the_table_of_costs_counts_as_the_paper_does(tmp_path):
    planned = plan("fmtlbench_table8_cost_iid1", tmp_path)
    recipe, table = planned.recipe, planned.recipe.table
    assert recipe.kind == COST
    for (place, _), asked in recipe.cells.items():
        row = {k: number(v) for k, v in table.rows[place].items()}
        (run,) = planned.runs(asked).values()
        reached = {row["rounds_to_-30"]: -20.0, row["rounds_to_-10"]: -5.0}
        rounds, now = {}, -50.0
        for done in range(100):  # the paper counts rounds from 0
            now = reached.get(done, now)
            rounds[done + 1] = lambda d, task, m, split, of=now: moved(task, of)
        rounds.pop(100)
        folder = finish(run, lambda d, task, m, split, of=row["global_delta"]: moved(task, of), rounds)
        bytes_ = round(row["comm_per_round_GB"] * 1.024e9 * 100)
        made = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps({**made, "bytes_up": bytes_, "bytes_down": 0}))
        energy = dict.fromkeys(("co2e_g", "how", "country", "region", "reason"))
        energy |= {"kwh": 1.0, "power_w": row["power_W"], "source": "made", "g_per_kwh": 500.0}
        (folder / "cost.json").write_text(json.dumps({"seconds_total": 1.0, "seconds": {}, "energy": energy}))
        seconds = {"seconds": {"train": row["time_per_round_s"], "evaluate": 9.0}}
        (folder / "timing.jsonl").write_text("".join(json.dumps({"round": r, **seconds}) + "\n" for r in range(1, 101)))
    made = make_table(planned)
    assert set(made.cells) == set(range(18))
    for place, row in enumerate(table.rows):
        for column, cell in zip(table.columns, made.cells[place]):
            # the paper rounds what it multiplies, and prints minutes without decimals
            near = max(0.012 * abs(float(row[column])), 0.012 if "." in row[column] else 0.51)
            assert cell.value == pytest.approx(float(row[column]), abs=near), (row["method"], column)


def test_the_networks_are_counted_as_the_paper_does(tmp_path, monkeypatch):
    """Those of ResNet-18: models/test_complexity.py has all four, and the README's command too."""
    table = load_published("fmtlbench_table1_model_size")
    monkeypatch.setitem(table.__dict__, "rows", [row for row in table.rows if row["backbone"] == "resnet18"])
    made = make_table(plan("fmtlbench_table1_model_size", tmp_path))
    assert set(made.cells) == {0, 1}
    for place, row in enumerate(table.rows):
        for column, cell in zip(table.columns, made.cells[place]):
            assert (cell.value is None) == (row[column] == ""), (place, column)
            if row[column]:
                assert cell.value == pytest.approx(float(row[column]), abs=0.0051), (place, column)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdflatex_takes_every_table(tmp_path):
    """In one document: tables of which nothing is run, and one of each form with its numbers."""
    tables = []
    for recipe in RECIPES:
        if recipe.table is not None and recipe.kind != NETWORKS:
            planned = plan(recipe.name, tmp_path / recipe.name)
            if recipe.name in FULL:
                finish_as_printed(planned)
            tables += make_table(planned).tables()
    text = render(tables, "latex", standalone=True)
    assert text.count(r"\begin{table}") == len(tables) == 2 * 24
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


# -- another preset ----------------------------------------------------------------------------------------------------


def test_another_preset_keeps_the_paper_s_methods_and_metrics_and_is_told(tmp_path):
    planned = plan("fmtlbench_table6_niid4_ubsdmt", tmp_path, preset="nano")
    asked = {(a.label, a.overrides.get("model.architecture")): a for a in planned.recipe.wanted}
    (run,) = planned.runs(asked["FedProx", "tc"]).values()
    config = run.config
    assert (config.preset, config.data.source, config.model.backbone) == ("nano", "synth", "resnet_nano")
    assert config.algorithm.options["mu"] == 0.001 and config.evaluation.metrics == {"edge": "edge_loss_public"}
    assert config.model.options["task_steps"] == "sequential"
    finish(run)
    made = make_table(planned)
    assert made.unlike == ("preset nano (paper: fmtl-bench)", "data synth (paper: real)", "rounds 32 (paper: 100)")
    first = made.tables()[0]
    assert first.notes[0].startswith("≠ not the paper's setting: preset nano")
    assert all("≠" in column.title for column in first.columns)


def test_a_backbone_without_a_small_form_is_left_out_with_the_reason(tmp_path):
    planned = plan("fedhca2_supp_table3_backbones", tmp_path, preset="nano")
    assert [a.overrides["model.backbone"] for a in planned.lacking] == ["swin_small", "swin_base"]
    made = make_table(planned)
    assert made.cells[1][0].note == "swin_small has no form as small as the networks of preset nano"
    assert set(stand_ins()) == {"resnet18", "swin_tiny"}


def test_a_value_of_one_s_own_is_a_departure_and_the_recipe_s_values_are_none(tmp_path):
    planned = plan("matfl_table2_scale", tmp_path, **{"train.lr": 0.5})
    for asked in planned.recipe.wanted:
        for run in planned.runs(asked).values():
            if not run.store.folder.exists():
                finish(run)
    assert make_table(planned).unlike == ("train.lr 0.5",)


def test_the_public_code_s_way_is_asked_for(tmp_path):
    planned = plan("fmtlbench_table6_niid4_ubsdmt", tmp_path, public_code=True)
    methods = {a.label: next(iter(planned.runs(a).values())).config.algorithm for a in planned.recipe.wanted}
    assert methods["FedRep"].name == "fedper" and methods["FedProx"].options["mu"] == 0
    assert methods["PCGrad"].options["normalize"] is True and methods["FedMTL"].options["protocol"] == "whole"


# -- over seeds --------------------------------------------------------------------------------------------------------


def test_seeds_give_spread_interval_and_values_by_seed(tmp_path):
    planned = plan("fedhca2_table5_mt_mt", tmp_path, seeds=(0, 1, 2))
    for asked in planned.recipe.wanted:
        for seed, run in planned.runs(asked).items():
            finish(run, lambda *at, up=seed + 3 * (asked.label == "FedHCA²"): 50.0 + up)
    made = make_table(planned)
    local, ours = made.cells[0], made.cells[1]
    assert local[0].std == pytest.approx(1.0) and ours[0].value == pytest.approx(54.0)
    first, second, *_ = made.table.rows
    assert set(made.values(second, "delta_m")) == {0, 1, 2} and ours[-1].interval is not None
    assert made.values(first, "delta_m") == {0: 0.0, 1: 0.0, 2: 0.0} and made.values(first, "nothing") is None


# -- names -------------------------------------------------------------------------------------------------------------


def test_labels_are_read_back():
    assert read_label("FedHCA² (alpha=0.01, decoder=none)") == ("FedHCA²", {"alpha": 0.01, "decoder": "none"})
    assert read_label("PCGrad-E") == ("PCGrad", {"shared": "encoder"})
    assert read_label("MaT-FL") == ("MaT-FL", {})


def test_tables_without_values_are_recipes_but_no_published_tables():
    blank = set(table_names()) - set(published_names())
    assert len(blank) == 5 and blank < set(recipe_names())
    table = load_published("fmtlbench_table3_niid2_sdst")
    assert not table.is_printed and len(table.rows) == 18 and set(table.rows[0].values()) == {"Local", "SD", ""}


def test_recipes_are_chosen_by_name_paper_or_all():
    assert [r.name for r in choose_recipes(["matfl_table1", "matfl_table1"])] == ["matfl_table1"]
    assert {r.paper for r in choose_recipes(["matfl"])} == {"matfl"}
    assert len(choose_recipes(["all"])) == len(RECIPES) == 42
    with pytest.raises(UsageError, match=r"no recipe 'matfl_table'.*matfl_table1"):
        choose_recipes(["matfl_table"])


def test_the_list_and_the_status_are_for_programs_too(capsys, tmp_path):
    assert main(["reproduce", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed] == recipe_names()
    (tmp_path / "runs").mkdir()
    finish(plan("fedhca2_table5_mt_mt", tmp_path / "runs").plan.runs[0])
    argv = ["reproduce", "fedhca2_table5_mt_mt", "matfl_figure5", "--status", str(tmp_path / "runs")]
    assert main([*argv, "--format", "json"]) == 0
    states = json.loads(capsys.readouterr().out)
    assert [(s["runs"], s["done"]) for s in states] == [(2, 1), (1, 0)]


def test_runs_of_a_sweep_have_their_value_in_their_label():
    labels = [asked.full_label for asked in load_recipe("matfl_figure4").lines]
    assert labels[:3] == ["Single-task FL", "FedAvg", "FedProx"]
    assert labels[3:5] == ["MaT-FL (friends=2)", "MaT-FL (friends=4)"] and len(labels) == 12
