"""Modelled time: who is waited for, what a line costs, when a target is reached, and what old rows do not tell."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rounds import write_rounds
from made_runs import DUO

from fmtlbench.base.errors import UsageError
from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.reports.formats import render
from fmtlbench.reports.time_model import (
    GivenProfile,
    NoRecordError,
    Profile,
    TimeModel,
    make_model,
    model_round,
    model_run,
    parse_latency,
    parse_rate,
)
from fmtlbench.reports.time_tables import Target, parse_target, time_tables

FIRST, SECOND = DUO  # pascal-semseg, nyud-multi
MB = 10**6
OLD = Path(__file__).parents[1] / "runs" / "first_format"


def traffic(up, down):
    """What a ledger has of a client, of two kinds of parts."""
    return {"up": {"encoder": up - 1, "decoder": 1}, "down": {"encoder": down}}


def row(number=1, ledger=None, **more):
    ledger = {FIRST: traffic(4 * MB, 2 * MB), SECOND: traffic(8 * MB, 6 * MB)} if ledger is None else ledger
    return {"round": number, "bytes_up": 0, "bytes_down": 0, "ledger": ledger, **more}


def clocks(number=1, first=10.0, second=3.0):
    clients = {
        FIRST: {"load": 1.0, "step": first - 2, "other": 1.0, "evaluate": 500.0},
        SECOND: {"warmup": second, "evaluate": 900.0},
    }
    seconds = {"train": 13.0, "upload": 70.0, "aggregate": 0.5, "download": 80.0, "evaluate": 1400.0, "checkpoint": 9.0}
    return {"round": number, "seconds": seconds, "clients": clients}


def model_one(model, **more):
    return model_round(row(**more), clocks(), list(DUO), model)


# -- one round ---------------------------------------------------------------------------------------------------------


def test_a_round_is_its_slowest_client_and_the_servers_step():
    done = model_one(TimeModel())
    assert (done.slowest.client, done.slowest.compute, done.server) == (FIRST, 10.0, 0.5)  # evaluation is no part
    assert done.seconds == 10.5 and done.slowest.download == done.slowest.upload == 0


def test_lines_and_latencies_are_added_to_the_work():
    done = model_one(TimeModel(Profile(up=1 * MB, down=2 * MB, latency=0.25)))
    # 10 s + 4 s + 1 s for the first client, 3 s + 8 s + 3 s for the second, and two messages each.
    assert done.slowest.client == FIRST and done.seconds == pytest.approx(10 + 4 + 1 + 0.5 + 0.5)
    done = model_one(TimeModel(Profile(up=0.5 * MB, down=2 * MB)))
    assert done.slowest.client == SECOND and done.seconds == pytest.approx(3 + 16 + 3 + 0.5)
    assert (done.slowest.upload, done.slowest.download) == pytest.approx((16, 3))


def test_a_client_may_have_a_machine_and_a_line_of_its_own():
    slow = TimeModel(Profile(), {SECOND: Profile(slowdown=4.0)})
    assert model_one(slow).slowest.client == SECOND and model_one(slow).seconds == pytest.approx(12.5)
    thin = TimeModel(Profile(), {SECOND: Profile(up=0.1 * MB)})
    assert model_one(thin).seconds == pytest.approx(3 + 80 + 0.5)


def test_only_those_who_were_there_are_waited_for():
    done = model_one(TimeModel(), present=[SECOND])
    assert done.slowest.client == SECOND and done.seconds == 3.5
    # Somebody who takes no part, such as an unseen client that is sent an encoder once, is not waited for.
    ledger = {FIRST: traffic(1, 1), SECOND: traffic(1, 1), "stranger": traffic(10**15, 10**15)}
    assert model_one(TimeModel(Profile(up=MB, down=MB)), ledger=ledger).slowest.client == FIRST


def test_who_sends_nothing_waits_for_no_line():
    done = model_one(TimeModel(Profile(up=1.0, down=1.0, latency=7.0)), ledger={})
    assert done.seconds == 10.5


rates = st.none() | st.floats(1e3, 1e9)


@settings(max_examples=100, deadline=None)
@given(rates, rates, st.floats(0, 5), st.floats(0.1, 50), st.floats(1, 20))
def test_nothing_slower_makes_a_round_shorter(up, down, latency, slowdown, worse):
    profile = Profile(slowdown, up, down, latency)
    usual = model_one(TimeModel(profile)).seconds
    slower = [Profile(slowdown * worse, up, down, latency), Profile(slowdown, up, down, latency * worse)]
    slower += [Profile(slowdown, up and up / worse, down and down / worse, latency)]
    for other in slower:
        assert model_one(TimeModel(other)).seconds >= usual * (1 - 1e-12)
        assert model_one(TimeModel(profile, {SECOND: other})).seconds >= usual * (1 - 1e-12)
    assert usual >= model_one(TimeModel(Profile(slowdown))).seconds * (1 - 1e-12)


# -- rows that do not tell ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("round_row", "timing", "said"),
    [
        ({"round": 3, "bytes_up": 9, "bytes_down": 9}, clocks(), "round 3: metrics.jsonl does not tell the bytes"),
        (row(3), None, "round 3 is not in timing.jsonl"),
        (row(3), {"round": 3, "seconds": {"train": 5.0}}, "round 3: timing.jsonl does not tell the seconds by client"),
        (row(3), {**clocks(), "clients": {FIRST: {"step": 1.0}}}, f"does not tell how long {SECOND} worked"),
    ],
)
def test_what_is_not_recorded_is_told_and_not_guessed(round_row, timing, said):
    with pytest.raises(NoRecordError, match=said):
        model_round(round_row, timing, list(DUO), TimeModel())


def test_one_round_without_a_record_spoils_the_sum():
    rows, timing = [row(n) for n in (1, 2, 3)], [clocks(n) for n in (1, 2, 3)]
    whole = model_run(rows, timing, list(DUO), TimeModel())
    assert whole.ends == pytest.approx([10.5, 21.0, 31.5]) and whole.seconds_until(2) == pytest.approx(21.0)
    assert whole.seconds_until(4) is None
    for broken, said in (
        (model_run(rows, timing[:2], list(DUO), TimeModel()), "round 3 is not in timing.jsonl"),
        (model_run(rows[1:], timing, list(DUO), TimeModel()), "round 1 is not in metrics.jsonl"),
        (model_run([], [], list(DUO), TimeModel()), "no round"),
    ):
        assert not broken.rounds and said in broken.why_not and broken.seconds_until(1) is None


def test_runs_of_the_first_format_are_modelled():
    (table,) = time_tables(collect([OLD]), make_model(default=GivenProfile(up="10Mbit", down="50Mbit")))
    cells = by_key(table, "FedAvg")
    assert cells["seconds_per_round"].value > cells["transfer_seconds_per_round"].value > 3.308 * 8 / 10
    assert cells["seconds_per_round"].value == pytest.approx(
        sum(cells[f"{part}_seconds_per_round"].value for part in ("compute", "transfer", "server"))
    )


# -- rates, times, files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10Mbit", 1.25e6),
        ("10 Mbit/s", 1.25e6),
        ("800kbit", 1e5),
        ("1Gbit", 1.25e8),
        ("2.5MB", 2.5e6),
        ("1e3kB/s", 1e6),
        ("1GB", 1e9),
    ],
)
def test_rates(text, rate):
    assert parse_rate(text, "--up") == pytest.approx(rate)


@pytest.mark.parametrize(("text", "seconds"), [("50ms", 0.05), ("0.2s", 0.2), ("0ms", 0.0), ("1 s", 1.0)])
def test_latencies(text, seconds):
    assert parse_latency(text, "--latency") == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (parse_rate, "10mbit", "--x 10mbit: no unit 'mbit'; did you mean 'kbit' or 'Mbit' or 'Gbit'"),
        (parse_rate, "10Mib", "no unit 'Mib'; did you mean 'Mbit'"),
        (parse_rate, "10", "no unit; expected one of kbit, Mbit"),
        (parse_rate, "0Mbit", "expected more than 0"),
        (parse_rate, "-3Mbit", "expected a number with a unit, such as 10Mbit"),
        (parse_rate, "fast", "expected a number with a unit"),
        (parse_rate, "nanMB", "expected a number with a unit"),
        (parse_rate, "", "expected a number with a unit"),
        (parse_latency, "50", "no unit; expected one of ms, s"),
        (parse_latency, "50min", "no unit 'min'"),
        (parse_latency, "-1s", "expected a number with a unit, such as 50ms"),
    ],
)
def test_wrong_rates_and_latencies(parse, text, said):
    with pytest.raises(UsageError) as caught:
        parse(text, "--x")
    assert said in str(caught.value)


@pytest.mark.parametrize("wrong", [{"slowdown": 0.0}, {"up": 0.0}, {"down": -1.0}, {"latency": -1.0}, {"up": math.inf}])
def test_profiles_that_cannot_be(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Profile(**wrong)


FILE = f"""\
default: {{up: 10Mbit, down: 50Mbit, latency: 50ms}}
clients:
  {FIRST}: {{speed: 0.25, up: 1Mbit}}
"""


def test_a_file_says_what_clients_are_like_and_flags_say_otherwise(tmp_path):
    file = tmp_path / "phones.yml"
    file.write_text(FILE)
    model = make_model(file)
    assert model.default == Profile(1.0, 1.25e6, 6.25e6, 0.05)
    assert model.of(FIRST) == Profile(4.0, 0.125e6, 6.25e6, 0.05) and model.of(SECOND) == model.default
    flags = GivenProfile(up="20Mbit", latency="0ms")
    model = make_model(file, flags, {SECOND: 3.0}, {FIRST: ("2Mbit", "4Mbit")}, compute=10.0)
    assert model.default == Profile(10.0, 2.5e6, 6.25e6, 0.0)
    assert model.of(FIRST) == Profile(40.0, 0.25e6, 0.5e6, 0.0)
    assert model.of(SECOND) == Profile(30.0, 2.5e6, 6.25e6, 0.0)


def test_an_empty_file_says_nothing(tmp_path):
    file = tmp_path / "empty.yml"
    file.write_text("")
    assert make_model(file) == make_model() == TimeModel()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clients: {a: {speed: 0}}", ["phones.yml:1", "clients.a.speed", "more than 0"]),
        ("default:\n  up: 0Mbit", ["phones.yml:2: default.up 0Mbit: expected more than 0"]),
        ("clients:\n  a: {up: 1Mbit,\n      down: 3mbit}", ["phones.yml:3: clients.a.down 3mbit", "or 'Mbit'"]),
        ("defaults: {up: 1Mbit}", ["phones.yml:1", "unknown key 'defaults'; did you mean 'default'"]),
        ("clients: {a: {spead: 3}}", ["unknown key 'spead'; did you mean 'speed'"]),
        ("clients: {a: {up: 10}}", ["clients.a.up", "expected text"]),
        ("[1, 2]", ["expected a mapping"]),
    ],
)
def test_a_wrong_file_names_the_line(tmp_path, text, said):
    file = tmp_path / "phones.yml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        make_model(file)
    assert all(words in str(caught.value) for words in said), caught.value


# -- tables ------------------------------------------------------------------------------------------------------------


def write_modelled(root, algorithm, scores, seed=0, every=2, busy=10.0, sent=MB, **given):
    """A run of which every score of every task is as given after each scored round, and that can be modelled."""
    rounds = len(scores) * every
    final = {(client, task): scores[-1] for client, (_, tasks) in DUO.items() for task in tasks}
    folder = write_rounds(root, algorithm, seed, rounds=rounds, every=every, values=final, **given)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for one in rows:
        one["ledger"] = {client: traffic(sent, sent) for client in DUO} if sent else {}
        one["bytes_up"] = one["bytes_down"] = len(DUO) * sent
        for score in one.get("scores", ()):
            score["value"] = scores[one["round"] // every - 1]
    timing = [{**clocks(n, busy, busy / 2)} for n in range(1, rounds + 1)]
    write_lines(folder / "metrics.jsonl", rows)
    write_lines(folder / "timing.jsonl", timing)
    return folder


def write_lines(file, rows):
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))


def read_lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def by_key(table, label):
    found = next(one for one in table.rows if one.labels == (label,))
    return dict(zip((column.key for column in table.columns), found.cells))


@pytest.fixture
def root(tmp_path):
    write_modelled(tmp_path, "local", [20.0, 30.0, 40.0], sent=0)
    write_modelled(tmp_path, "fedavg", [25.0, 41.0, 39.0])
    return tmp_path


LINE = TimeModel(Profile(up=0.5 * MB, down=1 * MB, latency=0.5))


def test_a_row_of_the_table(root):
    (table,) = time_tables(collect([root]), LINE)
    cells = by_key(table, "FedAvg")
    assert cells["seconds_per_round"].value == pytest.approx(10 + 2 + 1 + 1 + 0.5)
    assert [cells[f"{part}_seconds_per_round"].value for part in ("compute", "transfer", "server")] == [10, 4, 0.5]
    assert cells["waited_for"].word == f"{FIRST} (6 of 6)"
    assert cells["minutes"].value == pytest.approx(6 * 14.5 / 60)
    assert cells["measured_minutes"].value == pytest.approx(6 * sum(clocks()["seconds"].values()) / 60)
    assert cells["mb"].value == pytest.approx(6 * 4)
    assert by_key(table, "Local")["seconds_per_round"].value == pytest.approx(10.5)
    notes = " ".join(table.notes)
    assert "model: compute × 1, up 4 Mbit/s, down 8 Mbit/s, latency 500 ms" in notes
    assert "measured, on the machine that ran it" in notes and "modelled: every client on a machine" in notes
    assert "Δm" not in notes and "scores were taken" not in notes


def test_the_note_tells_of_clients_with_values_of_their_own(root):
    (table,) = time_tables(collect([root]), make_model(slow={SECOND: 9.0}))
    assert table.notes[0].endswith(f"an unlimited line, latency 0 s; {SECOND}: compute × 9, an unlimited line, "
                                   "latency 0 s")  # fmt: skip
    assert by_key(table, "Local")["waited_for"].word == f"{SECOND} (6 of 6)"


def test_the_first_scored_round_that_reaches_a_target(root):
    targets = [
        Target("nyud/semseg", 30.0),
        Target("depth", 39.5),
        Target("pascal/semseg", 50.0),
        Target("delta-m", 0.0),
    ]
    (table,) = time_tables(collect([root]), LINE, targets)
    headings = {column.heading for column in table.columns}
    assert "until nyud/semseg mIoU ≥ 30 %" in headings and "until depth RMSE ≤ 39.5 m" in headings
    local, fedavg = by_key(table, "Local"), by_key(table, "FedAvg")
    assert local["round_to_nyud/semseg_30"].value == 4  # at the target, not beyond it
    assert fedavg["round_to_nyud/semseg_30"].value == 4
    assert fedavg["minutes_to_nyud/semseg_30"].value == pytest.approx(4 * 14.5 / 60)
    assert fedavg["mb_to_nyud/semseg_30"].value == pytest.approx(16)
    assert fedavg["measured_minutes_to_nyud/semseg_30"].value == pytest.approx(4 * 1572.5 / 60)
    assert fedavg["round_to_depth_39.5"].value == 2  # lower is better
    assert fedavg["round_to_pascal/semseg_50"].word == "not reached"
    assert fedavg["minutes_to_pascal/semseg_50"].value is None
    assert local["round_to_delta-m_0"].value == 6
    notes = " ".join(table.notes)
    assert (
        "scores were taken every 2 rounds, so it may have been up to 1 round earlier" in notes
        and "against the last round of local" in notes
    )


def test_scores_of_every_round_leave_no_doubt(tmp_path):
    write_modelled(tmp_path, "fedavg", [20.0, 30.0], every=1)
    (table,) = time_tables(collect([tmp_path]), targets=[Target("depth", 20.0)])
    assert any("; scores were taken after every round;" in note for note in table.notes)


def test_a_target_is_reached_despite_rounding(root):
    (table,) = time_tables(collect([root]), targets=[Target("nyud/semseg", 30 + 1e-10)])
    assert by_key(table, "Local")["round_to_nyud/semseg_30"].value == 4


def test_without_a_local_run_there_is_no_delta(tmp_path):
    write_modelled(tmp_path, "fedavg", [20.0, 30.0])
    (table,) = time_tables(collect([tmp_path]), targets=[Target("delta-m", 0.0)])
    assert by_key(table, "FedAvg")["round_to_delta-m_0"].word == "no local run"


def test_a_score_that_is_missing_reaches_nothing(root):
    file = next((root / "duo" / "fedavg").glob("*/metrics.jsonl"))
    rows = read_lines(file)
    for one in rows:
        for score in one.get("scores", ()):
            if (score["client"], score["task"]) == (SECOND, "semseg"):
                score["value"] = None
    write_lines(file, rows)
    (table,) = time_tables(collect([root]), targets=[Target("nyud/semseg", 1.0)])
    assert by_key(table, "FedAvg")["round_to_nyud/semseg_1"].word == "no nyud/semseg of any round"


def test_seeds_are_averaged_and_those_that_were_late_are_told(tmp_path):
    write_modelled(tmp_path, "fedavg", [20.0, 50.0], seed=0, busy=10.0)
    write_modelled(tmp_path, "fedavg", [50.0, 50.0], seed=1, busy=20.0)
    write_modelled(tmp_path, "fedavg", [20.0, 20.0], seed=2, busy=30.0)
    (table,) = time_tables(collect([tmp_path]), targets=[Target("nyud/semseg", 50.0)])
    cells = by_key(table, "FedAvg")
    assert cells["seconds_per_round"].value == pytest.approx(20.5) and cells["seconds_per_round"].std == 10.0
    assert cells["seconds_per_round"].n == 3 and cells["seeds"].value == 3
    reached = cells["round_to_nyud/semseg_50"]
    assert (reached.value, reached.n) == (3.0, 2) and reached.note == "over 2 of 3 seeds; the others: not reached"
    assert cells["minutes_to_nyud/semseg_50"].value == pytest.approx((4 * 10.5 + 2 * 20.5) / 2 / 60)


def test_runs_that_do_not_tell_have_no_modelled_time_and_a_reason(tmp_path):
    write_rounds(tmp_path, "local")
    whole, broken = (write_modelled(tmp_path, "fedavg", [20.0, 30.0, 40.0], seed=seed) for seed in (0, 1))
    write_lines(broken / "timing.jsonl", read_lines(whole / "timing.jsonl")[:-1])
    (table,) = time_tables(collect([tmp_path]), targets=[Target("nyud/semseg", 30.0)])
    old = by_key(table, "Local")
    assert old["seconds_per_round"].value is None and old["waited_for"].word == ""
    assert "metrics.jsonl does not tell the bytes by client" in old["seconds_per_round"].note
    assert old["measured_minutes"].value == pytest.approx(5) and old["round_to_nyud/semseg_30"].value == 2
    assert old["minutes_to_nyud/semseg_30"].value is None
    some = by_key(table, "FedAvg")["seconds_per_round"]
    assert (some.value, some.n) == (10.5, 1) and "mean of 1 of 2 seeds" in some.note
    assert "round 6 is not in timing.jsonl" in some.note


def test_rounds_that_metrics_lack_are_told(root):
    file = next((root / "duo" / "fedavg").glob("*/metrics.jsonl"))
    write_lines(file, read_lines(file)[:-1])
    (table,) = time_tables(collect([root]))
    assert by_key(table, "FedAvg")["minutes"].note == "round 6 is not in metrics.jsonl"


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["depth", "=3", "depth=", "depth=much", "depth=nan", ""])
def test_a_target_is_a_name_and_a_number(text):
    with pytest.raises(UsageError, match="expected TASK=VALUE or delta-m=PERCENT"):
        parse_target(text)
    assert parse_target(" nyud/semseg = 30 ") == Target("nyud/semseg", 30.0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"targets": [Target("dept", 1.0)]}, "--target: no score 'dept'; did you mean 'depth'"),
        ({"targets": [Target("nyud/sal", 1.0)]}, "no score 'nyud/sal'"),
        ({"targets": [Target("delta_m", 1.0)]}, "did you mean 'delta-m'"),
        ({"targets": [Target("semseg", 30.0)]}, "on which dataset? nyud/semseg=30 or pascal/semseg=30"),
        ({"model": make_model(slow={"nyud-mult": 2.0})}, "no client 'nyud-mult'; did you mean 'nyud-multi'"),
        ({"scenario": "du"}, "no run of scenario 'du'; did you mean 'duo'"),
        ({"split": "personal"}, "no finished run has scores on the 'personal' split; splits: global"),
    ],
)
def test_unknown_names(root, asked, said):
    with pytest.raises(UsageError) as caught:
        time_tables(collect([root]), **asked)
    assert said in str(caught.value)


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["table", "csv", "md", "latex", "json"])
def test_every_format(root, capsys, style):
    asked = ["--up", "4Mbit", "--down", "1MB/s", "--latency", "500ms", "--target", "depth=1", "--target", "delta-m=-50"]
    assert main(["time", str(root), *asked, "--format", style]) == 0
    out = capsys.readouterr().out
    assert "FedAvg" in out and "not reached" in out
    if style == "json":
        (table,) = json.loads(out)["tables"]
        assert table["rows"][1]["cells"]["seconds_per_round"]["value"] == pytest.approx(14.5)
        assert table["rows"][1]["cells"]["round_to_delta-m_-50"]["value"] == 2
    if style == "csv":
        assert "seconds_per_round" in out.splitlines()[0]


def test_the_flags_make_the_model(root, tmp_path, capsys):
    file = tmp_path / "phones.yml"
    file.write_text(FILE)
    asked = ["--clients", str(file), "--compute", "2", "--slow", f"{SECOND}=3", "--bandwidth", f"{FIRST}=8Mbit,16Mbit"]
    assert main(["time", str(root), *asked, "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert table["notes"][0] == (
        "model: compute × 2, up 10 Mbit/s, down 50 Mbit/s, latency 50 ms; "
        f"{FIRST}: compute × 8, up 8 Mbit/s, down 16 Mbit/s, latency 50 ms; "
        f"{SECOND}: compute × 6, up 10 Mbit/s, down 50 Mbit/s, latency 50 ms"
    )
    assert table["rows"][1]["cells"]["seconds_per_round"]["value"] == pytest.approx(80 + 1 + 0.5 + 0.1 + 0.5)
    assert main(["time", str(root), "--bandwidth", f"{FIRST}=8Mbit", "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert f"{FIRST}: compute × 1, up 8 Mbit/s, down 8 Mbit/s" in table["notes"][0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--up", "10mbit"], "--up 10mbit: no unit 'mbit'; did you mean 'kbit' or 'Mbit' or 'Gbit'"),
        (["--down", "0MB"], "--down 0MB: expected more than 0"),
        (["--latency", "5"], "--latency 5: no unit"),
        (["--compute", "0"], "--compute 0"),
        (["--compute", "nan"], "expected a number above 0"),
        (["--slow", "nyud-multi"], "--slow nyud-multi: expected CLIENT=VALUE, such as nyud-multi=4"),
        (["--slow", "nyud-multi=fast"], "--slow nyud-multi fast: expected a number above 0"),
        (["--slow", "nyud-multi=-1"], "expected a number above 0"),
        (["--slow", "nyud-multi=2", "--slow", "nyud-multi=3"], "nyud-multi is given twice"),
        (["--slow", "nyudmulti=2"], "no client 'nyudmulti'; did you mean 'nyud-multi'"),
        (["--bandwidth", "nyud-multi=1Mbit,0kbit"], "--bandwidth nyud-multi: 0kbit: expected more than 0"),
        (["--bandwidth", "nyud-multi=1Mbit,2Mbit,3Mbit"], "expected one rate, or two with a comma"),
        (["--clients", "nowhere.yml"], "nowhere.yml"),
        (["--target", "dept=3"], "no score 'dept'; did you mean 'depth'"),
        (["--target", "depth"], "--target depth: expected TASK=VALUE"),
        (["--split", "unseen"], "no finished run has scores on the 'unseen' split"),
        (["--format", "json", "--standalone"], "--standalone belongs to --format latex"),
    ],
)
def test_wrong_usage_is_one_line(root, capsys, asked, said):
    assert main(["time", str(root), *asked]) == 2
    err = capsys.readouterr().err
    assert said in err and len(err.splitlines()) == 1


def test_a_terminal_and_a_file(root, tmp_path, capsys):
    made = tmp_path / "time.tex"
    assert main(["time", str(root), "--up", "4Mbit", "--format", "latex", "--standalone", "-o", str(made)]) == 0
    assert "FedAvg" in made.read_text() and r"\documentclass" in made.read_text()
    tables = time_tables(collect([root]), LINE)
    assert render(tables, "table") == repr(tables)  # as Python shows it


def test_torch_is_never_loaded(root):
    code = "import sys; from fmtlbench.cli import main; main(['time', sys.argv[1]]); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, timeout=120).returncode == 0
