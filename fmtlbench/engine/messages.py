"""What the server says to a client and what it hears back: small values, no locks, files or functions in them.

A client does nothing but answer these, so where it lives (this process, another, another machine) is the executor's
business alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from ..algorithms import RowName
from ..exchange import Owner, TensorSlice
from ..runs.records import Score

ClientRows = dict[str, list[Tensor]]  # by kind, the rows of one client: one per owner
RowNames = dict[str, tuple[RowName, ...]]  # by kind, which rows: (track, task); without a kind, the main track's
MeterSums = dict[tuple[str, str], dict[str, np.ndarray]]  # by (split, task): a meter's sums by name
Value = TypeVar("Value")


@dataclass(frozen=True)
class Train:
    """Do the local epochs of round `index`, then send the rows of `kinds` and of `shown`."""

    index: int
    kinds: tuple[str, ...]
    install: ClientRows | None = None  # take these first: what a client that was away is brought up to date with
    start_of: tuple[str, ...] = ()  # kinds whose rows at the start the server does not know: send these too
    shown: tuple[str, ...] = ()  # kinds that do not travel, whose updates are looked at all the same
    parcel: dict[str, Tensor] = field(default_factory=dict)  # what the method sends beside rows
    work: float = 1.0  # the share of its batches that the client has time for
    names: RowNames = field(default_factory=dict)  # which rows of a kind are meant, where not all of the main track's


@dataclass(frozen=True)
class Evaluate:
    """Score the model as it is after, or in the middle of, round `index`."""

    index: int
    weights: bool = False  # send the network that was scored, too
    sums: bool = False  # send what the scores were computed from, too


@dataclass(frozen=True)
class Install:
    """Take what the server sends: as the new model, or as the anchor of the local objective."""

    rows: ClientRows
    names: RowNames = field(default_factory=dict)


@dataclass(frozen=True)
class Send:
    """Send the rows of `kinds` as they are."""

    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Save:
    """Write everything that a resumed run needs to `file`; without one, send it."""

    file: str | None = None


@dataclass(frozen=True)
class Load:
    """Be as you were when this was saved: the state itself, or the file it was written to with its skeleton."""

    state: dict[str, Any] | None = None
    file: str | None = None
    skeleton: Any = None


@dataclass(frozen=True)
class Count:
    """Count the network's parameters by part, and its operations."""


Message = Train | Evaluate | Install | Send | Save | Load | Count


@dataclass(frozen=True)
class Reply:
    """What a client answers; which fields are filled follows from the message."""

    spent: dict[str, float]  # busy seconds by phase since the last reply
    wall: float = 0.0  # seconds from the message to this reply, waiting and transport included; the executor's word
    report: TrainReport | None = None  # Train
    rows: ClientRows = field(default_factory=dict)  # Train, Send
    start: ClientRows = field(default_factory=dict)  # Train: where `start_of` stood before the local epochs
    measured: dict[str, Tensor] = field(default_factory=dict)  # Train: what the method's `measure` told
    sizes: dict[str, int] = field(default_factory=dict)  # Train: bytes of compressed rows, by kind
    scores: tuple[Score, ...] = ()  # Evaluate
    weights: dict[str, Tensor] | None = None  # Evaluate with `weights`: the scored network's, by name
    sums: MeterSums | None = None  # Evaluate with `sums`: the meters', by (split, task)
    state: dict[str, Any] | None = None  # Save without a file
    saved: dict[str, Any] | None = None  # Save with one: what the checkpoint's index says of it
    counts: dict[str, Any] | None = None  # Count: {"parameters": …, "flops": …}


def required(value: Value | None, message: Message, client: str) -> Value:
    """Return what the reply to a message must hold; TypeError where the client left it out."""
    if value is None:
        raise TypeError(f"client {client}: the reply to {type(message).__name__} lacks what was asked for")
    return value


@dataclass(frozen=True)
class TrainReport:
    """Losses, gradient norm and time of one client's local training."""

    losses: dict[str, float]  # unweighted, mean over the last local epoch of the track that is scored
    grad_norm: float | None
    seconds: float
    steps: int = 0  # of the optimiser, on one track
    task_weights: dict[str, float] | None = None  # of the last step, where a weighting has any to tell


@dataclass(frozen=True)
class Layout:
    """Whose rows of one kind a client has, and where the tensors lie in each."""

    owners: tuple[Owner, ...]
    tensors: tuple[TensorSlice, ...]

    @property
    def width(self) -> int:
        """Return how many numbers a row has."""
        return self.tensors[-1].stop if self.tensors else 0


@dataclass(frozen=True)
class ClientFacts:
    """What does not change about a client: asked once, when it is made."""

    layouts: dict[str, Layout]  # by kind
    parameters: dict[str, int]  # by kind
    steps_per_round: int
