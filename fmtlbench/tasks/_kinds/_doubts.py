"""What cannot be right about predictions beside their labels, though every file can be read."""

from __future__ import annotations

import numpy as np

from ...metrics import IGNORE

FAR_OFF = 50.0  # predictions so many times their labels, or less than one so-manieth, are in another unit
LONGEST = 1.5  # of vectors: components of a direction are at most 1


class Doubts:
    """Looks at predictions and targets image by image, then says what makes the score of all of them worthless.

    Arrays are as metrics take them, without batch axis. `reasons` are what no prediction of the kind can be; `notes`
    are what is odd and may be meant.
    """

    def __init__(self) -> None:
        self.images = 0
        self.labelled = False  # some pixel of some label is known
        self._constants: set[bytes] = set()  # first pixels of predictions that are the same everywhere; b"": one is not

    def look(self, prediction: np.ndarray, target: np.ndarray) -> None:
        """Add one image."""
        self.images += 1
        known = target != IGNORE
        self.labelled = self.labelled or bool(known.any())
        pixels = prediction.reshape(prediction.shape[0] if prediction.ndim == 3 else 1, -1)
        if b"" not in self._constants and pixels.size:
            first = pixels[:, :1]
            self._constants.add(first.tobytes() if (pixels == first).all() else b"")
        if prediction.size:
            self._compare(prediction, target, known)

    def _compare(self, prediction: np.ndarray, target: np.ndarray, known: np.ndarray) -> None:
        """Look for what is wrong for this kind of labels."""

    def reasons(self) -> list[str]:
        """Return what cannot be right."""
        if not self.labelled:
            return ["every pixel of every label is unlabelled, so there is nothing to score"]
        return self._reasons()

    def _reasons(self) -> list[str]:
        return []

    def notes(self) -> list[str]:
        """Return what is odd."""
        if len(self._constants) == 1 and b"" not in self._constants:
            return ["all predictions are one and the same constant"]
        return []


class UnitDoubts(Doubts):
    """Of positive quantities: below zero, or so far from the labels that the unit must be another.

    Args:
        quantity: what the labels are in, such as "metres".
        units: names of other units, by how many of them make one of the labels'.
    """

    def __init__(self, quantity: str, units: dict[float, str]) -> None:
        super().__init__()
        self.quantity, self.units = quantity, units
        self._below = 0
        self._ratios: list[float] = []

    def _compare(self, prediction, target, known):
        known &= target > 0
        self._below += int((prediction < 0).any())
        if known.any():
            self._ratios.append(float(np.median(prediction[known].astype(np.float64) / target[known])))

    def _reasons(self):
        found = [f"values below 0 in {self._below} of {self.images} predictions"] if self._below else []
        ratio = float(np.median(self._ratios)) if self._ratios else 1.0
        if ratio >= FAR_OFF or 0 <= ratio <= 1 / FAR_OFF:
            found.append(f"at the median, predictions are {ratio:.3g} times their labels{self._guess_unit(ratio)}")
        return found

    def _guess_unit(self, ratio: float) -> str:
        for factor, unit in self.units.items():
            if factor / 4 < ratio < factor * 4:
                return f", as if they were in {unit}; labels are in {self.quantity}"
            if factor / 4 < (1 / ratio if ratio else 0) < factor * 4:
                return f", as if the labels were in {unit} and the predictions in {self.quantity}"
        return "" if not self.units else f"; labels are in {self.quantity}"


class VectorDoubts(Doubts):
    """Of directions: codes of 8 bits that nobody decoded, or vectors of no length."""

    def __init__(self) -> None:
        super().__init__()
        self._low, self._high, self._empty = np.inf, -np.inf, 0

    def _compare(self, prediction, target, known):
        self._low, self._high = min(self._low, float(prediction.min())), max(self._high, float(prediction.max()))
        self._empty += int(not prediction.any())

    def _reasons(self):
        if self._empty:
            return [f"nothing but vectors of length 0 in {self._empty} of {self.images} predictions"]
        if self._low >= 0 and self._high > LONGEST:
            return [f"values from {self._low:g} to {self._high:g}: codes (n + 1) · 127.5 that were not decoded"]
        return []
