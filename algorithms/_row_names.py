"""Names of rows, for diagnostics and for orders that do not depend on how clients are numbered."""

from __future__ import annotations

from collections.abc import Sequence

from ..exchange import Party, Rows


def row_names(rows: Rows, parties: Sequence[Party]) -> list[str]:
    """Return a name per row: the client's id, with "/" and the task where the row belongs to one."""
    return ["/".join([parties[owner.client].id, *([owner.task] if owner.task else [])]) for owner in rows.owners]
