"""Records as a table on a terminal, tab-separated elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def print_records(records: list[dict[str, Any]], title: str = "", columns: Sequence[str] = ()) -> None:
    """Print records; `columns` are the header that a program finds where there are none."""
    if not sys.stdout.isatty():
        if title:
            print(f"# {title}")
        if header := records[0] if records else columns:
            print("\t".join(header))
        for record in records:
            print("\t".join(str(value) for value in record.values()))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_edge=False)
    for name in records[0] if records else ():
        table.add_column(escape(name), no_wrap=name == "name", style="bold" if name == "name" else None)
    for record in records:
        table.add_row(*(escape(str(value)) for value in record.values()))
    Console().print(table)
    print()
