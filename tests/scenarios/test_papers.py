"""The built-in scenarios are the papers': clients, tasks, partition and evaluation, written out."""

from __future__ import annotations

import pytest

from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.scenarios import load_scenario, scenario_files

N, P = "nyud", "pascal"
PASCAL = ("semseg", "human_parts", "sal", "normals", "edge")
NYUD = ("semseg", "depth", "normals", "edge")
NYUD_BENCH = ("semseg", "normals", "edge", "depth")


def single(dataset, tasks, each=1):
    return [(dataset, {task}) for task in tasks for _ in range(each)]


def multi(dataset, tasks, count=1):
    return [(dataset, set(tasks))] * count


# name → (clients in order, partition, evaluation)
G, GP = ("global",), ("global", "personal")
EXPECTED = {
    "st_mt_1": (single(P, PASCAL) + multi(N, NYUD), "equal", G),
    "st_mt_2": (single(N, NYUD) + multi(P, PASCAL), "equal", G),
    "st_mt_1_2c": (single(P, PASCAL, 2) + multi(N, NYUD, 2), "equal", G),
    "st_mt_1_4c": (single(P, PASCAL, 4) + multi(N, NYUD, 4), "equal", G),
    "st_nyud": (single(N, NYUD), "equal", G),
    "st_pascal": (single(P, PASCAL), "equal", G),
    "mt_mt": (multi(P, ("semseg", "human_parts", "normals")) + multi(N, ("semseg", "normals")), "equal", G),
    "iid1_sdmt": (multi(N, NYUD, 4), "equal", GP),
    "niid2_sdst": (single(N, NYUD_BENCH), "equal", GP),
    "niid3_sdht": (single(N, NYUD_BENCH) + multi(N, NYUD, 4), "equal", GP),
    "niid4_ubsdmt": (multi(N, NYUD, 4), "linear", GP),
    "niid5_ubsdst": (single(N, NYUD_BENCH), "linear", GP),
    "niid6_ubcdmt": (multi(N, NYUD, 4) + multi(P, ("human_parts", "normals")), "equal", GP),
    "niid7_ubcdst": (single(N, NYUD_BENCH) + single(P, ("human_parts", "normals")), "equal", GP),
    "matfl_pascal5": (single(P, PASCAL, 2), "equal", G),
    "matfl_pascal_nyud9": (single(P, PASCAL, 2) + single(N, NYUD, 2), "equal", G),
    "matfl_updates90": (single(P, PASCAL, 10) + single(N, NYUD, 10), "equal", G),
}


def clients(scenario):
    return [(client.dataset, set(client.tasks)) for client in scenario.parties()]


def test_every_scenario_of_the_papers_is_here():
    assert set(scenario_files()) >= set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_as_in_the_paper(name):
    scenario = load_scenario(name)
    wanted, partition, evaluation = EXPECTED[name]
    assert clients(scenario) == wanted
    assert (scenario.partition.kind, scenario.partition.alpha) == (partition, None)
    assert scenario.evaluation == evaluation
    assert (scenario.exchange, scenario.version) == (("models", 2) if "iid" in name else ("decoders", 1))
    paper = "MaT-FL" if "matfl" in name else "FMTL-Bench" if "iid" in name else "FedHCA²"
    assert scenario.paper.startswith(f"{paper} (")


def test_the_unseen_client_stays_beside_the_papers():
    scenario = load_scenario("st_mt_1_unseen")
    assert clients(scenario) == EXPECTED["st_mt_1"][0] and scenario.evaluation == ("global", "unseen")
    assert [(c.id, c.dataset, c.tasks) for c in scenario.unseen()] == [("newcomer", P, ("semseg",))]


def test_only_the_hybrid_scenario_and_that_of_updates_deal_twice():
    pools = {name: {client.pool for client in load_scenario(name).parties()} for name in EXPECTED}
    assert pools.pop("niid3_sdht") == {"single", "multi"}
    assert pools.pop("matfl_updates90") == {*PASCAL, *NYUD}
    assert set().union(*pools.values()) == {None}


@pytest.mark.parametrize("count", [2, 4, 6, 8])
def test_other_numbers_of_clients_as_in_table_9(count):
    scenario = resolve("local", "iid1_sdmt", overrides={"scenario.clients": count}).scenario
    assert clients(scenario) == multi(N, NYUD, count)
    assert scenario.parameters == {"clients": count}


@pytest.mark.parametrize(("name", "tasks"), [("matfl_pascal5", 5), ("matfl_pascal_nyud9", 9), ("matfl_updates90", 9)])
@pytest.mark.parametrize("each", [1, 2, 3])
def test_clients_per_task(name, tasks, each):
    scenario = resolve("local", name, overrides={"scenario.clients_per_task": each}).scenario
    assert len(scenario.parties()) == tasks * each
    assert all(clients(scenario).count(client) == each for client in clients(scenario))


def test_each_of_the_ninety_has_a_tenth_of_its_whole_dataset(capsys):
    assert main(["show", "scenario", "matfl_updates90", "--set", "data.train_samples={pascal: 400, nyud: 200}"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if line.startswith(("pascal-", "nyud-"))]
    assert len(rows) == 90
    for _, dataset, task, share, images in rows:
        assert share == f"1/10 of pool {task}" and images == {"pascal": "40", "nyud": "20"}[dataset]
