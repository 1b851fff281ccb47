"""Who is told what happens in a run: one file each. Importing this room, or any built-in listener, imports no torch."""

from ._base import LISTENERS, Listener, Losses, Start, import_extra
from ._many import Listeners, find_listeners

__all__ = ["LISTENERS", "Listener", "Listeners", "Losses", "Start", "find_listeners", "import_extra"]
