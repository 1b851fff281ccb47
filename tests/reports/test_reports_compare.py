"""Measured beside published."""

from __future__ import annotations

import pytest
from made_runs import ST_MT_1, score, write_run
from report_kit import read_row

from fmtlbench.base.errors import UsageError
from fmtlbench.cli._installed import Installed
from fmtlbench.config.resolve import resolve
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import Delta, find_reference
from fmtlbench.reports.papers.compare import compare
from fmtlbench.reports.papers.published import load_published

NAME = "fedhca2_table1_st_mt_1"
PAPER = {"scenario": "st_mt_1", "preset": "paper", "data": "real", "rounds": 100, "clients": ST_MT_1}


def published_values(method, shift=0.0):
    """The paper's cells as scores, each moved by `shift`."""
    table = load_published(NAME)
    row = next(row for row in table.rows if row["method"] == method)
    values = {}
    for column, meaning in table.scores.items():
        client = "nyud-multi" if meaning.dataset == "nyud" else f"pascal-{meaning.task}"
        values[client, meaning.task] = float(row[column]) + shift
    return values


def paper_run(root, algorithm, method, overrides=None, **given):
    folder = write_run(root, algorithm=algorithm, values=published_values(method), **{**PAPER, **given})
    config = resolve("local", "st_mt_1", "paper", overrides=overrides)
    (folder / "config.yaml").write_text(config.dump(), encoding="utf-8")
    return folder


def test_the_paper_s_own_numbers_have_no_gap(tmp_path):
    paper_run(tmp_path, "local", "Local")
    paper_run(tmp_path, "fedhca2", "FedHCA2")
    (table,) = compare(collect([tmp_path]), NAME, Installed())
    assert not table.title.startswith("not the same setting")
    assert all("≠" not in column.title for column in table.columns)
    gaps = read_row(table, "FedHCA2", "gap")
    assert all(gap.value == pytest.approx(0, abs=0.005) for gap in gaps.values())
    assert read_row(table, "FedHCA2", "measured")["delta_m"].value == pytest.approx(2.18, abs=0.01)
    assert read_row(table, "FedHCA2", "published")["delta_m"].printed == "2.18"
    assert "no run of: FedAvg, FedProx, FedPer, Ditto, FedAMP, MaT-FL" in table.notes


def test_another_setting_is_the_first_thing_said(tmp_path):
    write_run(tmp_path, algorithm="local", clients=ST_MT_1, scenario="st_mt_1", values=published_values("Local", 1.0))
    write_run(tmp_path, algorithm="fedbabu", clients=ST_MT_1, scenario="st_mt_1")
    (table,) = compare(collect([tmp_path]), NAME, Installed())
    assert table.title == (
        "not the same setting: preset nano (paper: paper), data synth (paper: real), rounds 40 (paper: 100), "
        "architecture unknown (paper: fedhca2), backbone unknown (paper: swin_tiny)"
    )
    assert all("≠" in column.title for column in table.columns)
    gap = read_row(table, "Local", "gap")["pascal_semseg_mIoU"]
    assert gap.value == pytest.approx(1.0) and gap.printed == "+1.00"
    assert "not in the paper's table: fedbabu" in table.notes


def test_an_overridden_value_of_the_right_preset_is_found(tmp_path):
    paper_run(tmp_path, "local", "Local", overrides={"train.lr": 0.001})
    (table,) = compare(collect([tmp_path]), NAME, Installed())
    assert table.title == "not the same setting: train.lr 0.001 (preset: 0.0001)"


def test_a_lost_config_is_not_taken_for_the_paper_s(tmp_path):
    (paper_run(tmp_path, "local", "Local") / "config.yaml").unlink()
    (table,) = compare(collect([tmp_path]), NAME, Installed())
    assert table.title.startswith("not the same setting: config.yaml is lost, so other values are unknown")


def test_another_scenario_is_refused_with_the_nearest_tables(tmp_path):
    write_run(tmp_path, clients=ST_MT_1, scenario="st_mt_1")
    with pytest.raises(UsageError, match=r"the runs are of st_mt_1; tables for those: fedhca2_table1"):
        compare(collect([tmp_path]), "fedhca2_table2_st_mt_2", Installed())


def test_a_table_without_scores_or_methods_in_common_is_refused(tmp_path):
    write_run(tmp_path, algorithm="fedbabu", title="FedBABU", clients=ST_MT_1, scenario="st_mt_1")
    with pytest.raises(UsageError, match="holds no scores"):
        compare(collect([tmp_path]), "fmtlbench_table8_cost_iid1", Installed())
    with pytest.raises(UsageError, match="the runs are FedBABU"):
        compare(collect([tmp_path]), NAME, Installed())


def test_rows_follow_the_network_and_scales_are_the_paper_s(tmp_path):
    clients = {f"nyud-multi-{i}": ("nyud", ("semseg", "normals", "depth", "edge")) for i in (1, 2, 3, 4)}
    loss = [
        {**score(c, "nyud", "edge", 0.05, split), "metric": "edge_loss_public", "primary": False}
        for c in clients for split in ("global", "personal")
    ]  # fmt: skip
    values = {("nyud-multi-1", "depth"): 0.6, ("nyud-multi-2", "depth"): 1.0}
    write_run(
        tmp_path, algorithm="fedavg", clients=clients, values=values, scenario="niid4_ubsdmt", extra_scores=loss,
        splits=("global", "personal"), setting_text={"architecture": "tc", "backbone": "resnet18"},
    )  # fmt: skip
    (table,) = compare(collect([tmp_path]), "fmtlbench_table6_niid4_ubsdmt", Installed())
    assert {row.labels[0] for row in table.rows} == {"FedAvg TC"}
    ours = read_row(table, "FedAvg TC", "measured")
    assert ours["global_depth_RMSE_x100"].value == pytest.approx(100 * (0.6 + 1.0 + 0.5 + 0.5) / 4)
    assert ours["personal_edge_loss_x100"].value == pytest.approx(5.0)
    assert ours["global_delta"].value is None and "another scenario" in ours["global_delta"].note
    assert "architecture" not in table.title


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        (
            {"evaluation.metric_options.miou.absent": "skip"},
            "metric_options.miou.absent skip (preset: zero)",
        ),
        ({"evaluation.metric_options.odsf.nms": False}, "evaluation.metric_options.odsf.nms False (preset: None)"),
        ({"evaluation.metric_options": None}, "evaluation.metric_options.miou.absent None (preset: zero)"),
        ({"evaluation.when": "before_aggregation"}, "evaluation.when before_aggregation (preset: after_aggregation)"),
    ],
)
def test_other_options_of_metrics_are_another_setting(tmp_path, change, said):
    paper_run(tmp_path, "fedhca2", "FedHCA2", change)
    (table,) = compare(collect([tmp_path]), NAME, Installed())
    assert said in table.title
    assert ("evaluation." in table.title) is bool(said)


def test_only_rows_of_the_own_network_are_shown_and_nano_stands_for_its_family(tmp_path):
    clients = {"nyud-multi": ("nyud", ("semseg", "depth"))}
    for number, (architecture, backbone) in enumerate((("md", "resnet_nano"), ("tc", "swin_nano"))):
        text = {"architecture": architecture, "backbone": backbone}
        write_run(
            tmp_path / str(number), algorithm="fedavg", clients=clients, scenario="niid4_ubsdmt", setting_text=text
        )
    (table,) = compare(collect([tmp_path / "0"]), "fmtlbench_table6_niid4_ubsdmt", Installed())
    assert {row.labels[0] for row in table.rows} == {"FedAvg MD"}
    assert "backbone resnet_nano (paper: resnet18)" in table.title and "architecture" not in table.title
    assert "not measured" in read_row(table, "FedAvg MD", "measured")["global_edge_loss_x100"].note
    (other,) = compare(collect([tmp_path / "1"]), "fmtlbench_table6_niid4_ubsdmt", Installed())
    assert {row.labels[0] for row in other.rows} == {"FedAvg TC"}, (
        "there is one backbone, so it is clear which is meant"
    )
    assert "backbone swin_nano (paper: resnet18)" in other.title


def test_of_several_backbones_none_is_chosen_for_one_of_another_family(tmp_path):
    text = {"architecture": "fedhca2", "backbone": "resnet_nano"}
    write_run(tmp_path, algorithm="fedhca2", clients=ST_MT_1, scenario="st_mt_1", setting_text=text)
    with pytest.raises(UsageError, match=r"no row of these runs' network: backbone resnet_nano \(paper: swin_tiny or"):
        compare(collect([tmp_path]), "fedhca2_supp_table3_backbones", Installed())


def test_a_named_reference_gives_the_delta_that_the_paper_takes_against_another_scenario(tmp_path):
    clients = {f"nyud-multi-{i}": ("nyud", ("semseg", "normals", "depth", "edge")) for i in (1, 2)}
    text = {"architecture": "md", "backbone": "resnet18"}
    common = {"clients": clients, "setting_text": text, "splits": ("global", "personal")}
    loss = [
        {**score(c, "nyud", "edge", 0.05, split), "metric": "edge_loss_public", "primary": False}
        for c in clients for split in ("global", "personal")
    ]  # fmt: skip
    write_run(tmp_path, algorithm="local", scenario="iid1_sdmt", setting="b" * 64, extra_scores=loss, **common)
    better = {("nyud-multi-1", "semseg"): 60.0, ("nyud-multi-2", "semseg"): 50.0}
    write_run(tmp_path, algorithm="fedavg", scenario="niid4_ubsdmt", values=better, extra_scores=loss, **common)
    collection = collect([tmp_path])
    (table,) = compare(collection, "fmtlbench_table6_niid4_ubsdmt", Installed())
    assert "--reference names it" in read_row(table, "FedAvg MD", "measured")["global_delta"].note
    delta = Delta(reference=find_reference(collection, "algo=local,scenario=iid1_sdmt"))
    (table,) = compare(collection, "fmtlbench_table6_niid4_ubsdmt", Installed(), delta)
    assert read_row(table, "FedAvg MD", "measured")["global_delta"].value == pytest.approx(
        10 / 4
    )  # +10 % of four columns
    assert any("against Local of iid1_sdmt" in note for note in table.notes)


def test_variants_match_by_their_options_and_scenario_parameters_by_value(tmp_path):
    write_run(tmp_path, algorithm="fedhca2", clients=ST_MT_1, scenario="st_mt_1", options={"c": 0.2})
    (table,) = compare(collect([tmp_path]), "fedhca2_supp_table7_c_st_mt_1", Installed())
    assert {row.labels[0] for row in table.rows} == {"0.2"}
    clients = {"pascal-semseg": ("pascal", ("semseg",)), "pascal-sal": ("pascal", ("sal",))}
    write_run(
        tmp_path, algorithm="matfl", options={"variant": "voting"}, clients=clients, scenario="matfl_pascal5",
        setting_text={"scenario_parameters": {"clients_per_task": 1}}, values={("pascal-semseg", "semseg"): 30.45},
    )  # fmt: skip
    (table,) = compare(collect([tmp_path]), "matfl_table2_scale", Installed())
    assert {row.labels[0] for row in table.rows} == {"1 MaT-FL"}
    assert read_row(table, "1 MaT-FL", "gap")["pascal_semseg_mIoU"].value == pytest.approx(0)


@pytest.mark.parametrize(
    ("algorithm", "options", "row"),
    [
        ("matfl", {"variant": "voting"}, "MaT-FL"),
        ("fedavg", {"shared": "encoder"}, "Plain Many-Task FL"),
        ("fedprox", {"shared": "encoder", "mu": 0.01}, "FedProx"),
    ],
)
@pytest.mark.parametrize("preset", ["mat-fl", "nano"])
def test_a_run_stands_beside_the_papers_variant_whatever_its_preset(tmp_path, preset, algorithm, options, row):
    clients = {"pascal-semseg": ("pascal", ("semseg",)), "pascal-sal": ("pascal", ("sal",))}
    given = {"clients": clients, "scenario": "matfl_pascal5", "preset": preset, "algorithm": algorithm}
    write_run(tmp_path, options=options, **given)
    (table,) = compare(collect([tmp_path]), "matfl_table1", Installed())
    assert {line.labels[0] for line in table.rows} == {f"pascal5 {row}"}
    other = {"variant": "cluster"} if algorithm == "matfl" else {**options, "shared": "all"}
    write_run(tmp_path, options=other, config_hash="other", **given)
    (table,) = compare(collect([tmp_path]), "matfl_table1", Installed())
    assert {line.labels[0] for line in table.rows} == {f"pascal5 {row}"}
    assert any(f"({next(iter(other))}={next(iter(other.values()))})" in note for note in table.notes)


def test_constants_of_another_preset_do_not_keep_a_run_out_of_the_table(tmp_path):
    clients = {f"nyud-{n}": ("nyud", ("semseg", "depth", "normals", "edge")) for n in range(4)}
    for preset, mu in (("nano", 0.01), ("fmtl-bench", 0.001), ("fmtl-bench", 0.1)):
        options, text = {"mu": mu, "shared": "all"}, {"architecture": "md", "backbone": "resnet18"}
        write_run(
            tmp_path, algorithm="fedprox", options=options, clients=clients, scenario="niid4_ubsdmt", preset=preset,
            setting=preset.ljust(64, "0"), setting_text=text, config_hash=f"{mu}",
        )  # fmt: skip
    tables = compare(collect([tmp_path]), "fmtlbench_table6_niid4_ubsdmt", Installed())
    assert [{line.labels[0] for line in table.rows} for table in tables] == [{"FedProx MD"}] * 2
    assert "not in the paper's table: FedProx (mu=0.1)" in [note for table in tables for note in table.notes]


def test_another_number_of_clients_is_not_the_paper_s_setting(tmp_path):
    clients = {f"pascal-{task}": ("pascal", (task,)) for task in ("semseg", "sal")}
    for count in (1, 2):
        text = {"scenario_parameters": {"clients_per_task": count}}
        write_run(
            tmp_path, algorithm="matfl", options={"variant": "voting"}, clients=clients, scenario="matfl_pascal5",
            setting=f"{count}" * 64, setting_text=text, config_hash=f"{count}",
        )  # fmt: skip
    one, two = compare(collect([tmp_path]), "matfl_table1", Installed())
    assert "clients_per_task 1 (paper: 2)" in one.title and "clients_per_task" not in two.title
    assert "scenario with clients_per_task=1" in one.caption


def test_weights_of_a_file_are_not_taken_for_the_paper_s(tmp_path):
    folder = paper_run(tmp_path, "local", "Local")
    text = (folder / "config.yaml").read_text(encoding="utf-8")
    (folder / "config.yaml").write_text(text.replace("weights_sha256: null", "weights_sha256: abcdef0123456789"))
    (table,) = compare(collect([tmp_path]), NAME, Installed())
    assert table.title.startswith("not the same setting: encoder weights of a file (sha256 abcdef01)")


def test_encoder_only_variants_match_by_their_name(tmp_path):
    clients = {"nyud-multi": ("nyud", ("semseg", "depth")), "pascal-multi": ("pascal", ("human_parts", "normals"))}
    text = {"architecture": "md", "backbone": "resnet18"}
    for shared in ("encoder", "all"):
        write_run(
            tmp_path, algorithm="fedprox", options={"shared": shared, "mu": 0.01}, clients=clients, setting_text=text,
            scenario="niid6_ubcdmt", config_hash=shared,
        )  # fmt: skip
    (table,) = compare(collect([tmp_path]), "fmtlbench_table7_niid6_ubcdmt_global", Installed())
    assert {row.labels[0] for row in table.rows} == {"resnet FedProx-E MD"}
    assert "not in the paper's table: FedProx" in table.notes


def test_every_paper_has_its_network(tmp_path):
    text = {"architecture": "md", "backbone": "resnet18"}
    write_run(tmp_path, algorithm="local", clients=ST_MT_1, scenario="st_mt_1", setting_text=text)
    with pytest.raises(UsageError, match=r"no row of these runs' network: architecture md \(paper: fedhca2\)"):
        compare(collect([tmp_path]), NAME, Installed())


def test_the_reference_s_own_row_is_zero_wherever_its_runs_stand(tmp_path):
    for name, factor in (("fedavg", 1.1), ("local", 1.0)):
        values = {key: value * factor for key, value in published_values("Local", 0.0).items()}
        for seed in (0, 1):
            write_run(tmp_path, algorithm=name, clients=ST_MT_1, scenario="st_mt_1", values=values, seed=seed)
    collection = collect([tmp_path])
    (table,) = compare(collection, NAME, Installed(), Delta(reference=find_reference(collection, "algo=local")))
    own = read_row(table, "Local", "measured")["delta_m"]
    assert own.value == 0 and own.interval is None
    assert any(note.startswith("† differs from Local of st_mt_1") for note in table.notes)
