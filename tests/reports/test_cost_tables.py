"""`fmtlbench cost`: targets, means, units, and everything that can be missing."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from made_rounds import write_rounds
from made_runs import DUO, write_run
from report_kit import change_json, change_lines, read_row

from fmtlbench.base.errors import UsageError
from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.reports.cost import CONVENTIONS, PAPERS_INTENSITY, cost_tables
from fmtlbench.reports.delta import Bases
from fmtlbench.reports.papers.published import load_published
from fmtlbench.reports.time_to_target import Spent, arrivals, delta_curve, resolution

# Every task of the local run ends at 50 (depth 0.5).
LOCAL = {(client, task): 0.5 if task == "depth" else 50.0 for client, (_, tasks) in DUO.items() for task in tasks}


def write_curve(root, algorithm, deltas, seed=0, every=1, **given):
    """A run whose Δm after each evaluated round is as given: every score is that many percent off the local one's."""
    rounds = len(deltas) * every
    final = {key: value * (1 + (-1 if key[1] == "depth" else 1) * deltas[-1] / 100) for key, value in LOCAL.items()}
    folder = write_rounds(root, algorithm, seed, rounds=rounds, every=every, values=final, **given)

    def rescore(row):
        for score in row.get("scores", ()):
            sign = 1 if score["higher_is_better"] else -1
            delta = deltas[row["round"] // every - 1] / 100
            score["value"] = LOCAL[score["client"], score["task"]] * (1 + sign * delta)
        return row

    change_lines(folder / "metrics.jsonl", rescore)
    return folder


@pytest.fixture
def root(tmp_path):
    write_curve(tmp_path, "local", [-60, -35, -20, -5, 0], every=2)
    write_curve(tmp_path, "fedavg", [-50, -25, -12, -10, -15], every=2)
    return tmp_path


def test_the_first_evaluated_round_at_or_above(root):
    runs = {run.summary["algorithm"]: run for run in collect([root]).runs}
    baselines = Bases(list(runs.values()), "global")
    assert [n for n, _ in delta_curve(runs["fedavg"], baselines)] == [2, 4, 6, 8, 10]
    assert [d for _, d in delta_curve(runs["fedavg"], baselines)] == pytest.approx([-50, -25, -12, -10, -15])
    found = arrivals(runs["fedavg"], baselines, [-30, -10.001, 0])
    assert [a.spent.round if a.spent else a.why for a in found] == [4, 8, "not reached"]
    assert found[0].spent.bytes == 4 * 10**8 and found[0].spent.minutes == pytest.approx(4 * 53 / 60)
    assert found[0].spent.kwh == pytest.approx(0.008) and found[0].spent.co2e_g == pytest.approx(1.2)
    assert resolution(runs["fedavg"], "global") == 2
    assert [a.spent.round for a in arrivals(runs["local"], baselines, [-30, -10, 0])] == [6, 8, 10]


def test_a_row_of_the_table(root):
    (table,) = cost_tables(collect([root]))
    cells = read_row(table, "FedAvg")
    assert cells["power_w"].value == pytest.approx(10 * 0.002 * 3.6e6 / 530)
    assert cells["seconds_per_round"].value == pytest.approx(53)
    assert cells["mb_per_round"].value == pytest.approx(200)
    assert [cells[f"{k}_to_-30"].value for k in ("rounds", "mb", "minutes")] == pytest.approx([4, 400, 4 * 53 / 60])
    assert cells["delta_m"].value == pytest.approx(-15)
    assert read_row(table, "Local")["delta_m"].value == 0
    assert [row.labels[0] for row in table.rows] == ["Local", "FedAvg"]
    assert "every 2 rounds" in " ".join(table.notes)


def test_means_over_seeds_and_those_who_never_arrive(root):
    write_curve(root, "local", [-60, -35, -20, -5, 0], seed=1, every=2)
    write_curve(root, "fedavg", [-70, -60, -40, -35, -33], seed=1, every=2)
    write_curve(root, "fedprox", [-70, -60, -55, -50, -45], seed=0, every=2)
    (table,) = cost_tables(collect([root]), [-30.0, -65.0])
    cells = read_row(table, "FedAvg")
    assert cells["rounds_to_-30"].value == 4 and "1 of 2 seeds" in cells["rounds_to_-30"].note
    assert (cells["rounds_to_-65"].value, cells["rounds_to_-65"].n) == (3, 2)
    assert read_row(table, "FedProx")["rounds_to_-30"].word == "not reached"
    assert read_row(table, "FedProx")["kwh_to_-30"].value is None


def test_without_a_local_run_there_is_no_target(tmp_path):
    write_curve(tmp_path, "fedavg", [-50, 0])
    (table,) = cost_tables(collect([tmp_path]))
    cells = read_row(table, "FedAvg")
    assert cells["rounds_to_-10"].word == "no local run" and cells["delta_m"].value is None
    assert cells["mb_per_round"].value == pytest.approx(200)


def test_a_local_run_of_another_seed_does_not_count(root):
    write_curve(root, "fedprox", [-50, 0, 0, 0, 0], seed=3, every=2)
    (table,) = cost_tables(collect([root]))
    assert read_row(table, "FedProx")["rounds_to_-10"].word == "no local run"


def test_runs_without_energy_say_why(root):
    folder = write_curve(root, "fedprox", [-50, -25, -12, -10, 5], every=2, energy=False)
    energy = {"kwh": None, "co2e_g": None, "reason": "turned off (--no-energy)"}
    change_json(folder / "cost.json", lambda cost: {**cost, "energy": energy})
    (table,) = cost_tables(collect([root]))
    cells = read_row(table, "FedProx")
    assert cells["power_w"].value is None and cells["power_w"].note == "energy: turned off (--no-energy)"
    assert cells["kwh_to_-10"].value is None and cells["minutes_to_-10"].value > 0


def test_a_gap_in_the_energy_leaves_no_sum(root):
    folder = next((root / "duo" / "fedavg").iterdir())
    change_lines(folder / "timing.jsonl", lambda row: {**row, "energy": None} if row["round"] == 3 else row)
    (table,) = cost_tables(collect([root]), [-60.0, -30.0])
    cells = read_row(table, "FedAvg")
    assert cells["kwh_to_-60"].value == pytest.approx(0.004) and cells["kwh_to_-30"].value is None


def test_older_runs_have_what_they_have(tmp_path):
    write_run(tmp_path, algorithm="local", rounds=2)
    (table,) = cost_tables(collect([tmp_path]))
    cells = read_row(table, "Local")
    assert cells["power_w"].value is None and cells["seconds_per_round"].value == 5.0
    assert cells["rounds_to_-10"].value == 2


def test_the_note_names_source_and_intensity_where_the_run_s_own_is_used(root):
    france = {"source": "measured", "how": "cpu RAPL", "g_per_kwh": 56.0, "country": "FRA", "region": None}
    for folder in (root / "duo").glob("*/*"):
        change_json(folder / "cost.json", lambda cost: {**cost, "energy": cost["energy"] | france})
    (ours,), (theirs,) = (cost_tables(collect([root]), convention=name) for name in ("ours", "fmtl-bench"))
    assert "energy: measured (cpu RAPL), CO2e at 56 g/kWh (FRA)" in ours.notes
    assert "energy: measured (cpu RAPL)" in theirs.notes and "56 g/kWh" not in " ".join(theirs.notes)


def test_the_command_line_refuses_and_leaves_out(root, tmp_path_factory, capsys):
    unfinished = root / "duo" / "fedrep" / "nano-synth-s0-00000000"
    unfinished.mkdir(parents=True)
    for name in ("config.yaml", "manifest.json"):
        (unfinished / name).write_text("{}")
    assert main(["cost", str(root)]) == 0
    out, err = capsys.readouterr()
    assert "not finished" in err and "FedRep" not in out
    assert main(["cost", str(unfinished)]) == 2
    assert "no finished run" in capsys.readouterr().err
    with pytest.raises(UsageError, match="personal"):
        cost_tables(collect([root]), split="personal")


# -- training alone, and FMTL-Bench's way of counting -----------------------------------------------------------------


def write_phases(folder, **phases):
    """timing.jsonl with these seconds in every round, and of evaluation and checkpoints in every second one."""
    last = ({"evaluate": 40.0}, {"checkpoint": 2.0})
    change_lines(folder / "timing.jsonl", lambda row: {**row, "seconds": {**phases, **last[row["round"] % 2]}})


PHASES = {"load": 4.0, "step": 30.0, "warmup": 1.0, "other": 0.5, "upload": 0.25, "aggregate": 6.0, "download": 0.25}


def test_training_seconds_are_all_but_evaluation_and_checkpoints(root):
    write_phases(next((root / "duo" / "fedavg").iterdir()), **PHASES)
    (ours,), (theirs,) = (cost_tables(collect([root]), convention=name) for name in ("ours", "fmtl-bench"))
    for table in (ours, theirs):
        assert read_row(table, "FedAvg")["training_seconds_per_round"].value == pytest.approx(42)
    cells = read_row(ours, "FedAvg")
    assert cells["minutes_to_-30"].value == pytest.approx(4 * (42 + 21) / 60)  # the default counts all of it
    assert cells["seconds_per_round"].value == pytest.approx(53)  # cost.json's


def test_training_seconds_are_unknown_where_a_round_has_no_record(root):
    file = next((root / "duo" / "fedavg").iterdir()) / "timing.jsonl"
    change_lines(file, lambda row: row if row["round"] < 10 else None)
    (table,) = cost_tables(collect([root]), convention="fmtl-bench")
    cells = read_row(table, "FedAvg")
    assert cells["training_seconds_per_round"].value is None and cells["round_from_0_to_-30"].value == 3
    assert cells["estimated_kwh_to_-30"].value is None and cells["papers_gb_to_-30"].value is not None


def test_a_row_in_fmtl_benchs_convention(root):
    write_phases(next((root / "duo" / "fedavg").iterdir()), **PHASES)
    (table,) = cost_tables(collect([root]), [-30.0], convention="fmtl-bench")
    cells = read_row(table, "FedAvg")
    watts = 10 * 0.002 * 3.6e6 / 530
    assert cells["power_w"].value == pytest.approx(watts)
    assert cells["papers_gb_per_round"].value == pytest.approx(200 / 1024)
    # reached in the fourth round, whose index is 3
    assert cells["round_from_0_to_-30"].value == 3
    assert cells["papers_gb_to_-30"].value == pytest.approx(3 * 200 / 1024)
    assert cells["training_minutes_to_-30"].value == pytest.approx(3 * 42 / 60)
    kwh = watts * 3 * 42 / 3.6e6
    assert cells["estimated_kwh_to_-30"].value == pytest.approx(kwh)
    assert cells["estimated_co2e_g_to_-30"].value == pytest.approx(541.2 * kwh)
    assert not {"rounds_to_-30", "kwh_to_-30", "mb_to_-30", "minutes_to_-30", "seconds_per_round"} & set(cells)


def test_not_reached_and_no_energy_in_fmtl_benchs_convention(root):
    write_curve(root, "fedprox", [-70, -60, -55, -50, -45], every=2, energy=False)
    (table,) = cost_tables(collect([root]), [-50.0, -30.0], convention="fmtl-bench")
    cells = read_row(table, "FedProx")
    assert cells["round_from_0_to_-30"].word == "not reached" and cells["training_minutes_to_-30"].value is None
    assert cells["round_from_0_to_-50"].value == 7 and cells["training_minutes_to_-50"].value > 0
    assert cells["estimated_kwh_to_-50"].value is cells["estimated_co2e_g_to_-50"].value is None


def published_rows():
    return load_published("fmtlbench_table8_cost_iid1").rows


def test_table_8_follows_from_its_own_columns_in_this_convention():
    """Of all 18 rows: energy, traffic and time until both targets, and CO2e, as printed."""
    whole, encoder = {"MD": 37_390_000, "TC": 18_390_000}, 11_180_000  # the table was made from Table 1's millions
    way = CONVENTIONS["fmtl-bench"]
    columns = {"estimated_kwh": ("energy_to_{}_kWh", 0.006), "papers_gb": ("comm_to_{}_GB", 0.0051),
               "training_minutes": ("time_to_{}_min", 0.51), "estimated_co2e_g": ("co2e_to_{}_g", 0.4)}  # fmt: skip
    for row in published_rows():
        size = {"Local": 0, "MaT-FL": encoder, "FedRep": encoder, "FedMTL": 4 * whole[row["arch"]]}
        moved = 100 * 4 * 4 * size.get(row["method"], whole[row["arch"]])  # rounds × clients × float32, each way
        run = SimpleNamespace(
            summary={"rounds": 100, "bytes_up": moved, "bytes_down": moved},
            cost={"energy": {"power_w": float(row["power_W"])}},
            timing=lambda seconds=float(row["time_per_round_s"]): [{"seconds": {"step": seconds}}] * 100,
        )
        for target in ("-30", "-10"):
            made = int(row[f"rounds_to_{target}"]) + 1
            assert made % 4 == 0  # scores were taken after every fourth round, so the printed index counts from 0
            amounts = {key: value(run, Spent(made, None, None, None, None)) for key, _, value in way.until}
            assert amounts["round_from_0"] == made - 1
            for key, (column, tolerance) in columns.items():
                if column.format(target) in row:
                    assert amounts[key] == pytest.approx(float(row[column.format(target)]), abs=tolerance), (row, key)


def test_the_intensity_is_what_the_co2e_column_implies():
    """CO2e = g/kWh × power × time × index; the digits that are not printed leave an interval."""
    low, high = 0.0, float("inf")
    for row in published_rows():
        watts, seconds, index, grams = (
            float(row[key]) for key in ("power_W", "time_per_round_s", "rounds_to_-10", "co2e_to_-10_g")
        )
        low = max(low, (grams - 0.005) * 3.6e6 / ((watts + 0.005) * (seconds + 0.05) * index))
        high = min(high, (grams + 0.005) * 3.6e6 / ((watts - 0.005) * (seconds - 0.05) * index))
    assert 541.20 < low < high < 541.34
    assert low - 0.01 < PAPERS_INTENSITY < high


@pytest.mark.parametrize("style", ["table", "csv", "md", "latex", "json"])
def test_every_format_says_the_convention(root, capsys, style):
    flags = ["--target", "-10", "--target", "0", "--format", style]
    assert main(["cost", str(root), "--convention", "fmtl-bench", *flags]) == 0
    theirs = capsys.readouterr().out
    assert main(["cost", str(root), *flags]) == 0
    ours = capsys.readouterr().out
    assert "FedAvg" in ours and "not reached" in ours
    if style == "csv":  # keys of columns only
        assert "papers_gb_to_-10" in theirs and "papers_gb" not in ours
    elif style == "json":
        ((one,), (two,)) = map(json.loads, (ours, theirs))
        assert one["rows"][1]["rounds_to_-10"]["value"] == 8
        assert one["rows"][1]["rounds_to_0"] == {"value": None, "word": "not reached"}
        assert (one["convention"], two["convention"]) == ("ours", "fmtl-bench")
        assert two["rows"][1]["round_from_0_to_-10"]["value"] == 7 and one["table"] != two["table"]
        assert "541.2 g/kWh" in " ".join(two["notes"])
    else:
        assert "Table 8 counts" in theirs and "541.2 g/kWh" in theirs
        assert "Table 8" not in ours and "541.2" not in ours and "fmtl-bench" not in ours


def test_an_unknown_convention_has_neighbours(root, capsys):
    with pytest.raises(UsageError, match="did you mean 'fmtl-bench'"):
        cost_tables(collect([root]), convention="fmtlbench")
    with pytest.raises(SystemExit):
        main(["cost", "--help"])
    assert f"{{{','.join(CONVENTIONS)}}}" in capsys.readouterr().out
