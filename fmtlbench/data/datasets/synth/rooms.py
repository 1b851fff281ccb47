"""Build one room: shell, things on the walls, furniture along the walls and in the middle, light, camera.

The camera stands near z = 0 and looks towards the far wall at z = -length.
"""

from __future__ import annotations

from math import pi, radians

import numpy as np

from . import furniture
from .colours import PALE, WOOD, darker, pick, vary, weighted
from .scene import BRICKS, MOTTLED, PLAIN, PLANKS, STRIPES, TILES, Camera, Light, Material, Scene
from .spec import IGNORE, ROOM_CLASSES

CLASS = {name: k for k, name in enumerate(ROOM_CLASSES)}

# Width, depth and height in metres, each drawn between two limits.
SIZES = {
    "cabinet": ((0.7, 1.3), (0.40, 0.55), (0.75, 2.0)),
    "bed": ((1.0, 1.7), (1.9, 2.1), (0.75, 1.1)),
    "sofa": ((1.5, 2.2), (0.80, 0.95), (0.75, 0.95)),
    "bookshelf": ((0.8, 1.3), (0.28, 0.36), (1.5, 2.1)),
    "floor_lamp": ((0.4, 0.4), (0.5, 0.5), (1.4, 1.75)),
    "table": ((0.9, 1.5), (0.7, 0.9), (0.70, 0.78)),
    "chair": ((0.42, 0.50), (0.42, 0.50), (0.85, 1.0)),
}
NAMES = tuple(SIZES)
ROOM_KINDS = (
    ("bed", "cabinet", "floor_lamp", "bookshelf", "chair"),
    ("sofa", "bookshelf", "floor_lamp", "cabinet", "chair"),
    ("table", "cabinet", "chair", "bookshelf", "sofa"),
)


class Wall:
    """A wall as a line: `at(s)` is the point s metres along it, `low` and `high` list the stretches in use."""

    def __init__(self, start: tuple[float, float], step: tuple[float, float], length: float, yaw: float) -> None:
        self.start, self.step, self.length, self.yaw = start, step, length, yaw
        self.low: list[tuple[float, float]] = []
        self.high: list[tuple[float, float]] = []

    def at(self, s: float, y: float = 0.0) -> tuple[float, float, float]:
        return (self.start[0] + s * self.step[0], y, self.start[1] + s * self.step[1])

    def find(self, rng: np.random.Generator, width: float, taken: list[tuple[float, float]]) -> float | None:
        """Return the middle of a free stretch, or None."""
        if self.length < width + 0.1:
            return None
        for s in rng.uniform(width / 2 + 0.05, self.length - width / 2 - 0.05, 8).tolist():
            if all(abs(s - middle) >= (width + other) / 2 + 0.05 for middle, other in taken):
                return s
        return None


class Floor:
    """The floor, as the list of rectangles in use: (x0, x1, z0, z1)."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, float, float, float]] = []

    def free(self, box: tuple[float, float, float, float]) -> bool:
        x0, x1, z0, z1 = box
        return all(x1 <= a or b <= x0 or z1 <= c or d <= z0 for a, b, c, d in self.taken)


def build_room(rng: np.random.Generator) -> Scene:
    scene = Scene()
    width, length, height = rng.uniform((3.2, 3.6, 2.4), (5.0, 5.6, 2.9)).tolist()
    eye = (rng.uniform(-0.3, 0.3) * width, rng.uniform(1.25, 1.75), -0.3)
    target = (rng.uniform(-0.22, 0.22) * width, rng.uniform(0.6, 1.05), -length)
    yaw = float(np.arctan2(eye[0] - target[0], eye[2] - target[2]))
    scene.camera = Camera(eye, yaw, float(np.arctan2(target[1] - eye[1], length)), radians(rng.normal(0.0, 1.2)))
    _shell(scene, rng, width, length, height)

    # Only the stretches a camera near z = 0 can see get furniture.
    far = Wall((-width / 2, -length), (1.0, 0.0), width, 0.0)
    left = Wall((-width / 2, -1.5), (0.0, -1.0), length - 1.5, pi / 2)
    right = Wall((width / 2, -1.5), (0.0, -1.0), length - 1.5, -pi / 2)
    walls = (far, left, right)
    floor = Floor()
    floor.taken.append((eye[0] - 0.6, eye[0] + 0.6, -1.5, 1.0))

    _add_openings(scene, rng, walls, floor)
    kind = ROOM_KINDS[rng.integers(len(ROOM_KINDS))]
    _add_table_group(scene, rng, floor, width, length, always=kind[0] == "table")
    wanted = list(kind) + [NAMES[k] for k in rng.integers(len(NAMES), size=2).tolist()]
    for name in wanted:
        if name != "table" and rng.random() < (1.0 if name == kind[0] else 0.65):
            _along_walls(scene, rng, walls, floor, name)
    _pictures(scene, rng, walls, height)
    if rng.random() < 0.45:
        spot = (rng.uniform(-0.25, 0.25) * width, height, -rng.uniform(0.5, 0.8) * length)
        furniture.pendant(scene.thing(CLASS["lamp"], spot), rng, rng.uniform(0.4, 0.75))
    _light(scene, rng, width, length, height)
    return scene


def _shell(scene: Scene, rng: np.random.Generator, width: float, length: float, height: float) -> None:
    colour = pick(rng, PALE, 0.06, odd=0.2)
    pattern = (PLAIN, MOTTLED, STRIPES, BRICKS)[weighted(rng, (0.35, 0.35, 0.2, 0.1))]
    scale = {STRIPES: 3.0, BRICKS: 7.0}.get(pattern, 2.0)
    paper = Material(colour, darker(colour, rng.uniform(0.8, 0.93)), pattern, scale)
    wood = pick(rng, WOOD, odd=0.1)
    stone = pick(rng, (*PALE, (0.55, 0.52, 0.50), (0.62, 0.42, 0.34)), odd=0.1)
    ground = (
        Material(wood, darker(wood, 0.6), PLANKS, rng.uniform(5.0, 8.0)),
        Material(stone, darker(stone, 0.6), TILES, rng.uniform(2.0, 3.5)),
        Material(stone, darker(stone, 0.7), MOTTLED, 9.0),
    )[weighted(rng, (0.5, 0.25, 0.25))]
    ceiling = vary(rng, (0.93, 0.93, 0.91), 0.03)
    scene.thing(CLASS["floor"], casts=False).plane(ground, tilt=(0.0, 0.0 if rng.random() < 0.5 else pi / 2, 0.0))
    scene.thing(CLASS["ceiling"], (0.0, height, 0.0), casts=False).plane(
        Material(ceiling, darker(ceiling, 0.93), MOTTLED, 1.5)
    )
    stand = (pi / 2, 0.0, 0.0)  # a plane's normal is its local y
    for at, turn in (
        ((0.0, 0.0, -length), 0.0),
        ((-width / 2, 0.0, 0.0), pi / 2),
        ((width / 2, 0.0, 0.0), -pi / 2),
        ((0.0, 0.0, 0.6), pi),
    ):
        scene.thing(CLASS["wall"], at, turn, casts=False).plane(paper, tilt=stand)


def _add_openings(scene: Scene, rng: np.random.Generator, walls: tuple[Wall, ...], floor: Floor) -> None:
    """Add at most one door, then one or two windows, and keep tall furniture away from them."""
    if rng.random() < 0.7:
        wall, width = walls[rng.integers(3)], rng.uniform(0.85, 1.0)
        s = wall.find(rng, width, wall.low)
        if s is not None:
            furniture.door(
                scene.thing(CLASS["door"], wall.at(s), wall.yaw, casts=False), rng, width, rng.uniform(2.0, 2.15)
            )
            wall.low.append((s, width))
            wall.high.append((s, width))
            floor.taken.append(_footprint(wall, s, width, 0.5))
    for _ in range(1 + (rng.random() < 0.4)):
        wall, width = walls[rng.integers(3)], rng.uniform(0.9, 1.6)
        s = wall.find(rng, width + 0.5, wall.high)
        if s is not None:
            height = rng.uniform(0.9, 1.25)
            at = wall.at(s, 1.0 + height / 2)
            furniture.window(scene.thing(CLASS["window"], at, wall.yaw, casts=False), rng, width, height)
            wall.high.append((s, width + 0.5))


def _footprint(wall: Wall, s: float, width: float, depth: float) -> tuple[float, float, float, float]:
    x, _, z = wall.at(s)
    if wall.yaw == 0.0:
        return (x - width / 2, x + width / 2, z, z + depth)
    inwards = depth if wall.yaw > 0 else -depth
    return (min(x, x + inwards), max(x, x + inwards), z - width / 2, z + width / 2)


def _along_walls(scene: Scene, rng: np.random.Generator, walls: tuple[Wall, ...], floor: Floor, name: str) -> None:
    w, d, h = (rng.uniform(*limits) for limits in SIZES[name])
    for k in rng.permutation(3).tolist():
        wall = walls[k]
        tall = h > 1.05 and name != "floor_lamp"
        s = wall.find(rng, w, wall.low + (wall.high if tall else []))
        if s is None or not floor.free(_footprint(wall, s, w, d)):
            continue
        label = CLASS["lamp" if name == "floor_lamp" else name]
        getattr(furniture, name)(scene.thing(label, wall.at(s), wall.yaw), rng, w, d, h)
        wall.low.append((s, w))
        if h > 0.9:
            wall.high.append((s, w))
        floor.taken.append(_footprint(wall, s, w, d))
        if name == "cabinet" and h < 1.2 and rng.random() < 0.5:
            x, _, z = wall.at(s)
            away = (0.0, d / 2) if wall.yaw == 0.0 else (d / 2 if wall.yaw > 0 else -d / 2, 0.0)
            furniture.prop(scene.thing(IGNORE, (x + away[0], h, z + away[1])), rng)
        return


def _add_table_group(
    scene: Scene, rng: np.random.Generator, floor: Floor, width: float, length: float, always: bool
) -> None:
    """Add a table in the middle of the room with chairs around it."""
    if not always and rng.random() > 0.45:
        return
    w, d, h = (rng.uniform(*limits) for limits in SIZES["table"])
    if not always and rng.random() < 0.5:
        h = rng.uniform(0.4, 0.5)  # a coffee table, without chairs
    x = rng.uniform(-0.2, 0.2) * width
    z = -rng.uniform(2.2, max(2.3, length - 1.4))
    turn = rng.normal(0.0, 0.2)
    if not floor.free((x - w / 2, x + w / 2, z - d / 2, z + d / 2)):
        return
    # The builder's frame has its back at z = 0; shift so that the table turns about its middle.
    c, s = float(np.cos(turn)), float(np.sin(turn))
    furniture.table(scene.thing(CLASS["table"], (x - s * d / 2, 0.0, z - c * d / 2), turn), rng, w, d, h)
    chairs = 0.35 if h > 0.6 else 0.0
    if rng.random() < 0.5:
        at = (x + rng.uniform(-0.3, 0.3) * w, h, z + rng.uniform(-0.2, 0.2) * d)
        furniture.prop(scene.thing(IGNORE, at), rng)
    cw, cd, ch = (rng.uniform(*limits) for limits in SIZES["chair"])
    style = rng.integers(2**31)
    for side in (0.0, pi / 2, pi, -pi / 2):
        if h > 0.6 and rng.random() < 0.7:
            facing = turn + side + rng.normal(0.0, 0.15)  # the chair's front looks at the table
            c, s = float(np.cos(facing)), float(np.sin(facing))
            gap = (d if side in (0.0, pi) else w) / 2 + rng.uniform(0.3, 0.45)
            twin = np.random.default_rng(style)  # chairs of one table look alike
            furniture.chair(scene.thing(CLASS["chair"], (x - s * gap, 0.0, z - c * gap), facing), twin, cw, cd, ch)
    reach = max(w, d) / 2 + chairs
    floor.taken.append((x - reach, x + reach, z - reach, z + reach))


def _pictures(scene: Scene, rng: np.random.Generator, walls: tuple[Wall, ...], height: float) -> None:
    for wall in walls:
        for _ in range(weighted(rng, (0.35, 0.45, 0.2))):
            w, h = rng.uniform(0.4, 1.0), rng.uniform(0.4, 0.75)
            s = wall.find(rng, w, wall.high)
            if s is not None:
                at = wall.at(s, min(rng.uniform(1.5, 1.8), height - h / 2 - 0.1))
                furniture.picture(scene.thing(CLASS["picture"], at, wall.yaw, casts=False), rng, w, h)
                wall.high.append((s, w))


def _light(scene: Scene, rng: np.random.Generator, width: float, length: float, height: float) -> None:
    warm = rng.uniform(0.0, 1.0)
    scene.light = Light(
        at=(rng.uniform(-0.35, 0.35) * width, height - 0.15, -rng.uniform(0.25, 0.7) * length),
        w=1.0,
        strength=rng.uniform(0.7, 1.3),
        colour=(1.0, 0.97 - 0.1 * warm, 0.94 - 0.25 * warm),
        blur=0.35,
        ambient=rng.uniform(0.45, 0.7),
        fill=(rng.uniform(-0.6, 0.6), 0.4, 0.7),
        zenith=(0.6, 0.75, 0.95),
        horizon=(0.85, 0.9, 0.95),
        clouds=0.0,
    )
