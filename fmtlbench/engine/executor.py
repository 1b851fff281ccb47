"""Executors call a method on every client. Numbers never depend on which executor, or on the order it chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .client import Client


class SerialExecutor:
    """All clients in this process, one after the other."""

    def __init__(self, make: Callable[[int], Client], count: int) -> None:
        self.clients = [make(i) for i in range(count)]

    def call(self, method: str, arguments: Sequence[tuple] | None = None) -> list[Any]:
        """`client.method(*arguments[i])` for every client i; results in client order."""
        arguments = arguments if arguments is not None else [()] * len(self.clients)
        return [getattr(client, method)(*a) for client, a in zip(self.clients, arguments, strict=True)]
