"""Build furniture. Every function adds solids to one object whose back touches z = 0 of its own frame.

A builder takes (thing, rng, width, depth, height) and fills |x| <= width/2, 0 <= z <= depth, 0 <= y <= height.
"""

from __future__ import annotations

import numpy as np

from .colours import BRIGHT, FABRIC, LEAVES, PALE, WOOD, darker, pick, vary, weighted
from .scene import BOOKS, CONE, GRAIN, MOTTLED, PLAIN, STRIPES, TILES, Material, Thing

METAL = ((0.50, 0.50, 0.52), (0.22, 0.22, 0.23), (0.78, 0.76, 0.70))


def wooden(rng: np.random.Generator, odd: float = 0.1) -> Material:
    colour = pick(rng, WOOD, odd=odd)
    return Material(colour, darker(colour, 0.7), GRAIN, rng.uniform(2.0, 4.0))


def cloth(rng: np.random.Generator, palette=FABRIC) -> Material:
    colour = pick(rng, palette, odd=0.2)
    pattern = (PLAIN, MOTTLED, STRIPES)[weighted(rng, (0.4, 0.4, 0.2))]
    return Material(colour, darker(colour, 0.75), pattern, 7.0)


def cabinet(t: Thing, rng: np.random.Generator, w: float, d: float, h: float) -> None:
    body = wooden(rng) if rng.random() < 0.6 else Material(pick(rng, PALE))
    front = Material(vary(rng, darker(body.a, 0.88), 0.02), body.b, body.pattern, body.scale)
    knob = Material(pick(rng, METAL))
    t.box((0, h / 2, d / 2), (w / 2, h / 2, d / 2 - 0.02), body)
    rows, columns = (1 if h > 1.4 else int(rng.integers(2, 4))), (2 if w > 0.7 else 1)
    for i in range(rows):
        for j in range(columns):
            x, y = w * ((j + 0.5) / columns - 0.5), h * (0.06 + 0.9 * (i + 0.5) / rows)
            t.box((x, y, d - 0.015), (0.45 * w / columns, 0.42 * h / rows, 0.02), front)
            grip = x + (0.36 * w / columns) * (1 if j == 0 and columns == 2 else -1 if columns == 2 else 0)
            t.ball((grip, y, d + 0.02), (0.03, 0.03, 0.03), knob)


def bed(t: Thing, rng: np.random.Generator, w: float, d: float, h: float) -> None:
    wood = wooden(rng)
    sheet, blanket = Material(pick(rng, PALE, odd=0.05)), cloth(rng)
    t.box((0, 0.15, d / 2), (w / 2, 0.11, d / 2), wood)
    t.box((0, h / 2, 0.04), (w / 2, h / 2, 0.04), wood)
    t.box((0, 0.35, d / 2), (w / 2 - 0.03, 0.11, d / 2 - 0.04), sheet)
    t.box((0, 0.36, 0.64 * d), (w / 2 + 0.01, 0.13, 0.355 * d), blanket)
    count = 2 if w > 1.2 else 1
    for k in range(count):
        x = w * ((k + 0.5) / count - 0.5)
        t.ball((x, 0.52, 0.32), (0.38 * w / count, 0.11, 0.22), sheet, tilt=(-0.3, 0, 0))


def sofa(t: Thing, rng: np.random.Generator, w: float, d: float, h: float) -> None:
    fabric = cloth(rng)
    seat = Material(vary(rng, fabric.a, 0.04), fabric.b, fabric.pattern, fabric.scale)
    t.box((0, 0.21, d / 2), (w / 2, 0.15, d / 2), fabric)
    t.box((0, 0.5 * (h + 0.2), 0.12), (w / 2, 0.5 * (h - 0.2), 0.12), fabric)
    count = 3 if w > 1.8 else 2
    for k in range(count):
        x = (w - 0.36) * ((k + 0.5) / count - 0.5)
        t.box((x, 0.42, 0.24 + (d - 0.24) / 2), (0.48 * (w - 0.36) / count, 0.08, (d - 0.24) / 2 + 0.02), seat)
    for side in (-1, 1):
        x = side * (w / 2 - 0.09)
        t.box((x, 0.33, d / 2), (0.09, 0.27, d / 2), fabric)
        t.limb((x, 0.6, 0.08), (x, 0.6, d - 0.06), 0.1, fabric)
    if rng.random() < 0.7:
        cushion = Material(pick(rng, BRIGHT, odd=0.3))
        t.box(
            (rng.uniform(-0.3, 0.3) * w, 0.66, 0.33),
            (0.2, 0.18, 0.06),
            cushion,
            tilt=(-0.25, 0, rng.uniform(-0.3, 0.3)),
        )


def table(t: Thing, rng: np.random.Generator, w: float, d: float, h: float) -> None:
    wood = wooden(rng)
    if rng.random() < 0.25:  # round, on one leg
        t.solid(CONE, (0, h - 0.025, d / 2), (w / 2, 0.025, d / 2), wood)
        t.cylinder((0, h / 2, d / 2), 0.06, h / 2 - 0.03, wood)
        t.cylinder((0, 0.02, d / 2), 0.25, 0.02, wood)
        return
    t.box((0, h - 0.03, d / 2), (w / 2, 0.03, d / 2), wood)
    legs = wood if rng.random() < 0.7 else Material(pick(rng, METAL))
    for x in (-w / 2 + 0.07, w / 2 - 0.07):
        for z in (0.07, d - 0.07):
            t.box((x, h / 2 - 0.03, z), (0.035, h / 2 - 0.03, 0.035), legs)


def chair(t: Thing, rng: np.random.Generator, w: float, d: float, h: float) -> None:
    frame = wooden(rng, odd=0.3) if rng.random() < 0.7 else Material(pick(rng, BRIGHT))
    seat = frame if rng.random() < 0.5 else cloth(rng)
    t.box((0, 0.45, d / 2), (w / 2, 0.035, d / 2), seat)
    for x in (-w / 2 + 0.03, w / 2 - 0.03):
        t.box((x, 0.21, d - 0.03), (0.028, 0.21, 0.028), frame)
        t.box((x, h / 2, 0.03), (0.028, h / 2, 0.028), frame)
    if rng.random() < 0.5:
        t.box((0, h - 0.2, 0.03), (w / 2, 0.2, 0.022), seat)
    else:
        for y in (h - 0.06, h - 0.2, h - 0.34):
            t.box((0, y, 0.03), (w / 2, 0.04, 0.02), frame)


def bookshelf(t: Thing, rng: np.random.Generator, w: float, d: float, h: float) -> None:
    wood = wooden(rng)
    dark = Material(darker(wood.a, 0.55))
    t.box((0, h / 2, 0.015), (w / 2, h / 2, 0.015), dark)
    for side in (-1, 1):
        t.box((side * (w / 2 - 0.02), h / 2, d / 2), (0.02, h / 2, d / 2), wood)
    shelves = max(3, round(h / 0.4))
    for k in range(shelves + 1):
        t.box((0, 0.02 + (h - 0.04) * k / shelves, d / 2), (w / 2, 0.02, d / 2), wood)
    gap = (h - 0.04) / shelves
    for k in range(shelves):
        filled = rng.uniform(0.35, 1.0) * (w - 0.1)
        tall = rng.uniform(0.3, 0.42) * gap
        spines = Material(pick(rng, BRIGHT, odd=0.3), pick(rng, BRIGHT, odd=0.3), BOOKS, 5.0)
        x = (w - 0.1 - filled) / 2 * (1 if rng.random() < 0.5 else -1)
        t.box((x, 0.04 + gap * k + tall, d / 2), (filled / 2, tall, d / 2 - 0.05), spines)


def floor_lamp(t: Thing, rng: np.random.Generator, w: float, d: float, h: float) -> None:
    metal = Material(pick(rng, METAL))
    shade = Material(vary(rng, (1.0, 0.90, 0.68), 0.06), glow=0.75)
    z = d / 2
    t.cylinder((0, 0.02, z), 0.15, 0.02, metal)
    t.cylinder((0, h / 2, z), 0.025, h / 2 - 0.02, metal)
    if rng.random() < 0.7:
        t.cylinder((0, h - 0.17, z), 0.24, 0.17, shade, top=rng.uniform(0.5, 0.85))
    else:
        t.ball((0, h - 0.18, z), (0.19, 0.19, 0.19), shade)


def pendant(t: Thing, rng: np.random.Generator, drop: float) -> None:
    """Build a lamp that hangs from y = 0 of its frame."""
    shade = Material(vary(rng, (1.0, 0.92, 0.74), 0.05), glow=0.75)
    t.cylinder((0, -drop / 2, 0), 0.015, drop / 2, Material((0.2, 0.2, 0.2)))
    if rng.random() < 0.5:
        t.ball((0, -drop, 0), (0.2, 0.18, 0.2), shade)
    else:
        t.cylinder((0, -drop, 0), 0.3, 0.13, shade, top=0.35)


def door(t: Thing, rng: np.random.Generator, w: float, h: float) -> None:
    leaf = wooden(rng) if rng.random() < 0.7 else Material(pick(rng, PALE, 0.03))
    frame = Material(vary(rng, darker(leaf.a, 0.75), 0.03))
    inset = Material(darker(leaf.a, 0.82), leaf.b, leaf.pattern, leaf.scale)
    t.box((0, h / 2, 0.015), (w / 2, h / 2, 0.015), frame)
    t.box((0, h / 2 - 0.03, 0.025), (w / 2 - 0.07, h / 2 - 0.04, 0.02), leaf)
    for y, half in ((0.27 * h, 0.17 * h), (0.7 * h, 0.19 * h)):
        t.box((0, y, 0.04), (0.29 * w, half, 0.012), inset)
    t.ball((0.36 * w, 0.47 * h, 0.09), (0.04, 0.04, 0.04), Material(pick(rng, METAL)))


def window(t: Thing, rng: np.random.Generator, w: float, h: float) -> None:
    """Build a window centred on the origin of its frame."""
    frame = Material(pick(rng, PALE, 0.03, odd=0.15))
    sky = vary(rng, (0.70, 0.84, 0.97), 0.06)
    pane = Material(sky, darker(sky, 0.8), MOTTLED, 1.5, glow=0.9)
    t.box((0, 0, 0.01), (w / 2, h / 2, 0.012), pane)
    for side in (-1, 1):
        t.box((side * w / 2, 0, 0.03), (0.04, h / 2 + 0.04, 0.03), frame)
        t.box((0, side * h / 2, 0.03), (w / 2 + 0.04, 0.04, 0.03), frame)
    t.box((0, 0, 0.03), (0.022, h / 2, 0.02), frame)
    if rng.random() < 0.5:
        t.box((0, 0.1 * h, 0.03), (w / 2, 0.022, 0.02), frame)
    if rng.random() < 0.4:
        drape = cloth(rng, FABRIC + PALE)
        for side in (-1, 1):
            t.box((side * (w / 2 + 0.12), -0.05, 0.07), (0.16, h / 2 + 0.14, 0.03), drape)


def picture(t: Thing, rng: np.random.Generator, w: float, h: float) -> None:
    """Build a picture on a wall, centred on the origin of its frame."""
    pattern = (MOTTLED, STRIPES, TILES)[weighted(rng, (0.7, 0.15, 0.15))]
    canvas = Material(pick(rng, BRIGHT, odd=0.5), pick(rng, BRIGHT, odd=0.5), pattern, rng.uniform(2.0, 6.0))
    t.box((0, 0, 0.015), (w / 2, h / 2, 0.02), Material(pick(rng, WOOD + METAL, odd=0.1)))
    t.box((0, 0, 0.03), (w / 2 - 0.05, h / 2 - 0.05, 0.012), canvas)


def prop(t: Thing, rng: np.random.Generator) -> None:
    """Build a small thing of no class, standing on y = 0: a vase with leaves, a ball or a box."""
    colour = Material(pick(rng, BRIGHT, odd=0.4))
    shape = rng.integers(3)
    if shape == 0:
        t.cylinder((0, 0.1, 0), 0.06, 0.1, colour, top=1.4)
        t.ball((0, 0.28, 0), (0.12, 0.12, 0.12), Material(pick(rng, LEAVES), (0.1, 0.2, 0.1), MOTTLED, 20.0))
    elif shape == 1:
        t.ball((0, 0.12, 0), (0.12, 0.12, 0.12), Material(colour.a, pick(rng, BRIGHT), STRIPES, 6.0))
    else:
        t.box((0, 0.1, 0), (0.15, 0.1, 0.11), colour, tilt=(0, rng.uniform(-0.6, 0.6), 0))
