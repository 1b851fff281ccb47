"""Make one sample: a named random stream, a scene, its picture and its labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from ....base.errors import FmtlbenchError, describe_error
from ....tasks import TASKS
from . import labels
from .outdoors import CLASS as OUTDOOR
from .outdoors import build_outdoors
from .paint import paint
from .rays import cast, lit, spheres
from .rooms import build_room
from .scene import Scene
from .spec import VERSION, check_count, check_size, check_split, domain, focal

BUILDERS = {"synth-nyud": build_room, "synth-pascal": build_outdoors}


def stream(*names) -> np.random.Generator:
    """Return a random generator that depends on the names alone."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def generate(
    name: str, split: str, index: int, size: tuple[int, int] = (64, 64), keys: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Return the sample `index` of a split: 'image' and one array per task, by default those of the domain.

    The scene depends on (VERSION, name, split, index) only; `size` is the resolution it is rendered at.

    Returns:
        image uint8 [H, W, 3]; semseg uint8 [H, W] (255 = ignore); human_parts, sal, edge uint8 [H, W];
        depth float32 [H, W] in metres along the view axis (0 = invalid); normals float32 [H, W, 3], unit vectors in
        camera coordinates x right, y up, z towards the viewer (zero = invalid). See `focal` for the camera.
    """
    sample, listed = full_sample(name, split, index, size), ("image", *domain(name).tasks)
    return {
        key: sample[key] if key in listed else _make_further_label(key, sample)
        for key in (listed if keys is None else keys)
    }


def _make_further_label(task: str, sample: dict[str, np.ndarray]) -> np.ndarray:
    """Compute the label of a task that the domain does not list from the full sample."""
    try:
        label = np.asarray(TASKS[task].from_scene(sample))
    except (Exception, SystemExit) as error:
        raise FmtlbenchError(f"task {task!r}: from_scene failed: {describe_error(error)}") from error
    if problem := TASKS[task].kind.problem(label, sample["image"].shape[:2], None):
        raise FmtlbenchError(f"task {task!r}: from_scene gave {problem}")
    return label


def full_sample(name: str, split: str, index: int, size: tuple[int, int]) -> dict[str, np.ndarray]:
    """Return the image, the labels of all tasks, and `object` and `solid` numbers [H, W], -1 for sky.

    An object consists of solids (box, sphere, …), each of which is convex.
    """
    domain(name)
    check_split(split)
    index = check_count(index, "index", 0)
    height, width = check_size(size)
    rng = stream("fmtlbench-synth", VERSION, name, split, index)
    scene = BUILDERS[name](rng)
    solids, tags = scene.arrays()
    eye, cam, f = np.array(scene.camera.position), scene.camera.axes(), focal(name, size)
    depth, solid, normal = cast(solids, tags, eye, cam, height, width, f)
    obj = np.append(tags[:, 1], -1)[solid]  # solid -1, the sky, takes the last entry
    return {
        "image": _render_picture(scene, solids, tags, eye, cam, height, width, f, rng),
        "semseg": labels.semseg(scene, obj, sky=0),
        "human_parts": labels.human_parts(tags, solid),
        "sal": labels.saliency(scene, obj, OUTDOOR["person"]),
        "depth": np.where(solid >= 0, depth, 0.0).astype(np.float32),
        "normals": (normal @ cam).astype(np.float32),
        "edge": labels.edge(obj, depth),
        "object": obj,
        "solid": solid,
    }


def _render_picture(scene: Scene, solids, tags, eye, cam, height: int, width: int, f: float, rng) -> np.ndarray:
    """Render the image with four rays per pixel, none of them at the pixel centre, where the labels are taken."""
    light = scene.light
    salt = int(rng.integers(1000))
    depth, solid, normal = cast(solids, tags, eye, cam, 2 * height, 2 * width, 2 * f)
    towards = np.array(light.at)
    bound = spheres(solids, tags, np.array(scene.casts))
    sun = lit(solids, tags, bound, depth, solid, normal, eye, cam, 2 * f, towards, light.w, light.blur)
    fill = np.array(light.fill)
    colour = paint(
        solids,
        tags,
        depth,
        solid,
        normal,
        sun,
        eye,
        cam,
        2 * f,
        salt,
        towards,
        light.w,
        light.strength,
        np.array(light.colour),
        light.ambient,
        fill / np.linalg.norm(fill),
        np.array(light.zenith) ** 2,
        np.array(light.horizon) ** 2,
        light.clouds,
    )
    # Exposure, gamma, then a little sensor noise.
    seen = np.sqrt(np.minimum(colour * rng.uniform(0.85, 1.2), 1.0)) + rng.normal(0.0, 0.012, (height, width, 3))
    return (255.0 * seen.clip(0.0, 1.0) + 0.5).astype(np.uint8)
