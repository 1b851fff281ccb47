"""Where clients live. Numbers never depend on which executor, or on the order in which it works.

An executor makes clients from a factory, which is plain data, and carries messages to them and replies back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from .client import Client
from .factory import ClientFactory
from .messages import ClientFacts, Message, Reply

OnStep = Callable[..., None]  # told (party, watch) after every training step, where that can be seen


class Executor(Protocol):
    """Clients by number, those that take part first."""

    def start(self, factory: ClientFactory, count: int) -> Sequence[ClientFacts]:
        """Make the clients; return what is known of each, in order."""

    def map(self, messages: Mapping[int, Message], on_step: OnStep | None = None) -> Iterator[tuple[int, Reply]]:
        """Carry each client its message; replies come in the order of `messages`, one by one, as they can be had."""

    def stop(self) -> None:
        """Let the clients go."""


class SerialExecutor:
    """All clients in this process, one after the other."""

    def __init__(self) -> None:
        self.clients: list[Client] = []

    def start(self, factory: ClientFactory, count: int) -> list[ClientFacts]:
        """Make the clients here."""
        self.clients = [factory.make(index) for index in range(count)]
        return [client.facts() for client in self.clients]

    def map(self, messages: Mapping[int, Message], on_step: OnStep | None = None) -> Iterator[tuple[int, Reply]]:
        """Each client answers when its reply is taken, so that one client's rows lie in memory at a time."""
        for index, message in messages.items():
            yield index, self.clients[index].answer(message, on_step)

    def stop(self) -> None:
        """Forget the clients."""
        self.clients = []
