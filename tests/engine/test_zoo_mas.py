"""MAS end to end: what travels before and after the split, which model has which task."""

from __future__ import annotations

import copy
import shutil
from functools import partial

import pytest
import torch
from kit import TRIO, rows_of
from zoo import SOMETIMES, federation_of, noted_rounds

import fmtlbench
from fmtlbench.base.errors import RefusedError
from fmtlbench.config.resolve import resolve
from fmtlbench.engine.admit import admit

# As the zoo's three clients, but that the single task is one of the four's.
CHAIN = TRIO.replace("sal", "semseg")
ROUNDS = 4  # of which one is merged


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    file = tmp_path_factory.mktemp("scenario") / "chain.yml"
    file.write_text(CHAIN)
    return str(file)


@pytest.fixture(scope="module")
def run(chain, trio_run):
    return partial(trio_run, "mas", scenario=chain, rounds=ROUNDS)


def groups_of(federation):
    return federation.algorithm.diagnostics()["task_groups"]


def force_groups(federation, groups):
    """Have the clients tell affinities that part the tasks like this."""
    tasks = federation.algorithm.tasks
    together = {(a, r) for group in groups for a in group for r in group}
    measured = {(a, r): (1.0 if (a, r) in together else -1.0, 1) for a in tasks for r in tasks if a != r}
    federation.algorithm._method._note_affinities = lambda rnd: None
    federation.algorithm._method.affinities = measured


def test_bytes_equal_the_definition(run):
    """Merged: models as FedAvg's, and affinities up. Then the groups down once, and an encoder per model both ways."""
    result = run()
    clients = {client["id"]: client for client in result.summary["clients"]}
    rows = rows_of(result)
    groups = rows[-1]["algorithm"]["task_groups"]
    assert sorted(task for group in groups for task in group) == ["depth", "edge", "normals", "semseg"]
    assert rows[0]["algorithm"]["task_groups"] == groups  # parted when the first round ended, for good
    for index, row in enumerate(rows):
        for name, client in clients.items():
            tasks, sizes = client["tasks"], client["parameters"]
            models = 1 if index == 0 else sum(bool(set(group) & set(tasks)) for group in groups)
            expected = {"encoder": 4 * models * sizes["encoder"], "decoder": 4 * sizes["decoder"]}
            measured = {"extra": 4 * len(tasks) ** 2} if index == 0 and len(tasks) > 1 else {}
            told = {"extra": len(tasks)} if index == 1 else {}
            assert row["ledger"][name] == {"up": expected | measured, "down": expected | told}
    assert (
        len(groups) == 2 and rows[1]["ledger"]["four"]["up"]["encoder"] == 8 * clients["four"]["parameters"]["encoder"]
    )
    assert all(record["value"] is not None for record in result.scores) and len(result.scores) == 7


def test_measuring_leaves_no_trace_in_training(chain):
    """Local training of the first round is FedAvg's to the last bit, looks ahead or not."""
    mas, fedavg = federation_of("mas", chain), federation_of("fedavg", chain)
    trained = mas.train(0)
    fedavg.train(0)
    assert set(trained.measured[0]) == {"affinity"} and trained.measured[1] == {}
    for mine, plain in zip(mas.executor.clients, fedavg.executor.clients, strict=True):
        assert torch.equal(mine.main.flat.vector, plain.main.flat.vector)
        assert all(torch.equal(a, b) for a, b in zip(mine.main.buffers().values(), plain.main.buffers().values()))


def test_affinities_are_those_of_the_networks(chain):
    """A copy of the network, its encoder moved by hand for one task at a time."""
    given = {"algo.weight_decay": 0.01, "algo.affinity_every": 1, "train.batch_size": 2}
    federation = federation_of("mas", chain, **given)
    told = federation.train(0).measured[2]["affinity"]
    client = federation.executor.clients[2]
    with client.looking("measure"):
        batches, weights = list(client.batches()), client.loss_weights()
        own, expected = client.main.model, torch.zeros(2, 2)
        for batch in batches:
            before = client.losses(batch)
            for acting in range(2):
                moved = copy.deepcopy(own)
                slopes = torch.autograd.grad(
                    weights[acting] * before[acting], list(own.encoder.parameters()), retain_graph=True
                )
                with torch.no_grad():
                    for parameter, slope in zip(moved.encoder.parameters(), slopes, strict=True):
                        parameter -= client.lr * (slope + 0.01 * parameter)
                    client.main.model = moved
                    after = client.losses(batch)
                    client.main.model = own
                expected[acting] += (1 - after / before.detach()) / client.lr / len(batches)
    assert len(batches) > 1
    torch.testing.assert_close(told, expected, rtol=1e-3, atol=1e-3)
    assert expected.diagonal().min() > 0 and told.abs().min() > 1e-3


GROUPS = [["depth", "semseg"], ["edge", "normals"]]


def test_models_part_ways_after_the_split(chain):
    """The second begins as the merged one; then each trains the tasks of its group, which are scored with it."""
    federation = federation_of("mas", chain)
    force_groups(federation, GROUPS)
    federation.round(0)
    four, one, two = federation.executor.clients
    merged = four.main.flat.vector.clone()
    untouched = one.tracks["second"].flat.vector.clone()
    with four.scored_model(0) as model:
        assert model is four.main.model
    seen = noted_rounds(federation)
    federation.round(1)
    assert groups_of(federation) == GROUPS
    (rnd,) = seen
    encoder = four.main.flat.places("encoder")[0]
    assert [(o.client, o.track) for o in rnd.encoder.owners] == [(0, "main"), (0, "second"), (1, "main"), (2, "main")]
    assert all(torch.equal(row, merged[encoder]) for row in rnd.encoder.before)
    own = [(o.client, o.track, o.task) for o in rnd.decoder.owners]
    assert own[:4] == [(0, "main", t) for t in ("depth", "semseg")] + [(0, "second", t) for t in ("edge", "normals")]
    first, second = (four.tracks[name].flat.rows("encoder")[0] for name in ("main", "second"))
    assert not torch.equal(first, second)
    assert torch.equal(first, one.main.flat.rows("encoder")[0])  # semseg's
    assert torch.equal(second, two.main.flat.rows("encoder")[0])
    edges = [four.tracks["second"].flat.rows("decoder")[1], two.main.flat.rows("decoder")[1]]
    assert four.party.tasks[1] == two.party.tasks[1] == "edge" and torch.equal(*edges)
    assert torch.equal(one.tracks["second"].flat.vector, untouched)
    with four.scored_model(1) as model, torch.no_grad():
        image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        outputs = model.eval()(image)
        for name, tasks in (("main", ("depth", "semseg")), ("second", ("edge", "normals"))):
            for task, output in four.tracks[name].model.eval()(image, tasks).items():
                assert torch.equal(outputs[task], output)


def test_who_was_away_starts_from_the_model_of_its_group(chain):
    """With a third of the clients missing in every round, all members of a group start alike."""
    federation = federation_of("mas", chain, **{**SOMETIMES, "federation.rounds": 8, "algo.merge": 0.25})
    force_groups(federation, GROUPS)
    aggregate, alike, extra = federation.algorithm.aggregate, [], 0

    def note(rnd):
        for kind in ("encoder", "decoder"):
            starts = {}
            for owner, row in zip(getattr(rnd, kind).owners, getattr(rnd, kind).before, strict=True):
                tasks = federation.algorithm.tasks_by_track(federation.executor.clients[owner.client])[owner.track]
                label = owner.task or (tuple(g for g in GROUPS if tasks[0] in g) if rnd.index >= 2 else "all")
                starts.setdefault(str(label), []).append(row.clone())
            for rows in starts.values():
                alike.extend(torch.equal(rows[0], row) for row in rows[1:])
        return aggregate(rnd)

    federation.algorithm.aggregate = note
    for index in range(8):
        row = federation.round(index)
        extra += sum(entry["down"].get("extra", 0) > 100 for entry in row["ledger"].values())
    assert len(alike) > 10 and all(alike) and extra > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"model.architecture": "tc", "data.size": {"pascal": [32, 64], "nyud": [32, 64]}, "rounds": 2},
        {
            "model.architecture": "matfl",
            "model.backbone": "resnet_nano",
            "federation.statistics": "travel",
            **SOMETIMES,
        },
        {"algo.groups": 3, **SOMETIMES},
    ],
    ids=["one decoder", "running statistics", "three groups"],
)
def test_runs_with_other_networks_and_more_groups(run, given):
    result = run(**given)
    first, *_, last = rows_of(result)
    assert all(record["value"] is not None for record in result.scores)
    groups = last["algorithm"]["task_groups"]
    if given.get("model.architecture") == "tc":  # four's decoder is one row for each of its models
        sizes = [row["ledger"]["four"]["up"]["decoder"] for row in (first, last)]
        assert sizes[1] == len(groups) * sizes[0]
    assert sorted(task for group in groups for task in group) == ["depth", "edge", "normals", "semseg"]


def test_refused_where_it_has_no_meaning(scenario, chain):
    with pytest.raises(RefusedError, match=r"mas on trio: no client connects the tasks \{depth, .*\} and \{sal\}"):
        admit(resolve("mas", scenario(TRIO, "trio")))
    admit(resolve("mas", scenario(TRIO, "trio"), overrides={"algo.unknown": "mean"}))
    with pytest.raises(RefusedError, match="mas on chain: decoders are averaged task by task"):
        admit(resolve("mas", chain, overrides={"federation.exchange": "models"}))
    with pytest.raises(RefusedError, match=r"got federation\.rounds=1; --set federation\.rounds=2"):
        admit(resolve("mas", chain, overrides={"federation.rounds": 1}))


def test_uploads_are_compressed_by_row_before_and_after_the_split(run):
    """What error feedback keeps goes by the names of rows, as their number changes."""
    plain, small = rows_of(run()), rows_of(run(**{"federation.compression": "topk"}))
    for before, after in zip(plain, small):
        assert 0.1 < after["bytes_up"] / before["bytes_up"] < 0.2


@pytest.mark.usefixtures("checkpoints_stay")
def test_stored_networks_answer_as_the_models_of_each_task(run, tmp_path):
    """From a checkpoint, and as they were kept, where names tell which model has which tasks."""
    kept = run(keep="last", out=tmp_path / "runs").folder
    saved = shutil.copytree(kept, tmp_path / kept.name)
    shutil.rmtree(saved / "networks")
    loaded = [fmtlbench.load(folder) for folder in (saved, kept)]
    image = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0))
    one, other = (each.predict("four", image) for each in loaded)
    assert sorted(one) == ["depth", "edge", "normals", "semseg"]
    assert all((one[task] == other[task]).all() for task in one)
    with pytest.raises(KeyError):  # they are two networks, which share no encoder
        loaded[1].clients["four"].model.state_dict()["encoder"]
