"""What weightings share whose coefficients follow from the inner products of the tasks' gradients.

The gradients are visited twice, whatever the weighting: once for the Gram matrix M = G Gᵀ in double precision, once for
the combination Σ α_t g_t. Only the encoder's gradient is combined: decoders and heads get that of their own task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..exchange.algebra import gram, has_direction
from ._base import Weighting

if TYPE_CHECKING:
    from torch import Tensor


class FromGram(Weighting):
    """A weighting by `coefficients` of the gradients.

    They are all 1, and `coefficients` is not asked, where an inner product or a loss is not finite (the loss scaler of
    fp16 is about to skip the step) and where no gradient has a direction.
    """

    needs_gradients = True

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        """Return α from the finite Gram matrix [m, m], in which some row has a direction, and the losses [m]. [m]."""
        raise NotImplementedError

    def combine(self, gradients: Tensor, losses: Tensor) -> Tensor:
        products, values = gram(gradients), to_array(losses)
        usable = np.isfinite(products).all() and np.isfinite(values).all() and has_direction(products).any()
        self.last = self.coefficients(products, values) if usable else np.ones(len(values))
        return gradients.new_tensor(self.last) @ gradients


def to_array(losses: Tensor) -> np.ndarray:
    """Return the losses in main memory, as float64."""
    return losses.detach().cpu().double().numpy()


def lengths(gram: np.ndarray) -> np.ndarray:
    """Return the lengths of the gradients. [m]."""
    return np.sqrt(np.diag(gram).clip(0))
