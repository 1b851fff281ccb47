"""Uploads in fewer bytes, around any method: what a client sends is its update, thinned out or rounded.

With u = Δ + m (m: what earlier uploads left out, if `error_feedback`), the server sees before + û, and m ← u − û.
Tensor by tensor: `topk` sends the largest entries with their places, `quantize` all entries rounded down to one of
2^bits levels between the tensor's least and largest; `topk` with fewer than 32 bits does both, as FedAtlas's code.

The bill is what such a message takes: values, places (an index each or a bit per entry, whichever is less), and for
rounded values two float32 of their range, in whole bytes per row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from torch import Tensor

from ..config.run_config import FederationConfig
from ..exchange import TensorSlice

FULL = 32  # bits of a value as it is
RANGE = 64  # bits of a tensor's least and largest value


class Compressor:
    """One client's uploads. `residuals` is what a checkpoint keeps of it: by the name of a row, [d]."""

    def __init__(self, config: FederationConfig) -> None:
        self.kind, self.share, self.feedback = config.compression, config.compression_share, config.error_feedback
        usual = {"topk": FULL, "quantize": 8, "none": FULL}[config.compression]
        self.bits = usual if config.compression_bits is None else config.compression_bits
        self.residuals: dict[str, Tensor] = {}

    @property
    def active(self) -> bool:
        """Whether uploads are changed at all."""
        return self.kind != "none"

    def send(
        self,
        names: Sequence[str],
        before: Sequence[Tensor],
        after: Sequence[Tensor],
        tensors: Sequence[TensorSlice],
        home: Collection[TensorSlice] = (),
    ) -> tuple[list[Tensor], int]:
        """Return the rows that the server sees, and the bytes of the message.

        Args:
            names: Of the rows, the same in every round.
            before: Where the client started from, as the server knows.
            after: What it has now.
            tensors: Where they lie in a row.
            home: Of these, the ones that do not travel: as they are, and free.
        """
        seen, size = [], 0
        for name, start, end in zip(names, before, after, strict=True):
            update = end - start + self.residuals.get(name, 0)
            kept, bits = update.clone(), 0
            for t in tensors:
                if t not in home:
                    bits += self._shrink(kept[t.start : t.stop])
            if self.feedback:
                self.residuals[name] = update - kept
            row = start + kept
            for t in home:
                row[t.start : t.stop] = end[t.start : t.stop]
            seen.append(row)
            size += math.ceil(bits / 8)
        return seen, size

    def _shrink(self, values: Tensor) -> int:
        """Replace a tensor's values by what arrives of them; return the bits that were sent."""
        count = values.numel()
        if self.kind == "quantize":
            values.copy_(round_to_levels(values, self.bits))
            return count * self.bits + (RANGE if self.bits < FULL else 0)
        kept = max(1, round(self.share * count))
        places = values.abs().topk(kept).indices
        chosen = round_to_levels(values[places], self.bits)
        values.zero_()
        values[places] = chosen
        index = math.ceil(math.log2(count)) if count > 1 else 0
        return kept * self.bits + min(kept * index, count) + (RANGE if self.bits < FULL else 0)


def round_to_levels(values: Tensor, bits: int) -> Tensor:
    """Round values down to one of 2^bits levels between their least and their largest; 32 bits leave them alone."""
    if bits >= FULL or not values.numel():
        return values
    low, high = values.aminmax()
    step = (high - low) / (2**bits - 1)
    if not step > 0:  # all alike
        return values
    return low + step * ((values - low) / step).floor().clamp(max=2**bits - 1)
