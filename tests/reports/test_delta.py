"""Δm by one rule in every command: what it averages, how tasks weigh, what it is against; and rows of settings."""

from __future__ import annotations

import pytest
from made_rounds import write_rounds
from made_runs import DUO, write_absence, write_run
from report_kit import change_json, printed_rows, read_row

from fmtlbench.base.errors import UsageError
from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.reports.cost import cost_tables
from fmtlbench.reports.delta import Bases, Delta, find_reference, parse_task_weights
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.plots.clients import clients_points
from fmtlbench.reports.plots.pareto import pareto_points
from fmtlbench.reports.plots.rounds import rounds_curves
from fmtlbench.reports.settings import merge_settings, parse_axes
from fmtlbench.reports.stats import analyse

# Four alike clients on one dataset and one on another: columns and clients weigh differently.
UNEVEN = {**{f"nyud-depth-{i}": ("nyud", ("depth",)) for i in (1, 2, 3)}, "pascal-sal": ("pascal", ("sal",))}
BASE = {("nyud-depth-1", "depth"): 1.0, ("nyud-depth-2", "depth"): 2.0, ("nyud-depth-3", "depth"): 1.0,
        ("pascal-sal", "sal"): 50.0}  # fmt: skip
OURS = {("nyud-depth-1", "depth"): 0.5, ("nyud-depth-2", "depth"): 2.0, ("nyud-depth-3", "depth"): 1.5,
        ("pascal-sal", "sal"): 60.0}  # fmt: skip
BY_COLUMNS = (0 + 20) / 2  # depth is 4/3 on average in both
BY_CLIENTS = (50 + 0 - 50 + 20) / 4


@pytest.fixture
def uneven(tmp_path):
    write_rounds(tmp_path, "local", clients=UNEVEN, values=BASE)
    write_rounds(tmp_path, "fedavg", clients=UNEVEN, values=OURS)
    return tmp_path


def delta_of(table, label):
    return read_row(table, label)["delta_m"]


@pytest.mark.parametrize("over, expected", [("columns", BY_COLUMNS), ("clients", BY_CLIENTS)])
def test_every_report_averages_the_same(uneven, over, expected):
    collection, delta = collect([uneven]), Delta(over=over)
    (board,) = leaderboards(collection, delta=delta)
    (cost,) = cost_tables(collection, delta=delta)
    curves = rounds_curves(collection.runs, delta=delta).rows
    points = pareto_points(collection.runs, delta=delta)
    last = curves[(curves["label"] == "FedAvg") & (curves["round"] == 6)]["y"]
    found = [
        delta_of(board, "FedAvg").value, delta_of(cost, "FedAvg").value, last.iloc[0],
        points[points["label"] == "FedAvg"]["delta_m"].iloc[0],
    ]  # fmt: skip
    assert found == pytest.approx([expected] * 4)
    words = {"columns": "over columns (a dataset's task", "clients": "over (client, task) pairs"}[over]
    for table in (board, cost):
        assert any(words in note for note in table.notes)


def test_columns_are_the_default_everywhere(uneven):
    collection = collect([uneven])
    assert delta_of(leaderboards(collection)[0], "FedAvg").value == pytest.approx(BY_COLUMNS)
    assert delta_of(cost_tables(collection)[0], "FedAvg").value == pytest.approx(BY_COLUMNS)
    run = next(run for run in collection.runs if run.summary["algorithm"] == "fedavg")
    assert Bases(collection.runs, "global").delta(run, run.summary["scores"]) == pytest.approx(BY_COLUMNS)


def test_task_weights(uneven, capsys):
    weights = parse_task_weights("sal=3, depth=1")
    (board,) = leaderboards(collect([uneven]), delta=Delta(weights=weights))
    assert delta_of(board, "FedAvg").value == pytest.approx((0 + 3 * 20) / 4)
    assert any("tasks weighted sal 3, depth 1" in note for note in board.notes)
    for verb in ("leaderboard", "cost"):
        assert main([verb, str(uneven), "--task-weights", "sal=3", "--format", "csv"]) == 0
        (record,) = (r for r in printed_rows(capsys) if r["method"] == "FedAvg")
        assert float(record["delta_m"]) == pytest.approx(15.0)


@pytest.mark.parametrize(
    "text, words",
    [("semseg", "expected task=weight"), ("semsg=1", "did you mean 'semseg'"), ("depth=-1", "at least 0"),
     ("depth=x", "'x'"), ("depth=inf", "at least 0")],
)  # fmt: skip
def test_bad_weights_are_refused(text, words):
    with pytest.raises(UsageError, match=words):
        parse_task_weights(text)


# -- a named reference -------------------------------------------------------------------------------------------------


def network(architecture, backbone="resnet18", **more):
    return {"architecture": architecture, "backbone": backbone, **more}


@pytest.fixture
def networks(tmp_path):
    """Two architectures; TC's local run is worse than MD's by a fifth."""
    for letter, text, factor in (("a", network("md"), 1.0), ("b", network("tc"), 0.8)):
        for name, gain in (("local", 1.0), ("fedavg", 1.1)):
            values = {("pascal-semseg", "semseg"): 50 * factor * gain, ("nyud-multi", "semseg"): 50 * factor * gain,
                      ("nyud-multi", "depth"): 0.5}  # fmt: skip
            write_rounds(tmp_path, name, clients=DUO, values=values, setting=letter * 64, setting_text=text)
    return tmp_path


def test_without_the_flag_each_setting_has_its_own_local(networks):
    tables = leaderboards(collect([networks]))
    assert [delta_of(table, "FedAvg").value for table in tables] == pytest.approx([20 / 3, 20 / 3])


def test_a_reference_is_the_same_run_for_all_settings(networks):
    collection = collect([networks])
    delta = Delta(reference=find_reference(collection, "algo=local,architecture=md"))
    md, tc = leaderboards(collection, delta=delta)
    assert delta_of(md, "Local").value == 0
    assert delta_of(tc, "Local").value == pytest.approx(-40 / 3)
    assert delta_of(tc, "FedAvg").value == pytest.approx(2 * (0.88 - 1) * 100 / 3)
    assert any("against Local of duo (architecture md)" in note for note in tc.notes)
    _, cost = cost_tables(collection, delta=delta)
    assert delta_of(cost, "FedAvg").value == pytest.approx(-8.0)
    curves = rounds_curves([run for run in collection.runs if run.setting[0] == "b"], delta=delta).rows
    assert curves[curves["round"] == 6]["y"].max() == pytest.approx(-8.0)


@pytest.mark.parametrize(
    "text, words",
    [
        ("architecture=md", "which method"), ("algo=local", "means 2 different rows"),
        ("algo=local,architecture=dm", "did you mean 'md'"), ("algo=lokal", "did you mean 'local'"),
        ("algo=local,archtecture=md", "did you mean 'architecture'"), ("local", "expected key=value"),
    ],
)  # fmt: skip
def test_a_reference_must_be_one_row(networks, text, words):
    with pytest.raises(UsageError, match=words):
        find_reference(collect([networks]), text)


def test_a_reference_of_another_scenario_leaves_out_what_it_does_not_have(tmp_path):
    """FedHCA²'s Table 4: NYUD-v2 clients alone, and with a PASCAL-Context client beside them."""
    alone = {"nyud-multi": DUO["nyud-multi"]}
    write_run(tmp_path, algorithm="local", scenario="alone", clients=alone, setting="a" * 64)
    values = {("nyud-multi", "semseg"): 55.0}
    write_run(tmp_path, algorithm="fedhca2", scenario="both", clients=DUO, values=values, setting="b" * 64)
    collection = collect([tmp_path])
    delta = Delta(reference=find_reference(collection, "algo=local,scenario=alone"))
    (board,) = leaderboards(collection, scenario="both", delta=delta)
    cell = delta_of(board, "FedHCA²")
    assert cell.value == pytest.approx(10 / 2)
    assert "without pascal/semseg/mIoU" in cell.note


def test_clients_of_another_scenario_are_not_paired_with_strangers(tmp_path):
    write_run(tmp_path, algorithm="local", scenario="one", clients={"a": ("nyud", ("depth",))}, setting="a" * 64)
    write_run(tmp_path, algorithm="local", scenario="two", clients={"b": ("nyud", ("depth",))}, setting="b" * 64)
    collection = collect([tmp_path])
    reference = find_reference(collection, "algo=local,scenario=one")
    (board,) = leaderboards(collection, scenario="two", delta=Delta(over="clients", reference=reference))
    assert delta_of(board, "Local").note == "no Δm: Local of one has none of these columns"


def test_a_reference_that_lacks_seeds_is_its_mean_and_says_so(tmp_path):
    for seed, value in ((0, 40.0), (1, 60.0)):
        write_run(tmp_path, algorithm="local", seed=seed, values={("pascal-semseg", "semseg"): value})
    for seed in (0, 7):
        write_run(tmp_path, algorithm="fedavg", seed=seed)
    collection = collect([tmp_path])
    (board,) = leaderboards(collection, delta=Delta(reference=find_reference(collection, "algo=local")))
    cell = delta_of(board, "FedAvg")
    assert cell.value == pytest.approx(0) and cell.n == 2 and cell.interval is None
    assert "no pairs of seeds" in cell.note


def test_commands_agree_where_the_reference_lacks_a_seed(tmp_path):
    both = {("pascal-semseg", "semseg"), ("nyud-multi", "semseg")}
    for name, seeds in (("local", {0: 20.0, 1: 60.0}), ("fedavg", {0: 30.0, 1: 60.0, 2: 50.0})):
        for seed, value in seeds.items():
            write_rounds(tmp_path, name, seed, values=dict.fromkeys(both, value) | {("nyud-multi", "depth"): 0.5})
    collection = collect([tmp_path])
    delta = Delta(reference=find_reference(collection, "algo=local"))
    board, cost = leaderboards(collection, delta=delta)[0], cost_tables(collection, delta=delta)[0]
    points = pareto_points(collection.runs, delta=delta)
    drawn = points[points["label"] == "FedAvg"]["delta_m"].mean()
    expected = 2 / 3 * 100 * ((30 + 60 + 50) / 3 - 40) / 40  # all three against the mean of the two
    assert [delta_of(t, "FedAvg").value for t in (board, cost)] + [drawn] == pytest.approx([expected] * 3)


def test_what_a_reference_does_not_have_is_said_everywhere(tmp_path, capsys):
    alone = {"nyud-multi": DUO["nyud-multi"]}
    write_rounds(tmp_path, "local", clients=alone, scenario="alone", setting="a" * 64)
    write_rounds(tmp_path, "fedavg", clients=DUO, scenario="both", setting="b" * 64)
    other = {"pascal-sal": ("pascal", ("sal",))}
    write_rounds(tmp_path, "local", clients=other, scenario="strange", setting="c" * 64)
    flags = ["--scenario", "both", "--reference", "algo=local,scenario="]
    out = ["-o", str(tmp_path / "f.png")]
    for argv in (["leaderboard", str(tmp_path)], ["cost", str(tmp_path)], ["plot", "rounds", str(tmp_path), *out]):
        assert main([*argv, *flags[:3], flags[3] + "alone"]) == 0
        captured = capsys.readouterr()
        assert "without pascal/semseg/mIoU, which Local of alone does not have" in captured.out + captured.err
    assert main(["plot", "rounds", str(tmp_path), *out, *flags[:3], flags[3] + "strange"]) == 1
    assert "Local of strange has none of its columns" in capsys.readouterr().err
    assert main(["stats", str(tmp_path), "--reference", "algo=local,scenario=strange", "--scenario", "both"]) == 1
    assert "Local of strange has none of the columns" in capsys.readouterr().err


@pytest.mark.parametrize(
    "choice", ["train.lr=1e-4", "train.lr=0.0001", "size.nyud=64", "data.size=nyud 64 and pascal 64", "pretrained=true"]
)
def test_values_of_the_config_name_a_reference(tmp_path, choice):
    for letter, rate in (("a", 0.0001), ("b", 0.1)):
        folder = write_run(tmp_path, setting=letter * 64, config_hash=letter)
        text = f"train: {{lr: {rate}}}\ndata: {{size: {{nyud: 64, pascal: 64}}}}\nmodel: {{pretrained: true}}\n"
        (folder / "config.yaml").write_text(text + "scenario: {name: duo}\nsize: {nyud: 64}\n")
    found = find_reference(collect([tmp_path]), f"algo=local,setting=a,{choice}")
    assert found.runs[0].setting[0] == "a"


def test_labels_with_commas_name_a_reference(tmp_path):
    write_run(tmp_path, algorithm="fedhca2", options={"c": 0.2, "decoder": "none"})
    assert find_reference(collect([tmp_path]), "algo=FedHCA² (c=0.2, decoder=none),scenario=duo").runs


def test_a_lost_config_does_not_hide_what_another_run_tells(networks):
    for run in collect([networks]).runs:
        name = {"a": "md", "b": "tc"}[run.setting[0]]
        if run.summary["algorithm"] == "local":  # found first, since fedavg comes before it: write to both kinds
            (run.folder / "config.yaml").write_text(f"scenario: {{name: duo}}\nmodel: {{architecture: {name}}}\n")
    (table,) = leaderboards(merge_settings(collect([networks]), ("architecture",)))
    assert {row.labels[1] for row in table.rows} == {"md", "tc"}


def test_every_command_takes_a_reference(networks, tmp_path, capsys):
    runs, flags = str(networks), ["--reference", "algo=local,architecture=md"]
    for argv in (["leaderboard", runs], ["cost", runs], ["stats", runs, "--setting", "b"],
                 ["stats", runs, "--rows", "algorithm,architecture"],
                 ["plot", "rounds", runs, "--setting", "b", "-o", str(tmp_path / "f.png")]):  # fmt: skip
        assert main([*argv, *flags]) == 0, argv
        captured = capsys.readouterr()
        assert "Local of duo (architecture md)" in captured.out + captured.err


# -- rows of several settings ------------------------------------------------------------------------------------------


def test_rows_of_several_settings_are_headed_by_what_differs(networks, capsys):
    collection = merge_settings(collect([networks]), parse_axes("algorithm,architecture"))
    (table,) = leaderboards(collection)
    assert table.heads == ("Method", "Architecture")
    assert [row.labels for row in table.rows] == [("Local", "md"), ("FedAvg", "md"), ("Local", "tc"), ("FedAvg", "tc")]
    # without a reference, each row is compared with the local run of its own setting
    gains = [read_row(table, *row.labels)["delta_m"].value for row in table.rows]
    assert gains == pytest.approx([0, 20 / 3, 0, 20 / 3])
    assert "2 settings, told apart by the rows" in table.caption
    flags = ["--rows", "algorithm,architecture", "--reference", "algo=local,architecture=md", "--format", "csv"]
    assert main(["leaderboard", str(networks), *flags]) == 0
    records = printed_rows(capsys)
    assert [r["architecture"] for r in records] == ["md", "md", "tc", "tc"]
    assert [float(r["delta_m"]) for r in records] == pytest.approx([0, 20 / 3, -40 / 3, -8.0])


def test_settings_that_differ_in_more_stay_apart(networks):
    write_rounds(networks, "local", clients=DUO, setting="c" * 64, setting_text=network("tc", "swin_tiny"))
    tables = leaderboards(merge_settings(collect([networks]), ("architecture",)))
    assert sorted(len(table.rows) for table in tables) == [1, 4]
    (one,) = leaderboards(merge_settings(collect([networks]), ("architecture", "backbone")))
    assert len(one.rows) == 5 and one.rows[-1].labels == ("Local", "tc", "swin_tiny")


def test_rows_by_number_of_clients_and_by_scenario(tmp_path):
    more = {**DUO, "nyud-2": ("nyud", ("semseg", "depth"))}
    for clients, letter, scenario in ((DUO, "a", "st_mt_1"), (more, "b", "st_mt_1_2c")):
        write_run(tmp_path, algorithm="local", clients=clients, setting=letter * 64, scenario=scenario)
    (table,) = leaderboards(merge_settings(collect([tmp_path]), ("clients",)))
    assert [row.labels for row in table.rows] == [("Local", "2"), ("Local", "3")]
    (table,) = leaderboards(merge_settings(collect([tmp_path]), ("scenario",)))
    assert [row.labels[1] for row in table.rows] == ["st_mt_1", "st_mt_1_2c"]
    assert table.title == "st_mt_1, st_mt_1_2c version 1, global test split"


def test_other_data_never_share_a_table_even_across_scenarios(tmp_path):
    write_run(tmp_path, scenario="one", setting="a" * 64)
    write_run(tmp_path, scenario="two", setting="b" * 64, data_fingerprints={"nyud/test": "another"})
    with pytest.raises(UsageError, match="saw different nyud/test data"):
        merge_settings(collect([tmp_path]), ("scenario",))


def test_a_row_never_holds_two_settings(tmp_path):
    """A backbone stands for its drop path too: rows that do not show it are refused, not averaged."""
    for seed, (letter, path) in enumerate((("a", 0.1), ("b", 0.5))):
        text = network("md", **{"model.drop_path": path})
        write_run(tmp_path, algorithm="local", seed=seed, setting=letter * 64, setting_text=text)
    with pytest.raises(UsageError, match=r"would share the row Local, resnet18, but differ in model.drop_path"):
        merge_settings(collect([tmp_path]), ("backbone",))
    (table,) = leaderboards(merge_settings(collect([tmp_path]), ("backbone", "model.drop_path")))
    assert [row.labels for row in table.rows] == [("Local", "resnet18", "0.1"), ("Local", "resnet18", "0.5")]
    assert table.heads == ("Method", "Backbone", "Drop_path")


def test_other_data_of_one_setting_do_not_share_a_row(tmp_path):
    for seed, data in enumerate(("one", "two")):
        write_run(tmp_path, seed=seed, setting_text=network("md"), data_fingerprints={"nyud/test": data})
    with pytest.raises(UsageError, match="differ in their data"):
        merge_settings(collect([tmp_path]), ("size",))


def test_refused_and_failed_methods_stay_in_tables_of_several_settings(networks):
    write_absence(networks, algorithm="fedprox", setting="b" * 64)
    (table,) = leaderboards(merge_settings(collect([networks]), ("architecture",)))
    row = next(row for row in table.rows if row.labels == ("FedProx", "tc"))
    assert {cell.word for cell in row.cells[:-1]} == {"NULL"}


def test_rows_of_two_sources_are_not_called_by_the_real_data_s_names(tmp_path):
    for letter, source in (("a", "real"), ("b", "synth")):
        write_run(tmp_path, setting=letter * 64, data=source, setting_text=network("md"))
    (table,) = leaderboards(merge_settings(collect([tmp_path]), ("data",)))
    assert "real, synth data" in table.caption
    assert [heading for heading, _ in table.headings()][:2] == ["pascal (ST)", "nyud (MT)"]


def test_captions_of_merged_tables_leave_out_what_the_rows_say(networks):
    write_rounds(networks, "local", clients=DUO, setting="c" * 64, setting_text=network("tc", "swin_tiny"))
    for table in leaderboards(merge_settings(collect([networks]), ("architecture",))):
        assert "architecture" not in table.caption and "backbone" in table.caption


def test_figures_and_tests_take_rows_of_several_scenarios(tmp_path, capsys):
    more = {f"{client}-{i}": about for client, about in DUO.items() for i in (1, 2)}
    for clients, letter, scenario in ((DUO, "a", "st_mt_1"), (more, "b", "st_mt_1_2c")):
        for name in ("local", "fedavg"):
            write_rounds(tmp_path, name, clients=clients, setting=letter * 64, scenario=scenario)
    runs, out = str(tmp_path), str(tmp_path / "f.png")
    for argv in (["plot", "rounds", runs, "-o", out], ["stats", runs], ["cost", runs], ["leaderboard", runs]):
        assert main([*argv, "--rows", "algorithm,clients"]) == 0, argv
    assert "st_mt_1, st_mt_1_2c: what the runs cost" in capsys.readouterr().out


def test_unknown_axes_are_refused_by_name(networks):
    with pytest.raises(UsageError, match=r"--rows: no value of a setting 'architektur'; did you mean 'archi"):
        merge_settings(collect([networks]), ("architektur",))
    with pytest.raises(UsageError, match="expected names"):
        parse_axes("algorithm,,backbone")


def test_clients_figure_reads_the_same_delta(tmp_path):
    more = {**DUO, "nyud-2": DUO["nyud-multi"]}
    for clients, letter in ((DUO, "a"), (more, "b")):
        write_rounds(tmp_path, "local", clients=clients, setting=letter * 64, values={("nyud-2", "depth"): 1.5})
        ours = {("nyud-multi", "depth"): 0.25, ("nyud-2", "depth"): 1.75}  # the mean stays
        write_rounds(tmp_path, "fedavg", clients=clients, setting=letter * 64, values=ours)
    points = clients_points(collect([tmp_path]).runs).rows.set_index("x")["y"]
    assert points[2] == pytest.approx(50 / 3) and points[3] == pytest.approx(0)
    pairs = clients_points(collect([tmp_path]).runs, delta=Delta("clients")).rows.set_index("x")["y"]
    assert pairs[2] == pytest.approx(50 / 3)  # one client for each column: the same
    assert pairs[3] == pytest.approx((50 - 100 / 6) / 5)


# -- spread ------------------------------------------------------------------------------------------------------------


def test_spread_over_clients(uneven):
    (board,) = leaderboards(collect([uneven]), spread="clients")
    cells = read_row(board, "Local")
    depth, sal = cells["nyud/depth/RMSE"], cells["pascal/sal/maxF"]
    assert (depth.value, depth.n) == (pytest.approx(4 / 3), 3)
    assert depth.std == pytest.approx((1 / 3) ** 0.5)  # of 1, 2, 1
    assert sal.std is None
    assert "mean ± standard deviation over clients" in board.caption
    assert leaderboards(collect([uneven]))[0].rows[0].cells[0].std is None  # one seed
    with pytest.raises(UsageError, match="did you mean 'clients'"):
        leaderboards(collect([uneven]), spread="client")


def test_the_mean_does_not_depend_on_the_spread(tmp_path):
    """A client without a score in one seed leaves a hole in that seed, whatever ± is over."""
    alike = {f"nyud-depth-{i}": ("nyud", ("depth",)) for i in (1, 2, 3)}
    for seed in (0, 1):
        values = {(client, "depth"): 1.0 + i + 3 * seed for i, client in enumerate(alike)}
        values["nyud-depth-3", "depth"] = 3.0 if seed == 0 else None
        write_run(tmp_path, clients=alike, values=values, seed=seed)
    found = [leaderboards(collect([tmp_path]), spread=spread)[0].rows[0].cells[0] for spread in ("seeds", "clients")]
    assert [cell.value for cell in found] == [2.0, 2.0]
    assert found[1].std == pytest.approx(0.5**0.5)  # of 2.5 and 3.5; the third client has no mean


# -- blocks of the tests -----------------------------------------------------------------------------------------------


def test_alike_clients_are_one_block_on_the_global_images(tmp_path):
    alike = {f"nyud-multi-{i}": ("nyud", ("semseg", "depth")) for i in (1, 2, 3, 4)}
    for name, value in (("local", 40.0), ("fedavg", 50.0), ("ditto", 45.0)):
        values = {(client, "semseg"): value + i for i, client in enumerate(alike)}
        write_run(tmp_path, algorithm=name, clients=alike, values=values, splits=("global", "personal"))
    frame = collect([tmp_path]).frame
    found = analyse(frame)
    assert len(found.blocks.matrix) == 2
    assert found.blocks.matrix.loc[("duo", "nyud-multi", "semseg"), "Local"] == 41.5
    assert any("8 blocks were collapsed to 2" in note for note in found.notes)
    personal = analyse(frame, split="personal")
    assert len(personal.blocks.matrix) == 8 and not any("collapsed" in note for note in personal.notes)


def test_a_record_that_is_absent_is_a_hole_like_one_without_a_value(tmp_path):
    for name in ("local", "fedavg", "ditto"):
        for seed in (0, 1):
            folder = write_run(tmp_path, algorithm=name, seed=seed, values={("pascal-semseg", "semseg"): 50.0 + seed})
    without = lambda made: {**made, "scores": [score for score in made["scores"] if score["task"] != "depth"]}
    change_json(folder / "summary.json", without)
    found = analyse(collect([tmp_path]).frame, pair=("FedAvg", "Local"))
    assert [task for _, _, task in found.blocks.matrix.index] == ["semseg", "semseg"]
    assert found.improvement.probability == 0.5
