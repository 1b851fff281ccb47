"""The server and its clients: plain messages, clients made from plain data, one upload per round."""

from __future__ import annotations

import pickle

import pytest
import torch
from kit import QUICK, THREE, make_federation

from fmtlbench.config.resolve import resolve
from fmtlbench.engine.checkpoint import Checkpoint, save_checkpoint
from fmtlbench.engine.executor import SerialExecutor
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation
from fmtlbench.engine.messages import Evaluate, Install, Load, Save, Send, Train


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / "three.yml"
    file.write_text(THREE)
    return str(file)


class Listening(SerialExecutor):
    """Keeps what was said; every message and reply crosses a pickle, as between processes."""

    def __init__(self):
        super().__init__()
        self.said = []

    def start(self, factory, count):
        return pickle.loads(pickle.dumps(super().start(pickle.loads(pickle.dumps(factory)), count)))

    def map(self, messages, on_step=None):
        self.said.append(dict(messages))
        messages = pickle.loads(pickle.dumps(messages))
        for index, reply in super().map(messages, on_step):
            yield index, pickle.loads(pickle.dumps(reply))


def rounds_of(federation, count):
    return [federation.round(index) for index in range(count)]


@pytest.mark.parametrize("algo", ["fedavg", "fedamp", "ditto", "fedhca2", "fedmtl"])
def test_messages_are_all_that_passes(scenario, algo):
    overrides = {**QUICK, "federation.rounds": 2}
    here = make_federation(algo, scenario, **overrides)
    there = Federation(ClientFactory(resolve(algo, scenario, overrides=overrides), "cpu"), Listening())
    assert rounds_of(here, 2) == rounds_of(there, 2) and here.evaluate(1) == there.evaluate(1)
    vectors = [[c.main.flat.vector for c in federation.executor.clients] for federation in (here, there)]
    assert all(torch.equal(a, b) for a, b in zip(*vectors))


def test_a_factory_is_small_and_makes_the_same_client_anywhere(scenario):
    factory = ClientFactory(resolve("fedavg", scenario, overrides=QUICK), "cpu")
    factory.opened()
    packed = pickle.dumps(factory)
    assert len(packed) < 20_000
    one, other = factory.make(1), pickle.loads(packed).make(1)
    assert torch.equal(one.main.flat.vector, other.main.flat.vector) and one.facts() == other.facts()
    assert one.party == other.party and one.data.train.indices.tolist() == other.data.train.indices.tolist()


def asked(federation, count):
    """For every round: which kinds each client was asked for the start of."""
    rounds_of(federation, count)
    told = [messages for messages in federation.executor.said if any(isinstance(m, Train) for m in messages.values())]
    return [{i: message.start_of for i, message in messages.items()} for messages in told]


@pytest.mark.parametrize("algo", ["fedavg", "fedamp", "fedhca2", "local"])
def test_what_the_server_sent_or_got_is_not_asked_for_again(scenario, algo):
    config = resolve(algo, scenario, overrides={**QUICK, "federation.rounds": 3})
    first, *later = asked(Federation(ClientFactory(config, "cpu"), Listening()), 3)
    assert set(first.values()) == {() if algo == "local" else ("encoder", "decoder")}
    assert all(start == () for messages in later for start in messages.values())


def test_what_changed_at_home_is_asked_for(scenario):
    overrides = {**QUICK, "federation.rounds": 4, "algo.unify_every": 2}
    config = resolve("fedsta", scenario, overrides=overrides)
    rounds = asked(Federation(ClientFactory(config, "cpu"), Listening()), 4)
    # Decoders travel in every second round only and train in between.
    assert [set(messages.values()) for messages in rounds] == [{("encoder",)}, {("decoder",)}, {()}, {("decoder",)}]


@pytest.mark.parametrize("shared", [True, False], ids=["clients have the folder", "states pass through the server"])
def test_a_resumed_server_knows_nothing(scenario, tmp_path, monkeypatch, shared):
    monkeypatch.setattr(Listening, "sees", lambda self, folder: shared)
    config = resolve("fedavg", scenario, overrides={**QUICK, "federation.rounds": 3})
    federation = Federation(ClientFactory(config, "cpu"), Listening())
    federation.round(0)
    save_checkpoint(tmp_path, 1, federation.save)
    again = Federation(ClientFactory(config, "cpu"), Listening())
    again.load(Checkpoint(tmp_path, 1))
    assert again.round(1) == federation.round(1)
    trains = [m for messages in again.executor.said for m in messages.values() if isinstance(m, Train)]
    assert {m.start_of for m in trains} == {("encoder", "decoder")}


def test_absent_clients_are_asked_when_they_return(scenario):
    config = resolve("fedper", scenario, overrides={**QUICK, "federation.rounds": 4, "federation.participation": 0.67})
    federation = Federation(ClientFactory(config, "cpu"), Listening())
    present = [tuple(federation.present(index)) for index in range(4)]
    rounds = asked(federation, 4)
    for index, messages in enumerate(rounds):
        known = index > 0 and present[index] == present[index - 1]
        assert set(messages.values()) == {() if known else ("encoder",)}


def test_a_clients_method_is_not_the_servers(scenario):
    federation = make_federation("fedhca2", scenario, **QUICK)
    methods = {id(client.algorithm) for client in federation.executor.clients}
    assert len(methods) == 1 and id(federation.algorithm) not in methods


def test_every_message_has_its_answer(scenario):
    federation = make_federation("fedavg", scenario, **QUICK)
    client = federation.executor.clients[0]
    encoder = client.answer(Send(("encoder",))).rows["encoder"][0]
    saved = client.answer(Save()).state
    client.answer(Install({"encoder": [encoder + 1]}))
    assert torch.equal(client.answer(Send(("encoder",))).rows["encoder"][0], encoder + 1)
    scores = client.answer(Evaluate(0))
    assert scores.scores and scores.spent["evaluate"] > 0
    client.answer(Load(pickle.loads(pickle.dumps(saved))))
    with pytest.raises(TypeError, match="no answer to 'hello'"):
        client.answer("hello")
    federation.__exit__()
    assert federation.executor.clients == []
