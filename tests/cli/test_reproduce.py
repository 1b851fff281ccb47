"""`fmtlbench reproduce` as a user types it: what goes together, what is refused, what is said, exit codes."""

from __future__ import annotations

import json

import pytest
from made_recipes import finish, plan

from fmtlbench.cli import main
from fmtlbench.reports.papers.recipes import load_recipe
from fmtlbench.reports.papers.reproduced import count_table

T5, NANO = "fedhca2_table5_mt_mt", ("--preset", "nano")


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Ask for something in an empty folder; return the exit code, what was printed, and what was said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FMTLBENCH_DATA", raising=False)
    (tmp_path / "config.yml").write_text("{}")
    monkeypatch.setenv("FMTLBENCH_CONFIG", str(tmp_path / "config.yml"))

    def call(*words):
        code = main(["reproduce", *map(str, words)])
        return code, *capsys.readouterr()

    return call


def finish_all(name, root, preset="nano", **given):
    """Give every run of a recipe a result."""
    planned = plan(name, root, preset, **given)
    for run in planned.plan.runs:
        if not run.store.folder.exists():
            finish(run)
    return planned


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope"], "no recipe 'nope'"),
        ([T5, "--preset", "nanno"], "--preset: no preset 'nanno'; did you mean 'nano'"),
        ([T5, *NANO, "--seeds", "x"], "--seeds: 'x': expected whole numbers"),
        ([T5, *NANO, "--format", "sh"], "--format sh: lists what is missing; give --dry-run too"),
        ([T5, *NANO, "--claims", "--dry-run"], "--claims and --dry-run: each says what to show"),
        (["--dry-run"], "which recipe?"),
        (["--preset", "nano"], "which recipe?"),
        (["--status", "gone"], "--status gone: no such folder"),
        ([T5, *NANO, "--claims", "--out", "gone"], "--claims: --out gone: no such folder"),
    ],
)
def test_wrong_words_are_one_line(ask, words, message):
    code, out, err = ask(*words)
    assert code == 2 and not out and message in err and err.count("\n") == 1


def test_a_paper_s_preset_without_its_archives_is_told_before_anything_runs(ask, tmp_path):
    code, _, err = ask(T5)
    assert code == 1 and "no NYUDv2/ or NYUD_MT/ found" in err and "--preset nano" in err
    code, _, err = ask(T5, "--data-root", tmp_path / "empty")
    assert code == 1 and "is not a folder" in err
    assert not (tmp_path / "runs").exists() and not (tmp_path / "reproduced").exists()


def test_the_plan_of_one_recipe_is_run_by_run_and_of_several_counted(ask):
    code, out, err = ask(T5, *NANO, "--dry-run")
    assert code == 0 and "FedHCA²\t1 new" in out and "operations counted" in err
    code, out, _ = ask(T5, "matfl_figure5", *NANO, "--dry-run")
    assert code == 0 and "3 runs in runs: 3 new" in out and f"{T5}\tnano\t2\t0\t0\t2\t0\t0" in out
    code, out, _ = ask(T5, *NANO, "--dry-run", "--format", "sh")
    assert code == 0 and out.count("fmtlbench run ") == 2


def test_states_add_up_and_a_run_without_the_files_of_a_figure_is_unusable(ask, tmp_path):
    finish_all("fedhca2_figure6", tmp_path / "runs")
    code, out, _ = ask("fedhca2_figure6", "fmtlbench_table2_niid3_sdht", *NANO, "--status", "runs", "--format", "json")
    figure, table = json.loads(out)
    assert code == 0 and (figure["runs"], figure["done"], figure["unusable"]) == (1, 1, 0)
    assert table["refused"] == 6 and table["runs"] == table["missing"] == 13
    next((tmp_path / "runs").glob("*/*/*/metrics.jsonl")).unlink()
    _, out, _ = ask("fedhca2_figure6", *NANO, "--status", "runs", "--format", "json")
    assert [json.loads(out)[0][word] for word in ("done", "unusable")] == [0, 1]


def test_a_figure_that_cannot_be_drawn_is_an_exit_code(ask, tmp_path):
    finish_all("fedhca2_figure6", tmp_path / "runs")  # its rounds tell no weights
    code, out, err = ask("fedhca2_figure6", *NANO)
    assert code == 1 and not out and "not drawn: fedhca2_figure6: no alpha and beta" in err


def test_a_damaged_run_is_left_out_with_its_reason(ask, tmp_path):
    finish_all(T5, tmp_path / "runs")
    summary = next((tmp_path / "runs").glob("*/fedhca2/*/summary.json"))
    broken = json.loads(summary.read_text())
    summary.write_text(json.dumps({**broken, "scores": 3}))
    code, out, _ = ask(T5, *NANO, "--claims")
    assert code == 0 and "no numbers" in out


def test_methods_as_public_code_runs_them_are_told_and_have_files_of_their_own(ask, tmp_path):
    finish_all("matfl_table1", tmp_path / "runs", public_code=True)
    code, out, _ = ask("matfl_table1", *NANO, "--public-code")
    assert code == 0 and "methods as the public code ran them (MaT-FL: variant=cluster)" in out
    assert (tmp_path / "reproduced" / "matfl_table1-public-code.tex").exists()
    assert not (tmp_path / "reproduced" / "matfl_table1.tex").exists()
    _, out, _ = ask("matfl_figure4", *NANO, "--public-code", "--dry-run")
    assert "variant=cluster" not in out and "MaT-FL[algo.friends=2]" in out  # clusters have no K


def test_networks_are_counted_with_values_of_one_s_own(ask):
    code, _, err = ask("fmtlbench_table1_model_size", *NANO, "--set", "model.backbone=nope")
    assert code == 2 and "no backbone 'nope'" in err
    made = count_table(load_recipe("fmtlbench_table1_model_size"), [{"encoder_M": 1.0}] * 4, "nano")
    assert "its networks in the places of the paper" in made.tables()[0].notes[0]


def test_claims_are_judged_in_print_and_on_runs(ask, tmp_path):
    finish_all(T5, tmp_path / "runs", seeds=(0, 1, 2))
    code, out, _ = ask(T5, *NANO, "--claims", "--seeds", "0-2", "--format", "json")
    (table,) = json.loads(out)["tables"]
    assert code == 0 and table["rows"]
    words = {cell["word"] for row in table["rows"] for key, cell in row["cells"].items() if key == "measured"}
    assert words <= {"holds", "does not hold", "undecided"}


def test_stand_ins_are_told(ask, tmp_path):
    finish_all("fmtlbench_table6_niid4_ubsdmt", tmp_path / "runs")
    code, out, _ = ask("fmtlbench_table6_niid4_ubsdmt", *NANO)
    assert code == 0 and "resnet_nano stands for resnet18" in out
