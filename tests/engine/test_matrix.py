"""Every scenario with every method: it runs two rounds of the nano preset, or is refused with its reason.

The suite takes each scenario and each method once; `make matrix` runs all pairs, and all pairs of method and network.
"""

from __future__ import annotations

import json
from itertools import cycle, product

import pytest

import fmtlbench
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import RefusedError
from fmtlbench.config.resolve import resolve
from fmtlbench.engine.admit import admit
from fmtlbench.exchange import Party
from fmtlbench.scenarios import scenario_files

METHODS, SCENARIOS = sorted(ALGORITHMS), sorted(scenario_files())
MIXED = ("niid3_sdht", "niid6_ubcdmt")  # whole models of clients with different numbers of tasks
# The nano preset with a handful of images, smaller ones where the whole matrix is not asked for.
FEW = {"data.train_samples": {"pascal": 40, "nyud": 40}, "data.test_samples": {"pascal": 2, "nyud": 2}}
# Layer norms, since a client of a skewed share may have one image, which is one position of the deepest map.
QUICK = {
    **FEW, "data.size": {"pascal": [32, 32], "nyud": [32, 32]}, "train.batch_size": 4, "model.backbone": "swin_nano",
}  # fmt: skip
FEWER_CLIENTS = {"matfl_updates90": {"scenario.clients_per_task": 1}}  # ninety take a minute
NETWORKS = {
    "fedhca2": {},
    "md": {"model.architecture": "md"},
    "md-resnet": {"model.architecture": "md", "model.backbone": "resnet_nano"},
    "md-decoders": {"model.architecture": "md", "federation.exchange": "decoders"},
    "tc": {"model.architecture": "tc", "model.options.task_steps": "sequential"},
    "tc-joint": {"model.architecture": "tc", "model.backbone": "resnet_nano"},
    "matfl": {"model.architecture": "matfl", "model.backbone": "resnet_nano", "model.saliency": "one_logit"},
}


def run_pair(method, scenario, out, overrides):
    """Two rounds, and what they left; a refusal must say why and leave nothing."""
    overrides = {**overrides, "federation.rounds": 2}
    try:
        config = resolve(method, scenario, overrides=overrides)
        admit(config)
        federation = config.scenario
    except RefusedError as refusal:
        assert len(str(refusal)) > 40 and method in str(refusal)
        return str(refusal)
    result = fmtlbench.run(method, scenario, out=out, device="cpu", **overrides)
    rows = [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [1, 2]
    parties = federation.parties()
    wanted = {(client.id, task) for client in federation.everybody() for task in client.tasks}
    assert {(score["client"], score["task"]) for score in result.scores} == wanted
    assert all(set(row["losses"]) == set(row.get("present", [party.id for party in parties])) for row in rows)
    return None


def sends_decoders(method):
    kind = ALGORITHMS[method]
    parties = [Party(i, f"c{i}", "nyud", ("depth", "edge"), samples=8) for i in range(2)]
    return any("decoder" in kind(kind.Params(), parties).shared(index) for index in range(2))


def check_null(reason, scenario, method, apart=False):
    """Whole models of clients with different numbers of tasks are the papers' NULL; all else runs.

    MAS has no meaning where tasks of nobody meet, or with whole models, and says so.
    """
    if method == "mas":
        assert reason is None or "algo.unknown=mean" in reason or "federation.exchange=decoders" in reason
        return
    null = scenario in MIXED and sends_decoders(method) and not apart
    assert bool(reason) == null and (not null or "NULL" in reason)


ONCE = list(zip(cycle(SCENARIOS), METHODS)) if len(METHODS) > len(SCENARIOS) else list(zip(SCENARIOS, cycle(METHODS)))


@pytest.mark.parametrize(("scenario", "method"), ONCE)
def test_each_scenario_and_each_method_once(tmp_path, scenario, method):
    overrides = {**QUICK, **FEWER_CLIENTS.get(scenario, {})}
    check_null(run_pair(method, scenario, tmp_path, overrides), scenario, method)


def test_the_pairs_above_leave_nobody_out():
    assert {scenario for scenario, _ in ONCE} == set(SCENARIOS) and {method for _, method in ONCE} == set(METHODS)


@pytest.mark.matrix
@pytest.mark.parametrize(("scenario", "method"), list(product(SCENARIOS, METHODS)))
def test_every_scenario_with_every_method(tmp_path, scenario, method):
    overrides = {**FEW, **FEWER_CLIENTS.get(scenario, {})}
    check_null(run_pair(method, scenario, tmp_path, overrides), scenario, method)


@pytest.mark.matrix
@pytest.mark.parametrize("scenario", ["iid1_sdmt", "niid2_sdst", "niid6_ubcdmt"])
@pytest.mark.parametrize(("network", "method"), list(product(NETWORKS, METHODS)))
def test_every_network_with_every_method(tmp_path, scenario, network, method):
    reason = run_pair(method, scenario, tmp_path, {**FEW, **NETWORKS[network]})
    apart = network == "md-decoders" or network.startswith("tc")
    check_null(reason, scenario, method, apart)
