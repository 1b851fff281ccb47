"""`fmtlbench cost --over`: who is waited for, what a line costs, what old rows do not tell, and wrong files."""

from __future__ import annotations

import json

import pytest
from made_rounds import write_rounds
from made_runs import DUO
from report_kit import change_lines

from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.reports.cost import cost_tables
from fmtlbench.reports.over import RATES, TIMES, Machines, Profile, cost_over, imagine_round, parse, read_machines

FIRST, SECOND = DUO  # pascal-semseg, nyud-multi
MB = 10**6
SLOW = "{up: 8Mbit, down: 16Mbit, latency: 250ms}"


def traffic(up, down):
    """What a ledger has of a client, of two kinds of parts."""
    return {"up": {"encoder": up - 1, "decoder": 1}, "down": {"encoder": down}}


LEDGER = {FIRST: traffic(4 * MB, 2 * MB), SECOND: traffic(8 * MB, 6 * MB)}
CLOCKS = {
    "seconds": {"train": 13.0, "upload": 70.0, "aggregate": 0.5, "evaluate": 1400.0, "checkpoint": 9.0},
    "clients": {FIRST: {"load": 1.0, "step": 9.0, "evaluate": 500.0}, SECOND: {"warmup": 3.0, "evaluate": 900.0}},
}


def one_round(default=None, own=None, ledger=LEDGER, **more):
    machines = Machines(default or Profile(), own or {})
    return imagine_round({"round": 1, "ledger": ledger, **more}, CLOCKS, list(DUO), machines)


@pytest.fixture
def root(tmp_path):
    """A run of `local`, which tells nothing of bytes and clients, and two of FedAvg that do, six rounds each."""
    write_rounds(tmp_path / "runs", "local")
    for seed in (0, 1):
        folder = write_rounds(tmp_path / "runs", "fedavg", seed)
        change_lines(folder / "metrics.jsonl", lambda row: {**row, "ledger": LEDGER})
        change_lines(folder / "timing.jsonl", lambda row: {**row, **CLOCKS})
    return tmp_path / "runs"


def written(folder, text):
    file = folder / "phones.yml"
    file.write_text(text)
    return file


def test_a_round_is_its_slowest_client_on_its_machine_and_line_and_the_servers_step():
    done = one_round()
    assert (done.client, done.compute, done.transfer, done.server) == (FIRST, 10.0, 0, 0.5)  # evaluation is no part
    done = one_round(Profile(up=1 * MB, down=2 * MB, latency=0.25))
    # 10 s + 4 s + 1 s for the first client, 3 s + 8 s + 3 s for the second, and two messages each.
    assert done.client == FIRST and done.seconds == pytest.approx(10 + 4 + 1 + 0.5 + 0.5)
    done = one_round(Profile(up=0.5 * MB, down=2 * MB))
    assert (done.client, done.transfer) == (SECOND, 16 + 3) and done.seconds == pytest.approx(3 + 16 + 3 + 0.5)
    slow = one_round(own={SECOND: Profile(slowdown=4.0)})
    assert slow.client == SECOND and slow.seconds == pytest.approx(12.5)
    assert one_round(own={SECOND: Profile(up=0.1 * MB)}).seconds == pytest.approx(3 + 80 + 0.5)


def test_only_those_who_delivered_something_are_waited_for():
    assert one_round(present=[SECOND], dropped=[FIRST]).seconds == 3.5
    stranger = {**LEDGER, "stranger": traffic(10**15, 10**15)}  # an unseen client is sent an encoder once
    assert one_round(Profile(up=MB, down=MB), ledger=stranger).seconds == 3 + 8 + 6 + 0.5
    assert one_round(Profile(up=1.0, down=1.0, latency=7.0), ledger={}).seconds == 10.5  # who sends nothing waits not


def test_the_table_and_the_clients_that_do_not_tell(root, tmp_path, capsys):
    file = written(tmp_path, f"default: {SLOW}\nclients: {{{FIRST}: {{speed: 0.5}}}}")
    assert main(["cost", str(root), "--over", str(file), "--target", "-95", "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    local, fedavg = table["rows"]
    assert table["convention"] == "over" and "power_w" not in fedavg
    parts = [fedavg[f"over_{part}_per_round"]["value"] for part in ("seconds", "compute", "transfer", "server")]
    assert parts == pytest.approx([20 + 4 + 1 + 0.5 + 0.5, 20, 5.5, 0.5])
    assert fedavg["waited_for"]["word"] == f"{FIRST} (12 of 12)" and fedavg["over_minutes"]["n"] == 2
    assert fedavg["over_minutes"]["value"] == pytest.approx(6 * 26 / 60) and fedavg["mb"]["value"] == pytest.approx(600)
    assert fedavg["minutes"]["value"] == pytest.approx(6 * sum(CLOCKS["seconds"].values()) / 60)
    reached = [fedavg[f"{key}_to_-95"]["value"] for key in ("rounds", "over_minutes", "mb")]
    assert reached == pytest.approx([2, 2 * 26 / 60, 200])  # of the seed that has a local run
    assert local["over_seconds_per_round"]["value"] is None and "over_minutes" in local
    assert local["over_seconds_per_round"]["note"] == "round 1: metrics.jsonl does not tell the bytes by client"
    assert table["notes"][0] == (
        "over phones.yml: compute × 1, up 8 Mbit/s, down 16 Mbit/s, latency 250 ms; "
        f"{FIRST}: compute × 2, up 8 Mbit/s, down 16 Mbit/s, latency 250 ms"
    )


def without(*rounds, **change):
    """What a row becomes: none where its round is not to be told, else with the change."""
    return lambda row: None if row["round"] in rounds else {k: v for k, v in {**row, **change}.items() if v is not None}


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("metrics.jsonl", without(3), "round 3 is not in metrics.jsonl"),
        ("timing.jsonl", without(6), "round 6 is not in timing.jsonl"),
        ("timing.jsonl", without(clients=None), "round 1: timing.jsonl does not tell the seconds by client"),
        ("timing.jsonl", without(clients={FIRST: {}}), f"does not tell how long {SECOND} worked"),
    ],
)
def test_what_is_not_recorded_is_told_and_not_guessed(root, tmp_path, name, change, said):
    change_lines(next(root.glob(f"duo/fedavg/*s1*/{name}")), change)
    runs = collect([root])
    (table,) = cost_tables(runs, convention=cost_over(written(tmp_path, ""), runs))
    cell = table.rows[-1].cells[table.column("over_seconds_per_round")]
    assert (cell.value, cell.n) == (10.5, 1) and said in cell.note


def test_units_and_what_an_entry_leaves_open(tmp_path):
    rates = {"10Mbit": 1.25e6, "10 Mbit/s": 1.25e6, "800kbit": 1e5, "1Gbit": 1.25e8, "2.5MB": 2.5e6, "1e3kB/s": 1e6}
    assert {text: parse(text, RATES, "up") for text in rates} == pytest.approx(rates)
    assert [parse(text, TIMES, "latency") for text in ("50ms", "0.2s", "0ms", "1 s")] == [0.05, 0.2, 0.0, 1.0]
    machines = read_machines(written(tmp_path, f"default: {SLOW}\nclients: {{{FIRST}: {{up: 1GB}}}}"))
    assert machines.of(SECOND) == Profile(1.0, 1e6, 2e6, 0.25) and machines.of(FIRST) == Profile(1.0, 1e9, 2e6, 0.25)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default:\n  up: 0Mbit", "phones.yml:2: default.up 0Mbit: expected more than 0"),
        ("clients:\n  a: {up: 1Mbit,\n  down: 3mbit}", "phones.yml:3: clients.a.down 3mbit: no unit 'mbit'; did you"),
        ("default: {up: '10'}", "default.up 10: no unit; expected one of kbit, Mbit"),
        ("default: {up: -3Mbit}", "expected a number with a unit, such as 10Mbit"),
        ("default: {latency: 50min}", "no unit 'min'"),
        ("default: {latency: -1s}", "expected a number with a unit, such as 50ms"),
        ("clients: {a: {speed: 0}}", "clients.a.speed"),
        ("defaults: {up: 1Mbit}", "unknown key 'defaults'; did you mean 'default'"),
        ("clients: {nyud-mult: {speed: 2}}", "no client 'nyud-mult'; did you mean 'nyud-multi'"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_place(root, tmp_path, capsys, text, said):
    assert main(["cost", str(root), "--over", str(written(tmp_path, text))]) == 2
    err = capsys.readouterr().err
    assert said in err and len(err.splitlines()) == 1
