"""The hooks a method may fill in. Every hook has a default, so a method states only what is its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ..exchange import PART_KINDS, Party, Round
from ..registry import Registry

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ..config import FederationConfig
    from ..scenarios import Scenario

ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm", "fmtlbench.algorithms")

Kinds = tuple[str, ...]  # kinds of parts: of "encoder", "decoder", "head"
# What trains in an epoch: one tuple of kinds, or several that share the epoch's batches, one after the other (with
# fewer batches than that, all at once).
EpochKinds = Kinds | tuple[Kinds, ...]
Schedule = Sequence[EpochKinds]  # one entry per epoch


class Local(Protocol):
    """What a local objective may look at, on the client, in every training step.

    The anchor is what the server sent last: the parameters the client started the round from, or, for a method that
    does not `install`, whatever `aggregate` returned for it. A kind that has no anchor yet is not in `anchored`.
    """

    track: str  # which of the method's `tracks` is being trained
    party: Party  # who the client is
    device: torch.device  # where its parameters are

    @property
    def anchored(self) -> Kinds:
        """Return the kinds that have an anchor."""

    def squared_distance(self, kind: str) -> Tensor:
        """Return ‖θ − anchor‖² over the client's parts of `kind`; differentiable in the live parameters θ."""

    def squared_norm(self, kind: str) -> Tensor:
        """Return ‖θ‖² over the client's parts of `kind`; differentiable."""

    def size(self, kind: str) -> int:
        """Return how many parameters the client's parts of `kind` have."""


@dataclass(frozen=True)
class Evaluation:
    """Which parameters are scored: a track as it is, or a copy of it after some epochs of fine-tuning."""

    track: str = "main"
    finetune: tuple[EpochKinds, ...] = ()


class Algorithm:
    """A federated method: what travels, what the server does with it, what changes on the client.

    `aggregate` sees flat parameters only (with running statistics behind them if these travel). It may use tensor
    methods freely but must not modify its input.
    """

    name: ClassVar[str]
    title: ClassVar[str]  # as printed in tables
    paper: ClassVar[str]  # authors, venue, arXiv
    # What it is made for, names of scenarios.ROLES: the probes judge it by these (fmtlbench probe).
    roles: ClassVar[tuple[str, ...]] = ("shares",)
    # Models each client trains, one after the other. Only "main" travels; others start from the same weights.
    tracks: ClassVar[tuple[str, ...]] = ("main",)
    # Whether what the server sends replaces the client's parameters, or only serves its local objective as anchor.
    installs: ClassVar[bool] = True
    # The option that lets encoders travel alone, as in "shared=encoder": advice where decoders cannot.
    encoder_only: ClassVar[str | None] = None

    # Kinds of which all clients hold the same parameters after a round: one that was absent gets them before it trains.
    common: ClassVar[tuple[str, ...]] = ()

    @dataclass(frozen=True)
    class Params:
        """Options with their defaults; `--set algo.<field>=value` changes one."""

    def __init__(self, params: Any, parties: Sequence[Party]) -> None:
        self.params = params
        self.parties = tuple(parties)

    @classmethod
    def refuses(cls, params: Any, scenario: Scenario, federation: FederationConfig) -> str | None:
        """Say why this method has no meaning for a scenario or a federation setting; None where it has."""
        return None

    def shared(self, index: int) -> Kinds:
        """Return the kinds of parts that travel in round `index`: any of "encoder", "decoder".

        Heads stay home, but for whole models of alike clients, where they are part of the decoder's row.
        """
        return ()

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        """Return new rows by kind, in the order of the rows that came. A kind left out is not sent back.

        With partial participation only the present clients' rows come.
        """
        return {}

    def local_objective(self, local: Local) -> Tensor | None:
        """Return a differentiable term that is added to the weighted task losses."""
        return None

    def local_schedule(self, epochs: int) -> Schedule:
        """Return the kinds of parts that train in each local epoch; ValueError tells why that many cannot be.

        An epoch may be several tuples, which share its batches: (("decoder", "head"), ("encoder",)) trains decoders and
        heads on the first half of them and the encoder on the second.
        """
        return [PART_KINDS] * epochs

    def evaluation_model(self) -> Evaluation:
        """Say which parameters are scored."""
        return Evaluation()

    def newcomer_encoder(self, encoders: Tensor) -> Tensor:
        """Return the encoder for a client that never took part, [d], from all participants' as they are now, [N, d].

        Asked after the last round, where encoders travel at all; else a newcomer has what every client starts from.
        """
        return encoders[0] if "encoder" in self.common else encoders.mean(0)

    def billed_copies(self) -> int:
        """Return how often each row that travels is billed; more than once where a published protocol moves more."""
        return 1

    def diagnostics(self) -> dict[str, Any]:
        """Return numbers worth keeping per round (hyper weights, groupings); plain JSON values."""
        return {}

    def notes(self) -> list[str]:
        """Return what a user should be told after a round, such as a term without effect; told once each."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next round depends on: a tree of tensors and JSON values."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        if state:
            raise ValueError(f"{self.name} keeps no state, but a checkpoint holds {sorted(state)}")
