"""Executors call a method on clients. Numbers never depend on which executor, or on the order it chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .client import Client


class SerialExecutor:
    """All clients in this process, one after the other."""

    def __init__(self, make: Callable[[int], Client], count: int) -> None:
        self.clients = [make(i) for i in range(count)]

    def call(self, clients: Iterable[int], method: str, *arguments: Any) -> list[Any]:
        """`client.method(*arguments)` on each of `clients`; results in their order."""
        return [getattr(self.clients[i], method)(*arguments) for i in clients]

    def send(self, method: str, values: dict[int, Any]) -> None:
        """`client.method(value)` with a value of its own for each client."""
        for i, value in values.items():
            getattr(self.clients[i], method)(value)
