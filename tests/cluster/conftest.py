"""What the tests on clusters share."""

from __future__ import annotations

import os

# Ray's processes are nice to all others by default: on a busy machine they would get next to nothing.
os.environ.setdefault("RAY_worker_niceness", "0")
