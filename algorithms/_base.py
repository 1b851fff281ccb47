"""The hooks a method may fill in. Every hook has a default, so a method states only what is its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ..exchange import KINDS, Party, Round
from ..registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

ALGORITHMS = Registry("algorithm", "fmtlbench.algorithms")

# For each epoch, the kinds of blocks that train in it: one tuple of them, or several that share the epoch's batches,
# one after the other (with fewer batches than that, all at once).
Kinds = tuple[str, ...]
Schedule = list[Kinds | tuple[Kinds, ...]]


class Local(Protocol):
    """What a local objective may look at, on the client, in every training step.

    The anchor is what the server sent last: the parameters the client started the round from, or, for a method that
    does not `install`, whatever `aggregate` returned for it. A kind that has no anchor yet is not in `anchored`.
    """

    track: str  # which of the method's `tracks` is being trained
    anchored: tuple[str, ...]

    def squared_distance(self, kind: str) -> Tensor:
        """‖θ − anchor‖² over the client's blocks of `kind`; differentiable in the live parameters θ."""

    def squared_norm(self, kind: str) -> Tensor:
        """‖θ‖² over the client's blocks of `kind`; differentiable."""

    def size(self, kind: str) -> int:
        """How many parameters the client's blocks of `kind` have."""


@dataclass(frozen=True)
class Evaluation:
    """Which parameters are scored: a track as it is, or a copy of it after some epochs of fine-tuning."""

    track: str = "main"
    finetune: tuple[Kinds | tuple[Kinds, ...], ...] = ()


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
    def refuses(cls, params: Any, scenario: Any, federation: Any) -> str | None:
        """Why this method has no meaning for a scenario or a federation setting; None where it has."""
        return None

    def shared(self, index: int) -> tuple[str, ...]:
        """Which kinds of blocks travel in round `index`: any of "encoder", "decoder".

        Heads stay home, but for whole models of alike clients, where they are part of the decoder's row.
        """
        return ()

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        """New rows by kind, in the order of the rows that came. A kind left out is not sent back.

        With partial participation only the present clients' rows come.
        """
        return {}

    def local_objective(self, local: Local) -> Tensor | None:
        """A differentiable term added to the weighted task losses."""
        return None

    def local_schedule(self, epochs: int) -> Schedule:
        """For each local epoch, the kinds of blocks that train in it; ValueError tells why that many cannot be.

        An epoch may be several tuples, which share its batches: (("decoder", "head"), ("encoder",)) trains decoders and
        heads on the first half of them and the encoder on the second.
        """
        return [KINDS] * epochs

    def evaluation_model(self) -> Evaluation:
        """What is scored."""
        return Evaluation()

    def newcomer_encoder(self, encoders: Tensor) -> Tensor:
        """The encoder for a client that never took part, [d], from all participants' as they are now, [N, d].

        Asked after the last round, where encoders travel at all; else a newcomer has what every client starts from.
        """
        return encoders[0] if "encoder" in self.common else encoders.mean(0)

    def billed_copies(self) -> int:
        """How often each row that travels is billed; more than once where a published protocol moves more."""
        return 1

    def diagnostics(self) -> dict[str, Any]:
        """Numbers worth keeping per round (hyper weights, groupings); plain JSON values."""
        return {}

    def notes(self) -> list[str]:
        """Things a user should be told after a round, such as a term that has no effect; told once each."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """Everything the next round depends on: a tree of tensors and JSON values."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        if state:
            raise ValueError(f"{self.name} keeps no state, but a checkpoint holds {sorted(state)}")
