"""Build one outdoor scene: ground, background, one subject in front, further things, light, camera.

The camera stands at z = 0 and looks towards -z; `ahead` below is the distance in that direction.
"""

from __future__ import annotations

from math import atan2, cos, pi, radians, sin

import numpy as np

from . import outdoor_things as things
from .colours import darker, pick, vary, weighted
from .people import add_person
from .scene import MOTTLED, PLAIN, TILES, Camera, Light, Material, Scene
from .spec import OUTDOOR_CLASSES

CLASS = {name: k for k, name in enumerate(OUTDOOR_CLASSES)}
BACKGROUND = CLASS["background"]

# How far ahead a thing stands, as the subject and as a companion, and the radius it needs on the ground.
RANGES = {
    "person": ((2.1, 3.1), (2.7, 5.5), 0.45),
    "car": ((5.0, 7.5), (6.5, 11.0), 1.9),
    "bus": ((9.0, 13.0), (12.0, 17.0), 3.2),
    "horse": ((3.6, 5.0), (4.5, 8.0), 1.0),
    "dog": ((2.3, 3.2), (2.4, 4.5), 0.45),
    "pottedplant": ((2.2, 3.0), (2.3, 4.5), 0.4),
    "chair": ((2.2, 3.0), (2.3, 4.5), 0.42),
}
OTHERS = tuple(name for name in RANGES if name != "person")
BUILDERS = {
    "car": things.car,
    "bus": things.bus,
    "horse": things.horse,
    "dog": things.dog,
    "pottedplant": things.pottedplant,
    "chair": things.garden_chair,
}


class Placer:
    """Keeps things apart on the ground, and in the picture where one would hide the other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.taken: list[tuple[float, float, float]] = []  # x, ahead, radius

    def find(self, limits: tuple[float, float], radius: float, spread: float) -> tuple[float, float] | None:
        """Return a free place (x, ahead) within `spread` radians of the view axis and reserve it, or None."""
        for _ in range(12):
            ahead, angle = self.rng.uniform(*limits), self.rng.uniform(-spread, spread)
            x = ahead * float(np.tan(angle))
            if all(self._apart(x, ahead, radius, *other) for other in self.taken):
                self.taken.append((x, ahead, radius))
                return x, ahead
        return None

    @staticmethod
    def _apart(x, ahead, radius, other_x, other_ahead, other_radius) -> bool:
        if (x - other_x) ** 2 + (ahead - other_ahead) ** 2 < (radius + other_radius + 0.1) ** 2:
            return False
        gap = abs(atan2(x, ahead) - atan2(other_x, other_ahead))
        return gap > 0.55 * (radius / ahead + other_radius / other_ahead)


def build_outdoors(rng: np.random.Generator) -> Scene:
    scene = Scene()
    camera_height = rng.uniform(0.95, 1.4)
    scene.camera = Camera(
        (0.0, camera_height, 0.0), 0.0, radians(rng.uniform(-7.0, 1.0)), radians(rng.normal(0.0, 1.2))
    )
    _light(scene, rng)
    _ground(scene, rng)
    placer = Placer(rng)
    subject = "person" if rng.random() < 0.58 else OTHERS[rng.integers(len(OTHERS))]
    _place(scene, rng, placer, subject, 0, radians(10.0))
    people = weighted(rng, (0.55, 0.32, 0.13)) if subject == "person" else weighted(rng, (0.35, 0.5, 0.15))
    companions = ["person"] * people + [OTHERS[rng.integers(len(OTHERS))] for _ in range(1 + rng.integers(2))]
    for name in companions:
        _place(scene, rng, placer, name, 1, radians(22.0))
    _backdrop(scene, rng, placer)
    return scene


def _place(scene: Scene, rng: np.random.Generator, placer: Placer, name: str, role: int, spread: float) -> None:
    limits, radius = RANGES[name][role], RANGES[name][2]
    spot = placer.find(limits, radius, spread)
    if spot is None:
        return
    at = (spot[0], 0.0, -spot[1])
    if name == "person":
        # Mostly seen from the front or at an angle, sometimes from behind.
        yaw = rng.normal(0.0, 0.7) + (pi if rng.random() < 0.12 else 0.0)
        add_person(scene, rng, CLASS["person"], at, yaw)
        return
    if name == "chair":
        yaw, scale = rng.normal(0.0, 0.7), rng.uniform(0.95, 1.15)
    elif name == "pottedplant":
        yaw, scale = rng.uniform(-pi, pi), rng.uniform(0.8, 1.3)
    else:  # longer than wide: more often seen from the side
        yaw = (pi / 2 if rng.random() < 0.5 else -pi / 2) + rng.normal(0.0, 0.5)
        scale = rng.uniform(0.9, 1.1)
    BUILDERS[name](scene.thing(CLASS[name], at, yaw, scale, salient=True), rng)


def _ground(scene: Scene, rng: np.random.Generator) -> None:
    grass, asphalt, sand, stone = (0.40, 0.52, 0.24), (0.42, 0.42, 0.43), (0.76, 0.68, 0.50), (0.64, 0.61, 0.57)
    kind = weighted(rng, (0.42, 0.22, 0.14, 0.22))
    colour = vary(rng, (grass, asphalt, sand, stone)[kind], 0.05)
    pattern, scale = ((MOTTLED, 3.0), (MOTTLED, 8.0), (MOTTLED, 1.5), (TILES, 1.4))[kind]
    scene.thing(BACKGROUND, casts=False).plane(
        Material(colour, darker(colour, 0.72), pattern, scale), tilt=(0, rng.uniform(0, pi), 0)
    )
    if kind != 1 and rng.random() < 0.5:  # a road, away from the camera or across
        tar = vary(rng, asphalt, 0.05)
        road = Material(tar, darker(tar, 0.8), MOTTLED, 6.0)
        half, turn = rng.uniform(1.6, 2.6), 0.0 if rng.random() < 0.4 else pi / 2 + rng.normal(0.0, 0.1)
        spot = (rng.uniform(-2.0, 2.0), 0.0, 0.0) if turn == 0.0 else (0.0, 0.0, -rng.uniform(7.0, 11.0))
        strip = scene.thing(BACKGROUND, spot, turn, casts=False)
        strip.box((0, 0.0, 0), (half, 0.012, 60.0), road)
        for k in range(-3, 8):
            strip.box((0, 0.01, -5.0 * k), (0.07, 0.006, 1.2), Material((0.9, 0.9, 0.86), pattern=PLAIN))


def _backdrop(scene: Scene, rng: np.random.Generator, placer: Placer) -> None:
    for _ in range(rng.integers(3)):
        spot = (rng.uniform(-40, 40), 0.0, -rng.uniform(60, 80))
        things.hill(scene.thing(BACKGROUND, spot, casts=False), rng)
    for builder, limits, radius, chances in (
        (things.house, (17.0, 27.0), 5.5, (0.3, 0.35, 0.25, 0.1)),
        (things.tree, (8.5, 22.0), 1.2, (0.2, 0.25, 0.3, 0.25)),
        (things.bush, (7.0, 16.0), 0.9, (0.4, 0.3, 0.2, 0.1)),
        (things.post, (6.0, 14.0), 0.2, (0.75, 0.25, 0.0, 0.0)),
    ):
        for _ in range(weighted(rng, chances)):
            ahead = rng.uniform(*limits)
            x = ahead * rng.uniform(-0.8, 0.8)
            if all((x - a) ** 2 + (ahead - b) ** 2 > (radius + c) ** 2 for a, b, c in placer.taken):
                placer.taken.append((x, ahead, radius))
                builder(scene.thing(BACKGROUND, (x, 0.0, -ahead), rng.normal(0.0, 0.25)), rng)
    if rng.random() < 0.25:
        ahead = rng.uniform(14.0, 17.0)
        if all(abs(b - ahead) > c + 0.5 for _, b, c in placer.taken):
            things.fence(scene.thing(BACKGROUND, (0.0, 0.0, -ahead), rng.normal(0.0, 0.1)), rng, 30.0)


def _light(scene: Scene, rng: np.random.Generator) -> None:
    around, high = rng.uniform(-pi, pi), radians(rng.uniform(28.0, 65.0))
    low = 1.0 - high  # a low sun is warmer
    grey = rng.random() < 0.25  # overcast: weak shadows, pale sky
    zenith = pick(rng, ((0.36, 0.56, 0.86), (0.45, 0.66, 0.90)), 0.04, odd=0.0)
    scene.light = Light(
        at=(cos(high) * sin(around), sin(high), cos(high) * cos(around)),
        w=0.0,
        strength=rng.uniform(0.15, 0.3) if grey else rng.uniform(0.6, 0.95),
        colour=(1.0, 0.97 - 0.06 * max(low, 0.0), 0.92 - 0.2 * max(low, 0.0)),
        blur=0.08,
        ambient=rng.uniform(0.85, 1.0) if grey else rng.uniform(0.5, 0.65),
        fill=(0.0, 0.5, 0.8),
        zenith=(0.72, 0.76, 0.80) if grey else zenith,
        horizon=vary(rng, (0.86, 0.88, 0.90), 0.03),
        clouds=rng.uniform(0.3, 0.6),
    )
