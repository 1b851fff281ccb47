"""The hooks a method may fill in. Every hook has a default, so a method states only what is its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ..base.registry import Registry
from ..exchange import PART_KINDS, Party, Round, TensorSlice

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ..config.run_config import FederationConfig
    from ..scenarios import Scenario

ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm", "fmtlbench.algorithms")

Kinds = tuple[str, ...]  # kinds of parts: of "encoder", "decoder", "head"
# What trains in an epoch: one tuple of kinds, or several that share the epoch's batches, one after the other (with
# fewer batches than that, all at once).
EpochKinds = Kinds | tuple[Kinds, ...]
Schedule = Sequence[EpochKinds]  # one entry per epoch
Batch = Mapping[str, "Tensor"]  # "image" and the labels by task
RowName = tuple[str, "str | None"]  # track and task of a row


class Local(Protocol):
    """What a method may look at and change on the client, in every training step.

    The anchor is what the server sent last: the parameters the client started the round from, or, for a method that
    does not `install`, whatever `aggregate` returned for it. A kind that has no anchor yet is not in `anchored`.
    """

    track: str  # which of the method's `tracks` is being trained
    party: Party  # who the client is
    device: torch.device  # where its parameters are
    round: int  # index of the round, from 0
    lr: float  # the learning rate of the epoch
    batch: int  # which of the round's batches it is, from 0; in `measure`, how many there were
    repeat: int  # which of the batch's steps it is, from 0 (`steps_per_batch`)
    # What the method keeps on this client from round to round: a tree of tensors and JSON values. It is in the
    # checkpoints and never travels by itself; every client has its own, while the method object is shared by many.
    memory: dict[str, Any]
    received: Mapping[str, Tensor]  # what `parcel` sent this client for this round
    anchor: dict[str, list[Tensor]]  # what the server sent last, by kind: a row per part

    @property
    def anchored(self) -> Kinds:
        """Return the kinds that have an anchor."""

    def squared_distance(self, kind: str, to: Sequence[Tensor] | None = None) -> Tensor:
        """Return ‖θ − anchor‖² over the client's parts of `kind`; differentiable in the live parameters θ.

        `to`: rows in place of the anchor.
        """

    def inner(self, kind: str, vectors: Sequence[Tensor]) -> Tensor:
        """Return ⟨vectors, θ⟩ over the client's parts of `kind`, a vector per part; its gradient is `vectors`."""

    def squared_norm(self, kind: str) -> Tensor:
        """Return ‖θ‖² over the client's parts of `kind`; differentiable."""

    def size(self, kind: str) -> int:
        """Return how many parameters the client's parts of `kind` have."""

    def rows(self, kind: str, track: str | None = None) -> list[Tensor]:
        """Return the live parameters of a track, by default the one in training: a flat view per part of `kind`.

        What is written into them (in place, `row.copy_(…)`) is what the network has from then on.
        """

    def vector(self, track: str | None = None) -> Tensor:
        """Return the live parameters of all parts of a track as one flat view, to be changed in place."""

    def gradient(self) -> Tensor:
        """Return the live gradient that `vector` will be updated by, to be changed in place (`before_update`)."""

    def mean_gradient(self, kind: str) -> list[Tensor]:
        """Return the mean gradient over this round's steps of the main track, a row per part of `kind`.

        Before clipping, with whatever `local_objective` added; for methods with `averages_gradients`.
        """


class Workbench(Local, Protocol):
    """What a method may also do on the client before and after local training: look at its training images.

    The network is asked as in scoring (no drop-path, running statistics untouched), and every look costs time that is
    booked as `adopt` or `measure`.
    """

    def batches(self, count: int | None = None, share: float = 1.0, held_out: bool = False) -> Iterator[Batch]:
        """Yield training batches, not augmented, in an order of their own by seed, client, round and hook.

        Args:
            count: At most so many.
            share: Of the images, chosen at random.
            held_out: Those that the method keeps out of training (`held_out`) instead.
        """

    def losses(self, batch: Batch, track: str | None = None) -> Tensor:
        """Return the losses of the client's tasks on a batch, unweighted, in the order of `party.tasks`. [m].

        Differentiable in the live parameters where gradients are enabled.
        """

    def loss_weights(self) -> Tensor:
        """Return the fixed weights of the client's tasks. [m]."""

    def row_gradients(self, loss: Tensor, kind: str) -> list[Tensor]:
        """Return the gradient of a loss of this client with respect to its parts of `kind`, a row per part."""

    def feature_gradients(self, batch: Batch) -> Tensor:
        """Return each task's ∂L_t/∂F, F the encoder's deepest map, meant over batch and space: [m, channels]."""

    def layout(self, kind: str) -> tuple[TensorSlice, ...]:
        """Return where the tensors lie in a row of `kind`."""


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
    tracks: tuple[str, ...] = ("main",)
    # Of these, the ones that the client's optimiser trains; a method moves the others itself. None: all of them.
    trained_tracks: ClassVar[tuple[str, ...] | None] = None
    # Whether tracks take turns batch by batch, so that each sees where the others stand; else one follows the other.
    side_by_side: ClassVar[bool] = False
    # Whether the client keeps the mean of its gradients over a round's steps, for `Local.mean_gradient`.
    averages_gradients: ClassVar[bool] = False
    # Whether what the server sends replaces the client's parameters, or only serves its local objective as anchor.
    installs: ClassVar[bool] = True
    # The option that lets encoders travel alone, as in "shared=encoder": advice where decoders cannot.
    encoder_only: ClassVar[str | None] = None

    # Kinds of which all clients hold the same parameters after a round: one that was absent gets them before it trains.
    common: tuple[str, ...] = ()
    rounds: int = 0  # of the run; set before the first one

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

    def parcel(self, client: int) -> dict[str, Tensor]:
        """Return what a client is sent beside rows when a round begins that it takes part in; it is billed.

        On the client it is `Local.received`. Called on the server, in the order of the clients.
        """
        return {}

    def rows_sent(self, index: int, party: Party, kind: str) -> Sequence[RowName] | None:
        """Return which of a client's rows of a travelling kind are exchanged in round `index`: (track, task) of each.

        None, as a rule: all of the main track. A method whose clients hold several models that travel names them here;
        `Owner.track` tells them apart in `aggregate`. Encoders, and whole models in one row, have no task (None).
        """
        return None

    # -- on the client: every client of a process shares the method object, so what is a client's own is in its memory

    def held_out(self) -> float:
        """Return the share of each client's training images that is kept out of training, for `adopt` to judge by."""
        return 0.0

    def adopt(self, local: Workbench) -> None:
        """Prepare the client's models for the round, before local training: choose, mix, copy."""

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        """Return what the client tells the server beside its rows, after local training: small or not, it is billed.

        On the server it is `Round.measured`. The place to renew the client's memory, too.
        """
        return {}

    def tasks_by_track(self, local: Local) -> Mapping[str, Sequence[str]] | None:
        """Return which of the client's tasks each track trains and is scored for; tracks left out rest in this round.

        None, as a rule: all trained tracks train all tasks, and `evaluation_model` says which one is scored.
        """
        return None

    def steps_per_batch(self) -> int:
        """Return how many optimiser steps are taken on each batch."""
        return 1

    def before_step(self, local: Local) -> None:
        """Prepare a training step: whatever the parameters are set to is where loss and gradient are taken."""

    def before_update(self, local: Local) -> None:
        """Change gradient or parameters between the backward pass and the optimiser's step."""

    def before_scoring(self, local: Local) -> None:
        """Change the parameters of the scored track for scoring; they are put back afterwards."""

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

    def kept_home(self, kind: str, tensors: Sequence[TensorSlice]) -> Sequence[TensorSlice]:
        """Return the tensors of a travelling row that stay with the client, so that nobody is billed for them.

        `aggregate` must return each client's own values there.
        """
        return ()

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
