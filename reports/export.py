"""The tidy frame in other programs' formats; missing stays missing (empty, null)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import FmtlbenchError
from ..base.files import write_output
from .formats.csv import quote_formula

if TYPE_CHECKING:
    import pandas as pd


def as_csv(frame: pd.DataFrame, spreadsheet: bool = False) -> str:
    """Return the frame as CSV; for a `spreadsheet`, text that it would calculate is quoted."""
    if spreadsheet:
        texts = frame.select_dtypes(exclude="number").columns
        frame = frame.assign(**{name: frame[name].map(quote_formula) for name in texts})
    return frame.to_csv(index=False, lineterminator="\n")


def as_json(frame: pd.DataFrame) -> str:
    """Return a list of records as JSON; numbers keep every digit, which pandas' own writer cuts to ten."""
    plain = frame.astype(object).where(frame.notna(), None)
    return json.dumps(plain.to_dict("records"), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write the frame as Parquet; FmtlbenchError where pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise FmtlbenchError('Parquet needs pyarrow: pip install "fmtlbench[parquet]"')
    write_output(path, lambda temporary: frame.to_parquet(temporary, index=False, engine="pyarrow"))
