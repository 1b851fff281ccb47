"""Who sent how many bytes of what: booked from the very tensors that cross the server boundary."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor


class Ledger:
    """One round's traffic by client, direction and kind.

    `copies`: how often a row counts, for a method whose protocol moves more than what our server needs.
    """

    def __init__(self, copies: int = 1) -> None:
        self.copies = copies
        self.clients: dict[str, dict[str, dict[str, int]]] = {}

    def book(self, client: str, direction: str, kind: str, rows: Iterable[Tensor], copies: int | None = None) -> None:
        """Add the bytes of `rows`; `copies` where they are not the method's own protocol."""
        size = (copies or self.copies) * sum(row.numel() * row.element_size() for row in rows)
        self.book_bytes(client, direction, kind, size)

    def book_bytes(self, client: str, direction: str, kind: str, size: int) -> None:
        """Add bytes that were counted elsewhere."""
        kinds = self.clients.setdefault(client, {"up": {}, "down": {}})[direction]
        kinds[kind] = kinds.get(kind, 0) + size

    def total(self, direction: str) -> int:
        """Return the bytes of all clients in one direction."""
        return sum(sum(entry[direction].values()) for entry in self.clients.values())
