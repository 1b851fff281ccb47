"""What most methods share: everything but the heads, or on request the encoder alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..base.schema import limits
from ._base import Algorithm, Kinds


class Sharing(Algorithm):
    """Encoder and decoders travel; `shared=encoder` gives a method's "-E" variant (FMTL-Bench, Table 7)."""

    encoder_only = "shared=encoder"

    @dataclass(frozen=True)
    class Params:
        shared: Literal["all", "encoder"] = limits("all", doc="what travels: all but the heads, or encoders alone")

    params: Params

    def shared(self, index: int) -> Kinds:
        return ("encoder", "decoder") if self.params.shared == "all" else ("encoder",)
