"""What a finished run keeps of its networks.

`last`: the networks as the last round scored them, in every bit; `none`: nothing but the records.
"""

from __future__ import annotations

from ..base.errors import UsageError, unknown
from ..base.settings_file import config_path, read_user_config

LAST, NONE = KEEP = ("last", "none")
FORMER = ("weights", "exact")  # of earlier versions: in 8 bits, and as `last` is now


def choose_keep(asked: str | None) -> str:
    """Return what is asked for; else what the user's config file says; else last."""
    if asked is not None:
        return check_keep(asked, "--keep")
    return check_keep(read_user_config().keep or LAST, f"{config_path()}: keep")


def check_keep(asked: str, where: str = "") -> str:
    """Return a way to keep networks if it is one; `where` names what gave it."""
    if asked in FORMER:
        prefix = f"{where}: " if where else ""
        raise UsageError(
            f"{prefix}{asked!r} was a way to keep networks in earlier versions; did you mean {LAST!r}, which keeps "
            f"those of the last round exactly? (or {NONE!r})"
        )
    if asked not in KEEP:
        raise unknown("way to keep networks", str(asked), KEEP, where)
    return asked
