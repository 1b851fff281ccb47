"""Compute which source pixel each result pixel comes from: a turn, then scaling, cropping, mirroring and padding.

All steps after the turn are index arithmetic on each axis. Composing indices gives the same pixels as transforming
whole images step by step, but computes only the pixels of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...tasks import IGNORE
from ..amounts import USUAL
from .pixel_passes import blend, blend_cubic, locate

LARGEST_SHARE, CROP_TRIES = 0.75, 10


@dataclass(frozen=True)
class Axis:
    """One axis: `source` pixels become `scaled`; of these `count`, from `start` on, are kept and padded to `size`."""

    source: int
    scaled: int
    start: int
    count: int
    size: int
    mirrored: bool = False

    @property
    def offset(self) -> int:
        """Where the kept pixels begin in the padded result: centred, the odd pixel goes to the end."""
        return (self.size - self.count) // 2

    @property
    def spare(self) -> int:
        """How far the crop could move."""
        return self.scaled - self.count

    def positions(self) -> np.ndarray:
        kept = np.arange(self.start, self.start + self.count)
        return kept[::-1] if self.mirrored else kept

    def nearest(self) -> np.ndarray:
        """Return for each kept pixel the number of the source pixel under its upper left corner."""
        return np.minimum((self.positions() * self._step()).astype(np.int64), self.source - 1)

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Return for each kept pixel the source pixel before its centre and the weight of the next source pixel."""
        centre = np.clip(self.centres().astype(np.float32), 0, self.source - 1)
        before = np.floor(centre)
        return before.astype(np.int64), centre - before

    def centres(self) -> np.ndarray:
        """Return the centre of each kept pixel in source coordinates, where source pixel i has its centre at i."""
        return (self.positions() + 0.5) * self._step() - 0.5

    def _step(self) -> float:
        return 1 / (self.scaled / self.source)  # not source / scaled: rounding decides ties


@dataclass(frozen=True)
class Turn:
    """A turn of the whole image about its centre, counter-clockwise, with magnification; the frame stays the same."""

    degrees: float = 0.0
    zoom: float = 1.0

    def vectors(self, normals: np.ndarray) -> None:
        """Turn vectors [H, W, 3] in place with the image: the first coordinate points right, the second down."""
        cos, sin = (np.float32(number) for number in self._circle)
        x, y = normals[..., 0].copy(), normals[..., 1].copy()
        normals[..., 0], normals[..., 1] = cos * x + sin * y, cos * y - sin * x

    def back(self) -> tuple[float, float]:
        """Return (cos, sin) / zoom: a pixel (y, x) from the centre comes from (cos·y + sin·x, cos·x - sin·y)."""
        cos, sin = self._circle
        return cos / self.zoom, sin / self.zoom

    @property
    def _circle(self) -> tuple[float, float]:
        angle = math.radians(self.degrees)
        return math.cos(angle), math.sin(angle)


@dataclass(frozen=True)
class Window:
    """The transform of an image and all of its labels: a turn of the whole image, then both axes.

    With a turn, even one of 0 degrees, the image is interpolated bicubically, else bilinearly.
    """

    rows: Axis
    columns: Axis
    turn: Turn | None = None

    @property
    def inside(self) -> tuple[slice, slice]:
        """The part of the result that is not padding."""
        return tuple(slice(axis.offset, axis.offset + axis.count) for axis in (self.rows, self.columns))

    @property
    def fills(self) -> bool:
        """Whether there is no padding."""
        return (self.rows.count, self.columns.count) == (self.rows.size, self.columns.size)

    @property
    def unscaled(self) -> bool:
        return (self.rows.scaled, self.columns.scaled) == (self.rows.source, self.columns.source)

    @property
    def straight(self) -> bool:
        """Whether there is no turn or magnification, so that the axes describe the whole transform."""
        return self.turn in (None, Turn())

    @cached_property
    def pixels(self) -> np.ndarray:
        """The flat index of the source pixel under each kept pixel, -1 outside the turned image."""
        out = np.empty((self.rows.count, self.columns.count), np.int32)
        locate(self.rows.nearest(), self.columns.nearest(), *self._back(), self.rows.source, self.columns.source, out)
        return out

    def mirrored(self) -> Window:
        return replace(self, columns=replace(self.columns, mirrored=True))

    def label(self, source: np.ndarray, fill: float) -> np.ndarray:
        """Return a label map [H, W] or [H, W, 3] transformed, not interpolated, with `fill` in the padding."""
        kept = self._kept(source, fill)
        if self.fills:
            return kept
        out = np.full((self.rows.size, self.columns.size, *source.shape[2:]), fill, source.dtype)
        out[self.inside] = kept
        return out

    def _kept(self, source: np.ndarray, fill: float) -> np.ndarray:
        """Return the part of a label map that is no padding, in memory of its own."""
        if self.straight and self.unscaled:
            return self._cut(source).copy()
        if self.straight:
            return source.take(self.rows.nearest(), axis=0).take(self.columns.nearest(), axis=1)
        kept = source.reshape(-1, *source.shape[2:]).take(self.pixels, axis=0, mode="clip")
        kept[self.pixels < 0] = fill
        return kept

    def image(self, source: np.ndarray, kind: type) -> np.ndarray:
        """Return the kept part of the image without padding, interpolated; a byte image drops fractions.

        Outside a turned image the nearest border pixel is repeated; `pixels` tells where that is.
        """
        if self.unscaled and self.straight:
            return self._cut(source).astype(kind)
        out = np.empty((self.rows.count, self.columns.count, 3), kind)
        if self.turn is None:
            blend(source, *self.rows.linear(), *self.columns.linear(), out)
        else:
            around = np.pad(source.astype(np.float32), ((2, 3), (2, 3), (0, 0)), "edge")
            blend_cubic(around, self.rows.centres(), self.columns.centres(), *self._back(), out)
        return out

    def _back(self) -> tuple[float, float]:
        return (self.turn or Turn()).back()

    def _cut(self, source: np.ndarray) -> np.ndarray:
        kept = source[tuple(slice(axis.start, axis.start + axis.count) for axis in (self.rows, self.columns))]
        return kept[:, ::-1] if self.columns.mirrored else kept


def draw_scale(rng: np.random.Generator, scales: tuple[float, ...] = USUAL.scales) -> float:
    """Draw a scale: uniformly between two given numbers, or one of any other number of choices."""
    return float(rng.uniform(*scales) if len(scales) == 2 else scales[rng.integers(len(scales))])


def resized(shape: tuple[int, int], size: tuple[int, int]) -> Window:
    """Return the window that stretches the whole image to `size`."""
    return Window(*(Axis(source, target, 0, target, target) for source, target in zip(shape, size)), turn=Turn())


def centred(shape: tuple[int, int], size: tuple[int, int], scale: float = 1.0) -> Window:
    """Return the window on the middle of the scaled image, or on all of it where it fits into `size`."""
    axes = []
    for source, target in zip(shape, size):
        scaled = max(1, int(source * scale))
        count = min(scaled, target)
        axes.append(Axis(source, scaled, (scaled - count) // 2, count, target))
    return Window(*axes)


def draw_crop(window: Window, semseg: np.ndarray | None, rng: np.random.Generator) -> Window:
    """Draw a random crop, again up to ten times while it has a single class or one class covers too much of it."""
    drawn = _move(window, rng)
    if semseg is None or (window.rows.spare, window.columns.spare) == (0, 0):
        return drawn
    for _ in range(CROP_TRIES):
        if _is_varied(drawn, semseg):
            break
        drawn = _move(window, rng)
    return drawn


def _move(window: Window, rng: np.random.Generator) -> Window:
    rows, columns = (
        replace(axis, start=int(rng.integers(0, axis.spare + 1))) for axis in (window.rows, window.columns)
    )
    return replace(window, rows=rows, columns=columns)


def _is_varied(window: Window, semseg: np.ndarray) -> bool:
    counts = np.bincount(window.label(semseg, IGNORE).ravel(), minlength=256)
    counts[IGNORE] = 0
    return np.count_nonzero(counts) > 1 and counts.max() < LARGEST_SHARE * counts.sum()
