"""Where clients live. Numbers never depend on which executor, or on the order in which it works.

An executor makes clients from a factory, which is plain data, and carries messages to them and replies back.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..cost.processes import ProcessUse
from ..exchange import Party
from ..listeners import Losses
from .client import Client
from .factory import ClientFactory
from .messages import ClientFacts, Message, Reply

OnStep = Callable[[Party, Losses], None]  # told after every training step, where that can be seen
Recall = Callable[[int], Message | None]


class Executor(Protocol):
    """Clients by number, those that take part first."""

    def start(self, factory: ClientFactory, count: int) -> Sequence[ClientFacts]:
        """Make the clients; return what is known of each, in order."""

    def map(self, messages: Mapping[int, Message], on_step: OnStep | None = None) -> Iterator[tuple[int, Reply]]:
        """Carry each client its message; replies come in the order of `messages`, one by one, as they can be had."""

    def settle(self, recall: Recall) -> None:
        """Hear that `recall(index)` is a message which makes a new client what this one is now; None: there is none."""

    def sees(self, folder: Path) -> bool:
        """Say whether clients can read and write files of this folder themselves."""

    def use(self) -> list[ProcessUse]:
        """Tell what the processes of the clients have used so far; this process, the server's, is not among them."""

    def describe(self) -> dict[str, Any]:
        """Say who the executor is and where its clients live, for the manifest."""

    def stop(self) -> None:
        """Let the clients go."""


class SerialExecutor:
    """All clients in this process, one after the other."""

    def __init__(self) -> None:
        self.clients: list[Client] = []

    def start(self, factory: ClientFactory, count: int) -> list[ClientFacts]:
        """Make the clients here."""
        self.clients = []
        for index in range(count):
            self.clients.append(factory.make(index))
            self.clients[-1].rest()  # before the next one needs room
        return [client.facts() for client in self.clients]

    def map(self, messages: Mapping[int, Message], on_step: OnStep | None = None) -> Iterator[tuple[int, Reply]]:
        """Have each client answer when its reply is taken, so that one client's rows lie in memory at a time."""
        for index, message in messages.items():
            began = time.perf_counter()
            reply = self.clients[index].answer(message, on_step)
            yield index, dataclasses.replace(reply, wall=time.perf_counter() - began)

    def settle(self, recall: Recall) -> None:
        """Forget it: nothing is lost here that this process would survive."""

    def sees(self, folder: Path) -> bool:
        """Say yes: they are in this process."""
        return True

    def use(self) -> list[ProcessUse]:
        """Return nothing: there are no other processes."""
        return []

    def describe(self) -> dict[str, Any]:
        """Say that everything was in this process."""
        return {"name": "serial"}

    def stop(self) -> None:
        """Forget the clients."""
        self.clients = []
