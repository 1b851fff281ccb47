"""Ask the method and the network of a config whether they have a meaning there, before anything is opened."""

from __future__ import annotations

from typing import Any

from ..algorithms import Algorithm
from ..base.errors import RefusedError
from ..config.run_config import RunConfig
from ..exchange import Party
from ..exchange.hooks import ScheduleRefused, build_options, refusal_of
from ..networks.network import network_of
from .method import Hooks, method_of


def admit(config: RunConfig) -> None:
    """Refuse a config that its network or its method cannot do.

    Raises:
        RefusedError: The network or the method says no.
    """
    network, method = network_of(config.model), method_of(config)
    if reason := network.refusal(config):
        raise RefusedError(f"model.architecture: {network.name}: {reason}")
    if reason := why_unfit(config, method, build_options(method, config.algorithm.options)):
        raise RefusedError(f"{method.name} on {config.scenario.name}: {reason}")


def why_unfit(config: RunConfig, method: type[Algorithm], options: Any) -> str | None:
    """Return why a method has no meaning for a config's clients; None if it has."""
    if reason := refusal_of(method, options, config.scenario, config.federation):
        return reason
    specs = config.scenario.parties()
    parties = [Party(s.index, s.id, s.dataset, s.tasks, samples=1) for s in specs]
    instance = Hooks(method, options, parties, config.federation.rounds)
    reasons = (_why_no_schedule, _why_no_whole_models, _why_no_added_gradients)
    return next(filter(None, (reason(config, instance) for reason in reasons)), None)


def _why_no_added_gradients(config: RunConfig, instance: Hooks) -> str | None:
    """Return why a method that changes or averages gradients does not fit steps that add them up; None if it does."""
    uses_gradients = instance.averages_gradients or instance.has("before_update")
    if not network_of(config.model).adds_up_gradients or not uses_gradients:
        return None
    return (
        "it uses the gradient of each step, and here a step has those of the tasks before it too; "
        "--set model.options.task_steps=sequential"
    )


def _why_no_schedule(config: RunConfig, instance: Hooks) -> str | None:
    for dataset in dict.fromkeys(spec.dataset for spec in config.scenario.parties()):
        try:
            instance.local_schedule(config.train.local_epochs[dataset])
        except ScheduleRefused as error:
            return f"local epochs of {dataset}: {error}"
    return None


def _why_no_whole_models(config: RunConfig, instance: Hooks) -> str | None:
    """Return why whole models cannot be exchanged (the papers' tables show NULL then); None if they can.

    Networks with one decoder for all tasks fit any clients.
    """
    decoders = sorted({len(spec.tasks) for spec in config.scenario.parties()})
    if config.federation.exchange == "decoders" or network_of(config.model).one_decoder or len(decoders) == 1:
        return None
    if not any("decoder" in instance.shared(index) for index in range(config.federation.rounds)):
        return None
    advice = f" (--set algo.{instance.encoder_only})" if instance.encoder_only else ""
    return (
        f"whole models of clients with {' and '.join(map(str, decoders))} tasks do not fit together (the papers' "
        f"NULL); exchange encoders only{advice}, or decoders one by one: "
        "--set federation.exchange=decoders"
    )
