"""Make clients from plain data, wherever they shall live."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..algorithms import Algorithm, Evaluation
from ..config.run_config import RunConfig
from ..data.open import open_datasets
from ..data.views import ClientData, client_data, newcomers, parties
from ..exchange import Party
from ..exchange.hooks import build_options
from ..listeners import Listener
from .client import Client
from .method import Hooks, method_of


def make_algorithm(config: RunConfig, members: list[Party]) -> Hooks:
    """Make the configured method with its options."""
    chosen = method_of(config)
    return Hooks(chosen, build_options(chosen, config.algorithm.options), members, config.federation.rounds)


class Newcomer(Algorithm):
    """What a client does that takes part in nothing: fit fresh decoders and heads to the encoder it was given."""

    name = "newcomer"

    @dataclass(frozen=True)
    class Params:
        epochs: int

    params: Params

    def evaluation_model(self) -> Evaluation:
        """Score a copy whose decoders and heads were fitted for `epochs` epochs."""
        return Evaluation(finetune=(("decoder", "head"),) * self.params.epochs)


@dataclass
class ClientFactory:
    """Config, device and where real data lie: what a client is made of.

    Each client gets a method object of its own process: what a method keeps on the server never reaches a client but
    through what travels.
    """

    config: RunConfig
    device: str
    data_root: Path | None = None
    # What is open in this process; it does not travel to another one, which opens its own.
    data: list[ClientData] | None = field(default=None, repr=False, compare=False)
    _methods: tuple[Hooks, Hooks] | None = field(default=None, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "data": None, "_methods": None}

    def make(self, index: int) -> Client:
        """Make the client of this number, those that take part first."""
        data = self.opened()
        members, late = parties(self.config, data), newcomers(self.config, data)
        if self._methods is None:
            alone = Hooks(Newcomer, Newcomer.Params(self.config.evaluation.unseen_epochs), late)
            self._methods = make_algorithm(self.config, members), alone
        method = self._methods[index >= len(members)]
        return Client(self.config, [*members, *late][index], data[index], method, torch.device(self.device))

    def opened(self) -> list[ClientData]:
        """Return the views of all clients on the data, opened in this process at the first call."""
        if self.data is None:
            self.data = client_data(self.config, open_datasets(self.config, self.data_root, Listener()))
        return self.data
