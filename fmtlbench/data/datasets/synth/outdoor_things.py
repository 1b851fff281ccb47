"""Build outdoor things. Every function adds solids to one object that stands on y = 0 with its front towards +z."""

from __future__ import annotations

from math import pi

import numpy as np

from .colours import BRIGHT, FUR, LEAVES, PALE, WOOD, darker, pick
from .scene import BRICKS, CONE, FACADE, GRAIN, MOTTLED, PLAIN, STRIPES, Material, Thing

RUBBER = Material((0.09, 0.09, 0.10))
GLASS = ((0.30, 0.38, 0.46), (0.18, 0.22, 0.28), (0.48, 0.58, 0.66))
ROLL = (0.0, 0.0, pi / 2)  # a cylinder lying along x


def _wheels(t: Thing, radius: float, places, half_width: float) -> None:
    hub = Material((0.62, 0.63, 0.65))
    for z in places:
        for side in (-1, 1):
            t.cylinder((side * half_width, radius, z), radius, 0.11, RUBBER, tilt=ROLL)
            t.cylinder((side * (half_width + 0.04), radius, z), 0.55 * radius, 0.085, hub, tilt=ROLL)


def car(t: Thing, rng: np.random.Generator) -> None:
    """Build a car, about 4 m long along z."""
    paint = Material(pick(rng, BRIGHT, odd=0.25))
    trim = Material(darker(paint.a, 0.45))
    glass = Material(pick(rng, GLASS, odd=0.0))
    long, back = rng.uniform(1.9, 2.15), rng.uniform(-0.55, -0.15)
    roof = rng.uniform(1.32, 1.55)
    t.box((0, 0.52, 0), (0.84, 0.24, long - 0.12), paint)
    t.limb((-0.74, 0.56, long - 0.2), (0.74, 0.56, long - 0.2), 0.22, paint)  # rounded nose and tail
    t.limb((-0.74, 0.58, 0.2 - long), (0.74, 0.58, 0.2 - long), 0.23, paint)
    t.box((0, 0.36, 0), (0.86, 0.07, long), trim)
    middle, half = (0.76 + roof) / 2, (roof - 0.76) / 2
    t.box((0, middle, back), (0.72, half, 0.95), glass)
    t.box((0, middle, back + 0.92), (0.70, half * 1.12, 0.04), glass, tilt=(-0.5, 0, 0))
    t.box((0, middle, back - 0.92), (0.70, half * 1.08, 0.04), glass, tilt=(0.4, 0, 0))
    t.box((0, roof, back), (0.74, 0.045, 0.93), paint)
    for z in (-0.9, 0.0, 0.9):
        for side in (-1, 1):
            t.box((side * 0.73, middle, back + z), (0.025, half, 0.05), paint)
    for side in (-1, 1):
        t.ball((side * 0.6, 0.62, long), (0.16, 0.1, 0.07), Material((0.98, 0.96, 0.84), glow=0.6))
        t.ball((side * 0.64, 0.64, -long - 0.01), (0.14, 0.09, 0.06), Material((0.85, 0.10, 0.08), glow=0.5))
    _wheels(t, 0.33, (-0.62 * long, 0.64 * long), 0.78)


def bus(t: Thing, rng: np.random.Generator) -> None:
    """Build a bus, about 8 m long along z, 3 m high."""
    paint = Material(pick(rng, BRIGHT, odd=0.15))
    band = Material(pick(rng, PALE, odd=0.3))
    pane = Material(pick(rng, GLASS, odd=0.0))
    long = rng.uniform(3.6, 4.6)
    t.box((0, 1.72, 0), (1.2, 1.32, long), paint)
    t.box((0, 0.92, 0), (1.215, 0.12, long + 0.015), band)
    count = 6
    for k in range(count):
        z = 1.84 * long * ((k + 0.5) / count - 0.5)
        t.box((0, 2.05, z), (1.22, 0.46, 0.78 * long / count), pane)
    t.box((0, 1.98, long), (1.05, 0.6, 0.03), pane)
    t.box((0, 1.98, -long), (1.0, 0.5, 0.03), pane)
    t.box((0, 2.82, long), (0.8, 0.14, 0.04), Material((0.98, 0.75, 0.2), glow=0.6))
    for side in (-1, 1):
        t.ball((side * 0.9, 0.85, long + 0.01), (0.16, 0.16, 0.06), Material((0.98, 0.96, 0.84), glow=0.6))
    _wheels(t, 0.48, (-0.6 * long, 0.62 * long), 1.12)


def _legs(t: Thing, rng: np.random.Generator, coat, hoof, x, z, top, radius, stride) -> None:
    for k, (side, end) in enumerate(((-1, -1), (1, -1), (-1, 1), (1, 1))):
        swing = stride * (1 if k in (0, 3) else -1) * rng.uniform(0.3, 1.0)
        knee = (side * x, 0.52 * top, end * z + 0.5 * swing)
        foot = (side * x, radius, end * z + 0.7 * swing)
        t.limb((side * x, top, end * z), knee, 1.25 * radius, coat)
        t.limb(knee, foot, 0.9 * radius, coat)
        t.ball(foot, (radius, radius, 1.2 * radius), hoof)


def horse(t: Thing, rng: np.random.Generator) -> None:
    """Build a horse with a long neck and a mane, about 2.3 m long along z, 1.6 m high at the shoulder."""
    colour = pick(rng, FUR, odd=0.0)
    coat = Material(colour, darker(colour, 0.8), MOTTLED, 4.0)
    dark = Material(darker(colour, 0.35))
    t.limb((0, 1.22, -0.55), (0, 1.20, 0.5), 0.31, coat)
    _legs(t, rng, coat, dark, 0.19, 0.56, 1.05, 0.085, 0.35)
    low = rng.uniform(-0.35, 0.12)
    poll = (0, 1.86 + low, 1.08)
    t.limb((0, 1.34, 0.62), poll, 0.155, coat)
    t.limb(poll, (0, 1.66 + low, 1.42), 0.115, coat)
    t.limb((0, 1.52, 0.58), (0, 1.98 + low, 0.98), 0.075, dark)
    for side in (-1, 1):
        t.cylinder((side * 0.07, 2.0 + low, 1.06), 0.04, 0.08, coat, top=0.2)
    t.limb((0, 1.3, -0.84), (0, 0.7, -1.02), 0.07, dark)


def dog(t: Thing, rng: np.random.Generator) -> None:
    """Build a dog with a low head, ears and a raised tail, about 0.9 m long along z."""
    colour = pick(rng, FUR, 0.07, odd=0.0)
    spots = pick(rng, FUR, odd=0.0) if rng.random() < 0.4 else darker(colour, 0.7)
    coat = Material(colour, spots, MOTTLED, 7.0)
    dark = Material(darker(colour, 0.45))
    t.limb((0, 0.44, -0.24), (0, 0.46, 0.22), 0.135, coat)
    _legs(t, rng, coat, coat, 0.085, 0.24, 0.36, 0.048, 0.14)
    t.limb((0, 0.52, 0.26), (0, 0.66, 0.38), 0.09, coat)
    t.ball((0, 0.70, 0.42), (0.115, 0.11, 0.13), coat)
    t.limb((0, 0.66, 0.5), (0, 0.65, 0.58), 0.055, coat)
    t.ball((0, 0.68, 0.635), (0.03, 0.025, 0.02), Material((0.05, 0.05, 0.05)))
    for side in (-1, 1):
        if coat.a[0] > 0.4:
            t.limb((side * 0.1, 0.77, 0.4), (side * 0.14, 0.64, 0.42), 0.042, dark)
        else:
            t.cylinder((side * 0.07, 0.82, 0.4), 0.045, 0.065, dark, top=0.15)
    t.limb((0, 0.5, -0.36), (rng.uniform(-0.1, 0.1), 0.74, -0.5), 0.035, coat)


def pottedplant(t: Thing, rng: np.random.Generator) -> None:
    """Build a pot with foliage, about 1 m high before scaling."""
    clay = pick(rng, ((0.72, 0.38, 0.24), (0.80, 0.78, 0.74), (0.35, 0.42, 0.55)), odd=0.15)
    t.cylinder((0, 0.19, 0), 0.17, 0.19, Material(clay, darker(clay), MOTTLED, 8.0), top=1.35)
    t.cylinder((0, 0.37, 0), 0.25, 0.035, Material(darker(clay, 0.9)))
    colour = pick(rng, LEAVES, odd=0.06)
    leaf = Material(colour, darker(colour, 0.55), MOTTLED, 14.0)
    if rng.random() < 0.5:  # a bush
        for k in range(5):
            a = 2 * pi * k / 5
            t.ball((0.16 * np.cos(a), rng.uniform(0.56, 0.78), 0.16 * np.sin(a)), (0.17, 0.19, 0.17), leaf)
        t.ball((0, 0.86, 0), (0.17, 0.16, 0.17), leaf)
    else:  # blades
        for k in range(8):
            a = 2 * pi * (k + rng.uniform(0, 0.6)) / 8
            reach, tip = rng.uniform(0.18, 0.45), rng.uniform(0.75, 1.1)
            t.limb((0, 0.4, 0), (reach * np.cos(a), tip, reach * np.sin(a)), 0.055, leaf, flat=0.5)
    if rng.random() < 0.5:
        bloom = Material(pick(rng, BRIGHT, odd=0.3))
        for _ in range(5):
            x, z = rng.uniform(-0.25, 0.25, 2).tolist()
            t.ball((x, rng.uniform(0.75, 1.0), z), (0.06, 0.06, 0.06), bloom)


def tree(t: Thing, rng: np.random.Generator) -> None:
    bark = Material(pick(rng, WOOD[::2], odd=0.0), (0.2, 0.13, 0.08), GRAIN, 3.0)
    colour = pick(rng, (*LEAVES, (0.70, 0.45, 0.15)), 0.06, odd=0.0)
    leaf = Material(colour, darker(colour, 0.55), MOTTLED, 3.0)
    height = rng.uniform(3.2, 6.0)
    t.cylinder((0, 0.25 * height, 0), 0.05 * height, 0.26 * height, bark, top=0.7)
    if rng.random() < 0.35:  # conifer
        for k in range(3):
            t.cylinder((0, height * (0.42 + 0.2 * k), 0), height * (0.28 - 0.06 * k), 0.19 * height, leaf, top=0.05)
        return
    t.ball((0, 0.72 * height, 0), (0.27 * height, 0.26 * height, 0.27 * height), leaf)
    for _ in range(4):
        x, z = rng.uniform(-0.22, 0.22, 2).tolist()
        r = rng.uniform(0.15, 0.22) * height
        t.ball((x * height, rng.uniform(0.58, 0.8) * height, z * height), (r, 0.85 * r, r), leaf)


def bush(t: Thing, rng: np.random.Generator) -> None:
    colour = pick(rng, LEAVES, 0.06, odd=0.0)
    leaf = Material(colour, darker(colour, 0.6), MOTTLED, 5.0)
    for _ in range(3):
        x = rng.uniform(-0.7, 0.7)
        t.ball((x, 0.35, rng.uniform(-0.2, 0.2)), (rng.uniform(0.5, 0.8), rng.uniform(0.5, 0.9), 0.6), leaf)


def house(t: Thing, rng: np.random.Generator) -> None:
    wall = pick(rng, (*PALE, (0.66, 0.38, 0.30), (0.75, 0.68, 0.50)), odd=0.05)
    w, h, d = rng.uniform(3.0, 5.5), rng.uniform(1.5, 3.2), rng.uniform(2.2, 3.0)
    facade = Material(wall, (0.22, 0.27, 0.34), FACADE, rng.uniform(0.45, 0.6))
    t.box((0, h, 0), (w, h, d), facade)
    if rng.random() < 0.75:  # a square bar on its edge shows only its upper half
        tiles = pick(rng, ((0.60, 0.28, 0.20), (0.35, 0.30, 0.30), (0.45, 0.40, 0.38)), odd=0.05)
        half = (d + 0.3) / 2**0.5
        t.box(
            (0, 2 * h - 0.1, 0),
            (w + 0.25, half, half),
            Material(tiles, darker(tiles), BRICKS, 2.0),
            tilt=(pi / 4, 0, 0),
        )
    t.box((rng.uniform(-0.5, 0.5) * w, 1.0, d), (0.55, 1.0, 0.05), Material(pick(rng, WOOD, odd=0.3)))


def garden_chair(t: Thing, rng: np.random.Generator) -> None:
    """Build a slatted chair with arm rests; the middle of its seat is above the origin."""
    colour = pick(rng, (*BRIGHT[:5], *WOOD), odd=0.2)
    wood = Material(colour, darker(colour, 0.75), GRAIN, 4.0)
    for z in (-0.18, -0.03, 0.12, 0.25):
        t.box((0, 0.44, z), (0.28, 0.025, 0.065), wood)
    for y in (0.60, 0.76, 0.92):
        t.box((0, y, -0.28), (0.28, 0.065, 0.025), wood)
    for side in (-1, 1):
        t.box((side * 0.26, 0.5, -0.26), (0.035, 0.5, 0.035), wood)
        t.box((side * 0.26, 0.33, 0.28), (0.035, 0.33, 0.035), wood)
        t.box((side * 0.27, 0.66, 0.02), (0.045, 0.025, 0.32), wood)


def fence(t: Thing, rng: np.random.Generator, half: float) -> None:
    colour = pick(rng, (*WOOD, (0.9, 0.9, 0.88)), odd=0.05)
    t.box((0, 0.55, 0), (half, 0.55, 0.04), Material(colour, darker(colour, 0.6), STRIPES, 1.5))


def hill(t: Thing, rng: np.random.Generator) -> None:
    colour = pick(rng, ((0.42, 0.52, 0.36), (0.50, 0.52, 0.42), (0.46, 0.50, 0.56)), odd=0.0)
    half = (rng.uniform(18, 35), rng.uniform(4, 9), 10.0)
    t.ball((0, -1.0, 0), half, Material(colour, darker(colour, 0.8), MOTTLED, 0.3))


def post(t: Thing, rng: np.random.Generator) -> None:
    """Build a street lamp."""
    metal = Material(pick(rng, ((0.3, 0.32, 0.33), (0.55, 0.55, 0.52)), odd=0.0), pattern=PLAIN)
    t.solid(CONE, (0, 1.8, 0), (0.07, 1.8, 0.07), metal, extra=0.7)
    t.ball((0, 3.65, 0), (0.2, 0.2, 0.2), Material((0.96, 0.94, 0.86), glow=0.4))
