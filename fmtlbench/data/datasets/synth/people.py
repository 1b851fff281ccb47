"""Build people of capsules. Parts: 1 head, 2 torso, 3 upper arms, 4 lower arms, 5 upper legs, 6 lower legs."""

from __future__ import annotations

from math import cos, radians, sin

import numpy as np

from .colours import BRIGHT, SKIN, darker, pick, vary
from .scene import MOTTLED, PLAIN, STRIPES, Material, Scene, Vector

HEAD, TORSO, UPPER_ARM, LOWER_ARM, UPPER_LEG, LOWER_LEG = range(1, 7)
HAIR = ((0.12, 0.09, 0.07), (0.32, 0.20, 0.12), (0.72, 0.56, 0.30), (0.55, 0.53, 0.52))

# Degrees: arm (out, swing, bend out, bend forward) left and right, leg (out, swing, knee) left and right.
POSES = {
    "standing": ((14, 0, -4, 15), (14, 0, -4, 15), (5, 0, 0), (5, 0, 0)),
    "relaxed": ((18, 8, -10, 30), (12, -6, 0, 10), (8, 6, 8), (4, -4, 4)),
    "walking": ((12, 30, 0, 25), (12, -30, 0, 25), (3, -26, 22), (3, 26, 6)),
    "striding": ((16, -38, 0, 50), (16, 38, 0, 50), (3, 34, 14), (3, -32, 34)),
    "arms up": ((148, 0, 18, 0), (148, 0, 18, 0), (7, 0, 0), (7, 0, 0)),
    "waving": ((120, 0, 55, 0), (14, 0, -4, 15), (6, 0, 0), (6, 0, 0)),
    "hands on hips": ((52, -8, -104, 8), (52, -8, -104, 8), (9, 0, 0), (9, 0, 0)),
    "arms wide": ((86, 0, 6, 0), (86, 0, 6, 0), (12, 0, 0), (12, 0, 0)),
    "pointing": ((84, 10, 0, 0), (16, 0, -6, 18), (6, 5, 5), (6, -5, 3)),
}
_NAMES = tuple(POSES)


def _along(start: Vector, length: float, side: float, out: float, swing: float) -> Vector:
    """Return the end of a limb that hangs down at out = swing = 0; `out` turns it sideways, `swing` forwards."""
    o, s = radians(out), radians(swing)
    return (
        start[0] + length * side * sin(o),
        start[1] - length * cos(o) * cos(s),
        start[2] + length * cos(o) * sin(s) if abs(out) < 90 else start[2],
    )


def add_person(scene: Scene, rng: np.random.Generator, label: int, at: Vector, yaw: float) -> None:
    pose = POSES[_NAMES[rng.integers(len(_NAMES))]]
    if rng.random() < 0.5:  # swap the poses of the left and the right side
        pose = (pose[1], pose[0], pose[3], pose[2])
    shake = rng.normal(0.0, 5.0, 14).tolist()
    skin = Material(pick(rng, SKIN, 0.03, odd=0.0))
    hair = Material(pick(rng, HAIR, 0.03, odd=0.05))
    shirt, second = pick(rng, BRIGHT, odd=0.4), pick(rng, BRIGHT, odd=0.4)
    pattern = (PLAIN, PLAIN, MOTTLED, STRIPES)[rng.integers(4)]
    top = Material(shirt, second if pattern == STRIPES else darker(shirt), pattern, 9.0)
    trousers = Material(vary(rng, ((0.20, 0.24, 0.38), (0.15, 0.15, 0.17), (0.55, 0.48, 0.36))[rng.integers(3)], 0.07))
    shoes = Material(pick(rng, ((0.12, 0.11, 0.11), (0.82, 0.82, 0.82), (0.45, 0.28, 0.16))))
    forearm = top if rng.random() < 0.45 else skin
    shin = trousers if rng.random() < 0.7 else skin
    build = rng.uniform(0.92, 1.16)  # girth
    scale = rng.uniform(0.9, 1.08) if rng.random() < 0.85 else rng.uniform(0.62, 0.78)  # an adult or a child

    # Legs first: the lower foot decides how high the hips are.
    hips = 0.93
    joints = []
    for k, side in enumerate((-1.0, 1.0)):
        out, swing, knee = (a + b for a, b in zip(pose[2 + k], shake[3 * k : 3 * k + 3]))
        hip = (side * 0.105, hips, 0.0)
        middle = _along(hip, 0.43, side, out, swing)
        joints.append((hip, middle, _along(middle, 0.42, side, out, swing - abs(knee))))
    lift = 0.05 - min(joint[2][1] for joint in joints)

    person = scene.thing(label, at, yaw, scale, salient=True)

    def up(p: Vector) -> Vector:
        return (p[0], p[1] + lift, p[2])

    for hip, middle, ankle in joints:
        person.limb(up(hip), up(middle), 0.092 * build, trousers, UPPER_LEG)
        person.limb(up(middle), up(ankle), 0.07 * build, shin, LOWER_LEG)
        toe = (ankle[0], ankle[1], ankle[2] + 0.13)
        person.limb(up(ankle), up(toe), 0.055, shoes, LOWER_LEG)
    person.limb(up((0.0, 0.97, 0.0)), up((0.0, 1.05, 0.0)), 0.165 * build, trousers, TORSO, flat=0.68)
    person.limb(up((0.0, 1.10, 0.0)), up((0.0, 1.32, 0.0)), 0.185 * build, top, TORSO, flat=0.62)
    shoulder = 0.205 * build
    person.limb(up((-shoulder + 0.04, 1.42, 0.0)), up((shoulder - 0.04, 1.42, 0.0)), 0.075, top, TORSO)
    for k, side in enumerate((-1.0, 1.0)):
        out, swing, bend_out, bend_forward = (a + b for a, b in zip(pose[k], shake[6 + 4 * k : 10 + 4 * k]))
        start = (side * shoulder, 1.42, 0.0)
        elbow = _along(start, 0.29, side, out, swing)
        wrist = _along(elbow, 0.25, side, out + bend_out, swing + bend_forward)
        person.limb(up(start), up(elbow), 0.066 * build, top, UPPER_ARM)
        person.limb(up(elbow), up(wrist), 0.054 * build, forearm, LOWER_ARM)
        person.ball(
            up(_along(wrist, 0.05, side, out + bend_out, swing + bend_forward)), (0.06,) * 3, skin, part=LOWER_ARM
        )
    person.limb(up((0.0, 1.44, 0.0)), up((0.0, 1.55, 0.0)), 0.06, skin, HEAD)
    person.ball(up((0.0, 1.66, 0.01)), (0.115, 0.145, 0.125), skin, part=HEAD)
    person.ball(up((0.0, 1.715, -0.018)), (0.123, 0.112, 0.13), hair, part=HEAD)
    for side in (-1.0, 1.0):
        person.ball(up((side * 0.045, 1.655, 0.122)), (0.018, 0.018, 0.018), Material((0.08, 0.07, 0.07)), part=HEAD)
    if rng.random() < 0.3:  # long hair
        person.limb(up((0.0, 1.66, -0.09)), up((0.0, 1.50, -0.10)), 0.09, hair, HEAD, flat=0.6)
