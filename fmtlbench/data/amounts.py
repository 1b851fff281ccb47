"""How much the random transforms of real images do; which of them are done is another matter."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Amounts:
    """For the images of one dataset."""

    scales: tuple[float, ...] = (0.5, 2.0)  # of two anything between them, else one of them
    degrees: float = 0.0  # turned by at most so much, to either side


USUAL = Amounts()  # the FedHCA² and FMTL-Bench code's
