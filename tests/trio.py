"""Former names of kit.py, for tests that are being written; goes."""

from kit import SMALLER, TRIO, rows_of

__all__ = ["SMALLER", "TRIO", "rows_of"]
