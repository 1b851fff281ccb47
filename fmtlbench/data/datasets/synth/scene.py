"""Build a scene from objects made of solids; each solid is a unit shape that was scaled, turned and moved."""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import NamedTuple

import numpy as np

# Unit shapes in local coordinates. Compiled code contains these numbers: edit rays.py and paint.py if they change.
BOX = 0  # [-1, 1]^3
SPHERE = 1  # radius 1
CONE = 2  # |y| <= 1, radius 1 at the bottom, `extra` at the top; extra = 1 is a cylinder
CAPSULE = 3  # radius 1 around the segment |y| <= extra
PLANE = 4  # y = 0

# Texture patterns, blending colour a into colour b.
PLAIN, MOTTLED, TILES, PLANKS, BRICKS, STRIPES, GRAIN, FACADE, BOOKS = range(9)

Vector = tuple[float, float, float]
Colour = tuple[float, float, float]


class Material(NamedTuple):
    a: Colour
    b: Colour = (0.0, 0.0, 0.0)
    pattern: int = PLAIN
    scale: float = 1.0  # pattern repeats per metre
    glow: float = 0.0  # 1 shows the colour itself, whatever the light


class Light(NamedTuple):
    """The shadow-casting light: a point (w = 1) or a direction towards the light (w = 0)."""

    at: Vector
    w: float
    strength: float
    colour: Colour
    blur: float  # radius of the light: metres for a point, radians for a direction
    ambient: float
    fill: Vector  # direction of a weak light without shadows
    zenith: Colour
    horizon: Colour
    clouds: float


class Camera(NamedTuple):
    position: Vector
    yaw: float  # radians, left positive
    pitch: float  # radians, up positive
    roll: float

    def axes(self) -> np.ndarray:
        """Return the rotation from camera to world coordinates, [3, 3]."""
        turn = _product(_turn_y(self.yaw), _product(_turn_x(self.pitch), _turn_z(self.roll)))
        return np.array(turn)


def _turn_x(a: float):
    c, s = cos(a), sin(a)
    return (1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)


def _turn_y(a: float):
    c, s = cos(a), sin(a)
    return (c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c)


def _turn_z(a: float):
    c, s = cos(a), sin(a)
    return (c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)


def _product(p, q):
    return tuple(tuple(sum(p[i][k] * q[k][j] for k in range(3)) for j in range(3)) for i in range(3))


def _apply(m, v: Vector) -> Vector:
    (a, b, c), (d, e, f), (g, h, i) = m
    x, y, z = v
    return a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z


class Thing:
    """One object: a frame on the ground (front towards +z at yaw 0) and the solids added to it."""

    def __init__(self, scene: Scene, index: int, at: Vector, yaw: float, scale: float) -> None:
        self.scene, self.index, self.at, self.scale = scene, index, at, scale
        self.turn = _turn_y(yaw)

    def _add(self, kind: int, centre, axes, half, extra: float, material: Material, part: int) -> None:
        s, turn, at = self.scale, self.turn, self.at
        x, y, z = _apply(turn, centre)
        self.scene.rows.append(
            (
                at[0] + s * x,
                at[1] + s * y,
                at[2] + s * z,
                *_apply(turn, axes[0]),
                *_apply(turn, axes[1]),
                *_apply(turn, axes[2]),
                s * half[0],
                s * half[1],
                s * half[2],
                extra,
                *material.a,
                *material.b,
                material.scale,
                material.glow,
            )
        )
        self.scene.tags.append((kind, self.index, part, material.pattern))

    def solid(self, kind, centre, half, material, tilt=None, extra=1.0, part=0) -> None:
        """Add a unit shape scaled by `half` and turned by `tilt` = (about x, about y, about z)."""
        if tilt is None:
            axes = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
        else:
            m = _product(_turn_y(tilt[1]), _product(_turn_x(tilt[0]), _turn_z(tilt[2])))
            axes = tuple(zip(*m))  # the images of the local axes are the columns
        self._add(kind, centre, axes, half, extra, material, part)

    def box(self, centre, half, material, tilt=None, part=0) -> None:
        self.solid(BOX, centre, half, material, tilt, part=part)

    def ball(self, centre, half, material, tilt=None, part=0) -> None:
        self.solid(SPHERE, centre, half, material, tilt, part=part)

    def cylinder(self, centre, radius, half_height, material, tilt=None, top=1.0, part=0) -> None:
        self.solid(CONE, centre, (radius, half_height, radius), material, tilt, extra=top, part=part)

    def limb(self, a: Vector, b: Vector, radius, material, part=0, flat: float = 1.0) -> None:
        """Add a capsule from a to b; `flat` < 1 makes it thinner front to back than left to right."""
        v = tuple(q - p for p, q in zip(a, b))
        length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) or 1e-6
        v = tuple(x / length for x in v)
        side = (1.0, 0.0, 0.0) if abs(v[0]) < 0.9 else (0.0, 0.0, 1.0)
        dot = side[0] * v[0] + side[1] * v[1] + side[2] * v[2]
        u = tuple(x - dot * y for x, y in zip(side, v))
        norm = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2])
        u = tuple(x / norm for x in u)
        w = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
        centre = tuple((p + q) / 2 for p, q in zip(a, b))
        self._add(CAPSULE, centre, (u, v, w), (radius, radius, radius * flat), length / (2 * radius), material, part)

    def plane(self, material: Material, tilt=None) -> None:
        self.solid(PLANE, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), material, tilt)


class Scene:
    """Objects in order of creation; of each its class, whether it can be salient, and whether it casts a shadow."""

    def __init__(self) -> None:
        self.rows: list[tuple] = []
        self.tags: list[tuple] = []
        self.labels: list[int] = []
        self.salient: list[bool] = []
        self.casts: list[bool] = []
        self.camera: Camera | None = None
        self.light: Light | None = None

    def thing(self, label: int, at: Vector = (0.0, 0.0, 0.0), yaw=0.0, scale=1.0, salient=False, casts=True) -> Thing:
        """Begin a new object. Finish one before beginning the next, because the solids of an object are contiguous."""
        self.labels.append(label)
        self.salient.append(salient)
        self.casts.append(casts)
        return Thing(self, len(self.labels) - 1, at, yaw, scale)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return solids as numbers [P, 34] (columns: see rays.py) and tags (kind, object, part, pattern) [P, 4]."""
        rows, tags = np.array(self.rows, dtype=np.float64), np.array(self.tags, dtype=np.int64)
        solids = np.zeros((len(rows), 34))
        solids[:, :24] = rows
        solids[:, 16:22] **= 2  # colours are given with gamma 2, but light adds up in linear space
        half, kind, extra = rows[:, 12:15], tags[:, 0], rows[:, 15]
        solids[:, 24:33] = (rows[:, 3:12].reshape(-1, 3, 3) / half[:, :, None]).reshape(-1, 9)
        wide = np.where(kind == CONE, np.maximum(extra, 1.0), 1.0)
        tall = np.where(kind == CAPSULE, 1.0 + extra, 1.0)
        reach = half * np.stack([wide, tall, wide], axis=1)
        solids[:, 33] = np.where(kind == PLANE, 0.0, np.sqrt((reach**2).sum(axis=1)))
        return solids, tags
