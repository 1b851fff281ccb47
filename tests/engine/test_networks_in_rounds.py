"""Every architecture through the engine: what travels, what is refused, how its tasks are learned."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
import torch
from kit import TINY, TWINS, make_federation

from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import parse_overrides, resolve
from fmtlbench.data.configured_tasks import task_specs
from fmtlbench.engine.admit import admit
from fmtlbench.engine.client_models import build_client_model
from fmtlbench.engine.federation import Federation
from fmtlbench.engine.losses import balanced_bce
from fmtlbench.engine.optim import learning_rate
from fmtlbench.networks.flat import FlatModel

SMALL = {**TINY, "data.size": {"pascal": [32, 64], "nyud": [32, 64]}}  # instance norm needs two positions
NETWORKS = {
    "fedhca2": {"model.architecture": "fedhca2", "model.backbone": "resnet_nano"},
    "md": {"model.architecture": "md", "model.backbone": "resnet_nano"},
    "md-swin": {"model.architecture": "md", "model.backbone": "swin_nano"},
    "tc": {"model.architecture": "tc", "model.backbone": "resnet_nano", "model.options.task_steps": "sequential"},
    "tc-swin": {"model.architecture": "tc", "model.backbone": "swin_nano"},
    "matfl": {"model.architecture": "matfl", "model.backbone": "resnet_nano", "model.saliency": "one_logit"},
}
MIXED = """\
description: as many tasks each, but other ones
paper: none
version: 1
clients:
  - {dataset: pascal, tasks: [sal, semseg]}
  - {dataset: nyud, tasks: [depth, edge]}
"""


def federation(algo, scenario, **overrides):
    return make_federation(algo, scenario, **{**SMALL, "federation.rounds": 2, **overrides})


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_every_architecture_learns_in_a_federation(tiny_run, network):
    result = tiny_run("fedavg", rounds=2, **{**SMALL, **NETWORKS[network]})
    assert all(math.isfinite(score["value"]) for score in result.scores)
    assert result.summary["bytes_up"] > 0
    assert result.summary["setting_text"]["architecture"] == NETWORKS[network]["model.architecture"]


def test_whole_models_of_clients_with_other_numbers_of_tasks_are_refused(scenario_file):
    def asked(algo, **given):
        admit(resolve(algo, scenario_file, overrides={**whole, **given}))

    whole = {**SMALL, **NETWORKS["md"], "federation.exchange": "models"}
    with pytest.raises(UsageError, match=r"1 and 2 tasks do not fit.*NULL.*algo.shared=encoder"):
        asked("fedavg")
    with pytest.raises(UsageError, match=r"algo.decoder=none"):
        asked("fedhca2")
    for algo, options in (("fedavg", {"algo.shared": "encoder"}), ("fedper", {}), ("local", {}), ("matfl", {})):
        asked(algo, **options)
    asked("fedavg", **NETWORKS["tc"])
    # FedSTA's decoders stay home, or travel in every tenth round, say: nine rounds never get there, ten do.
    asked("fedsta", **{"federation.rounds": 10})
    asked("fedsta", **{"federation.rounds": 9, "algo.unify_every": 10})
    with pytest.raises(UsageError, match=r"NULL.*\(--set algo.unify_every=null\)") as refused:
        asked("fedsta", **{"federation.rounds": 10, "algo.unify_every": 10})
    way_out = parse_overrides(re.findall(r"--set (algo\S+)\)", str(refused.value)))
    asked("fedsta", **{"federation.rounds": 10, **way_out})


def test_alike_clients_exchange_whole_models_heads_included(scenario):
    fed = federation("fedavg", scenario(TWINS), **NETWORKS["md"], **{"federation.exchange": "models"})
    row = fed.round(0)
    vectors = [client.main.flat.vector for client in fed.executor.clients]
    assert torch.equal(*vectors)
    assert row["bytes_up"] == 2 * vectors[0].numel() * 4 == row["bytes_down"]
    one = row["ledger"]["nyud-multi-1"]
    assert sum(one["up"].values()) == vectors[0].numel() * 4 and set(one["up"]) == {"encoder", "decoder"}


def test_clients_with_other_tasks_exchange_whole_decoders_but_keep_their_heads(scenario):
    fed = federation("fedavg", scenario(MIXED), **NETWORKS["md"], **{"federation.exchange": "models"})
    fed.round(0)
    first, second = (client.main.flat for client in fed.executor.clients)
    assert torch.equal(*(flat.rows("decoder")[0] for flat in (first, second)))
    assert len(first.rows("decoder")) == 1 and len(first.rows("head")) == 2


def test_task_conditioned_models_of_any_clients_become_one(scenario_file):
    fed = federation("fedavg", scenario_file, **NETWORKS["tc"])
    fed.round(0)
    assert torch.equal(*(client.main.flat.vector for client in fed.executor.clients))


def test_merged_parts_cover_the_same_vector(scenario):
    config = resolve("local", scenario(TWINS), overrides={**SMALL, **NETWORKS["md"]})
    party = federation("local", scenario(TWINS), **NETWORKS["md"]).parties[0]
    apart = FlatModel(build_client_model(config, party))
    joined = FlatModel(build_client_model(config, party), ("decoder", "head"))
    assert torch.equal(apart.vector, joined.vector)
    assert [segment.kind for segment in joined.segments] == ["encoder", "decoder"]
    tensors = joined.layout("decoder")
    assert tensors[0].start == 0 and all(a.stop == b.start for a, b in pairwise(tensors))
    assert tensors[0].layer.startswith("decoder.depth.") and tensors[-1].layer.startswith("head.edge.")
    assert len({t.name for t in tensors}) == len(tensors)


def gradients_by_step(fed: Federation, monkeypatch) -> list[torch.Tensor]:
    """What each optimiser step of the first client's first batch is given; nothing moves."""
    client, seen = fed.executor.clients[0], []
    monkeypatch.setattr(client.main.optimizer, "step", lambda *a, **k: seen.append(client.main.flat.gradient.clone()))
    client.train(0, ())
    return seen


def test_tasks_one_after_the_other_or_all_at_once(scenario, monkeypatch):
    """The encoder does not know the task, so the joint gradient is the sum of the per-task ones."""
    path, same = scenario(TWINS), {**NETWORKS["tc"], "train.batch_size": 4, "train.local_epochs.nyud": 1}
    steps = {}
    for how in ("joint", "sequential", "public"):
        fed = federation("local", path, **{**same, "model.options.task_steps": how})
        steps[how] = gradients_by_step(fed, monkeypatch)
    batches = len(steps["joint"])
    assert batches and len(steps["sequential"]) == len(steps["public"]) == 2 * batches
    a, b = steps["sequential"][:2]
    assert (a + b - steps["joint"][0]).norm() < 1e-5 * steps["joint"][0].norm()
    # the public code clears once per batch: the second task's step carries the first one's gradient too
    assert (steps["public"][0] - a).norm() < 1e-5 * a.norm()
    assert (steps["public"][1] - (a + b)).norm() < 1e-5 * (a + b).norm()
    assert b.norm() > 0.01 * a.norm() and a.norm() > 0.01 * b.norm()  # neither vanishes in the other


def test_losses_of_tasks_learned_one_by_one_are_reported_each(scenario):
    fed = federation("local", scenario(TWINS), **NETWORKS["tc"])
    losses = fed.round(0)["losses"]["nyud-multi-1"]
    assert set(losses) == {"depth", "edge"} and all(value > 0 for value in losses.values())


def test_how_tc_learns_is_no_option_of_other_networks_and_not_for_every_precision(scenario_file):
    with pytest.raises(UsageError, match=r"--set model.options.task_steps=sequential: .*unknown key 'task_steps'"):
        resolve("local", scenario_file, overrides={"model.options.task_steps": "sequential"})
    with pytest.raises(UsageError, match=r"model.architecture: tc: .*fp16.*bf16"):
        public = {**NETWORKS["tc"], "model.options.task_steps": "public"}
        admit(resolve("local", scenario_file, overrides={**public, "train.amp": "fp16"}))


def test_dilated_maps_need_a_resnet(tiny_run):
    with pytest.raises(UsageError, match=r"model.backbone.*swin_nano"):
        tiny_run("local", **{"model.architecture": "matfl"})


def test_exponential_schedule_falls_once_per_round(scenario_file):
    overrides = {"train.schedule": "exponential", "train.decay": 0.5, "train.warmup_epochs": 0, "train.min_lr": 1e-4}
    train = resolve("local", scenario_file, overrides={**overrides, "train.lr": 8e-4}).train
    rates = [learning_rate(train, epoch, 8, 2) for epoch in range(8)]
    assert rates == pytest.approx([8e-4, 8e-4, 4e-4, 4e-4, 2e-4, 2e-4, 1e-4, 1e-4])


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        # shares of the full rate; the NYUD client has two local epochs a round, the PASCAL one has one
        ({"train.warmup_epochs": 0, "train.warmup_rounds": 2}, {"nyud": (0.25, 0.75), "pascal": (0, 0.5)}),
        ({"train.warmup_epochs": 4}, {"nyud": (0.25, 0.75), "pascal": (0, 0.25)}),
        ({"train.warmup_epochs": {"nyud": 4, "pascal": 2}}, {"nyud": (0.25, 0.75), "pascal": (0, 0.5)}),
    ],
)
def test_every_client_warms_up_by_its_own_dataset(scenario_file, given, rates):
    full = 1e-3  # `rates` are shares of it
    epochs = {"train.local_epochs": {"nyud": 2, "pascal": 1}, "train.lr": full, "train.warmup_lr": 0.0}
    fed = federation("local", scenario_file, **epochs, **given)
    for index in (0, 1):
        fed.round(index)
        for client in fed.executor.clients:  # as the last epoch of the round left it
            (group,) = client.main.optimizer.param_groups
            assert group["lr"] == pytest.approx(full * rates[client.party.dataset][index])


def test_a_fresh_optimiser_every_round(scenario_file):
    for state, steps in (("keep", 2), ("fresh", 1)):
        fed = federation("local", scenario_file, **{"train.optimizer_state": state, "train.amsgrad": True})
        client = fed.executor.clients[0]
        per_round = client.steps_per_round
        fed.round(0)
        fed.round(1)
        entry = next(iter(client.main.optimizer.state.values()))
        assert entry["step"] == steps * per_round and "max_exp_avg_sq" in entry


def test_one_logit_saliency(scenario):
    config = resolve("local", scenario(MIXED), overrides={"model.saliency": "one_logit"})
    spec = task_specs(config, "pascal")["sal"]
    assert spec.outputs({}) == 1
    raw, label = torch.tensor([[[[0.0, 2.0, -1.0, 5.0]]]]), torch.tensor([[[1, 0, 0, 255]]])
    assert spec.decode(raw)[0, 0].tolist() == pytest.approx(torch.sigmoid(raw[0, 0, 0]).tolist())
    s = torch.sigmoid(raw[0, 0, 0, :3])
    expected = -(2 / 3 * s[0].log() + 1 / 3 * ((1 - s[1]).log() + (1 - s[2]).log())) / 3
    torch.testing.assert_close(balanced_bce(raw, label), expected)


def test_another_primary_metric(tiny_run, scenario_file):
    result = tiny_run("local", rounds=1, **{"evaluation.metrics": {"edge": "edge_loss_public"}})
    scores = {score["task"]: score for score in result.scores if score["split"] == "global"}
    assert scores["edge"]["metric"] == "edge_loss_public" and not scores["edge"]["higher_is_better"]
    assert 0 < scores["edge"]["trivial"] < 0.2  # the best constant of a weighted cross-entropy of rare edges
    with pytest.raises(UsageError, match=r"evaluation.metrics.edge.*no metric 'miou' of edge"):
        resolve("local", scenario_file, overrides={"evaluation.metrics": {"edge": "miou"}})
    with pytest.raises(UsageError, match=r"no task 'edges'.*edge"):
        resolve("local", scenario_file, overrides={"evaluation.metrics": {"edges": "odsf"}})


def test_edge_weight_by_dataset(scenario):
    config = resolve("local", scenario(MIXED), overrides={"train.edge_weight": {"nyud": 0.8}})
    assert task_specs(config, "nyud")["edge"].loss_options == {"positive": 0.8}
    assert task_specs(config, "pascal")["edge"].loss_options == {"positive": 0.95}


@pytest.mark.parametrize(
    ("method", "name", "preset"), [("fedavg", "niid2_sdst", "fmtl-bench"), ("matfl", "matfl_pascal_nyud9", "mat-fl")]
)
def test_the_papers_presets_resolve_on_their_scenarios(method, name, preset):
    config = resolve(method, name, preset=preset)
    assert config.data.source == "real" and config.model.pretrained
    if preset == "fmtl-bench":
        assert config.federation.exchange == "models" and config.model.options == {}
        task_conditioned = resolve(method, name, preset=preset, overrides={"model.architecture": "tc"})
        assert task_conditioned.model.options == {"task_steps": "sequential"}


def test_setting_is_the_config_without_method_and_seed(scenario_file):
    base = resolve("local", scenario_file)
    assert base.setting() == resolve("fedhca2", scenario_file, seed=3, overrides={"algo.c": 0.2}).setting()
    assert base.setting() != resolve("local", scenario_file, overrides={"federation.rounds": 3}).setting()
    assert base.setting() == resolve("local", scenario_file, overrides={"data.workers": 4}).setting()
