"""Compute, in compiled loops, what a ray hits first and whether the light reaches a point.

Compiled functions never call into another file: numba's on-disk cache notices changes only in the file it caches.
Solid rows (see scene.py): 0:3 centre, 3:12 axes, 12:15 half sizes, 15 extra, 16:19 colour a, 19:22 colour b,
22 pattern scale, 23 glow, 24:33 axes / half sizes, 33 bounding radius (0 for planes).
Tags: 0 kind, 1 object, 2 part, 3 pattern.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from ....base.jit import entry, jit
from .scene import BOX, CAPSULE, CONE, PLANE, SPHERE

NEAR = 1e-3


@jit
def _quadratic(a, b, c, tmin):
    """Return the roots of a t^2 + 2 b t + c beyond tmin in increasing order, inf for a missing one."""
    disc = b * b - a * c
    if disc < 0.0 or abs(a) < 1e-14:
        return inf, inf
    root = sqrt(disc)
    t0, t1 = (-b - root) / a, (-b + root) / a
    if t0 > t1:
        t0, t1 = t1, t0
    return (t0 if t0 > tmin else inf), (t1 if t1 > tmin else inf)


@jit
def _hit_box(ox, oy, oz, dx, dy, dz, tmin):
    near, far, axis = -inf, inf, 0
    for k in range(3):
        o = ox if k == 0 else (oy if k == 1 else oz)
        d = dx if k == 0 else (dy if k == 1 else dz)
        if abs(d) < 1e-14:
            if abs(o) > 1.0:
                return inf, 0.0, 0.0, 0.0
            continue
        t0, t1 = (-1.0 - o) / d, (1.0 - o) / d
        if t0 > t1:
            t0, t1 = t1, t0
        if t0 > near:
            near, axis = t0, k
        far = min(far, t1)
    if near > far or near <= tmin:
        return inf, 0.0, 0.0, 0.0
    if axis == 0:
        return near, (-1.0 if dx > 0 else 1.0), 0.0, 0.0
    if axis == 1:
        return near, 0.0, (-1.0 if dy > 0 else 1.0), 0.0
    return near, 0.0, 0.0, (-1.0 if dz > 0 else 1.0)


@jit
def _hit_cone(top, ox, oy, oz, dx, dy, dz, tmin):
    m, k = 0.5 * (1.0 + top), 0.5 * (top - 1.0)  # radius at height y is m + k y
    r = m + k * oy
    a = dx * dx + dz * dz - k * k * dy * dy
    b = ox * dx + oz * dz - k * dy * r
    c = ox * ox + oz * oz - r * r
    best, nx, ny, nz = inf, 0.0, 0.0, 0.0
    t0, t1 = _quadratic(a, b, c, tmin)
    for t in (t0, t1):
        y = oy + t * dy
        if t < best and abs(y) <= 1.0 and m + k * y >= 0.0:
            best, nx, ny, nz = t, ox + t * dx, -k * (m + k * y), oz + t * dz
    if abs(dy) > 1e-14:
        for side in (-1.0, 1.0):
            t = (side - oy) / dy
            if tmin < t < best:
                x, z, rim = ox + t * dx, oz + t * dz, m + k * side
                if x * x + z * z <= rim * rim:
                    best, nx, ny, nz = t, 0.0, side, 0.0
    return best, nx, ny, nz


@jit
def _hit_capsule(reach, ox, oy, oz, dx, dy, dz, tmin):
    best, nx, ny, nz = inf, 0.0, 0.0, 0.0
    t, _ = _quadratic(dx * dx + dz * dz, ox * dx + oz * dz, ox * ox + oz * oz - 1.0, tmin)
    if t < inf and abs(oy + t * dy) <= reach:
        best, nx, nz = t, ox + t * dx, oz + t * dz
    for side in (-reach, reach):
        y = oy - side
        dd = dx * dx + dy * dy + dz * dz
        t, _ = _quadratic(dd, ox * dx + y * dy + oz * dz, ox * ox + y * y + oz * oz - 1.0, tmin)
        if t < best:
            best, nx, ny, nz = t, ox + t * dx, y + t * dy, oz + t * dz
    return best, nx, ny, nz


@jit
def _hit_plane(oy, dy, tmin):
    if abs(dy) > 1e-14 and -oy / dy > tmin:
        return -oy / dy, 0.0, (1.0 if dy < 0 else -1.0), 0.0
    return inf, 0.0, 0.0, 0.0


@jit
def _hit(kind, extra, ox, oy, oz, dx, dy, dz, tmin):
    """Return the first hit beyond tmin in local coordinates: t and an outward normal of any length."""
    if kind == BOX:
        return _hit_box(ox, oy, oz, dx, dy, dz, tmin)
    if kind == SPHERE:
        t, _ = _quadratic(
            dx * dx + dy * dy + dz * dz, ox * dx + oy * dy + oz * dz, ox * ox + oy * oy + oz * oz - 1.0, tmin
        )
        if t == inf:
            return inf, 0.0, 0.0, 0.0
        return t, ox + t * dx, oy + t * dy, oz + t * dz
    if kind == CONE:
        return _hit_cone(extra, ox, oy, oz, dx, dy, dz, tmin)
    if kind == CAPSULE:
        return _hit_capsule(extra, ox, oy, oz, dx, dy, dz, tmin)
    return _hit_plane(oy, dy, tmin)


@jit
def _local(s, i, x, y, z):
    """Return a world vector in the local coordinates of solid i."""
    a = s[i, 24] * x + s[i, 25] * y + s[i, 26] * z
    b = s[i, 27] * x + s[i, 28] * y + s[i, 29] * z
    c = s[i, 30] * x + s[i, 31] * y + s[i, 32] * z
    return a, b, c


@jit
def _world_normal(s, i, nx, ny, nz):
    nx, ny, nz = nx / s[i, 12], ny / s[i, 13], nz / s[i, 14]
    x = s[i, 3] * nx + s[i, 6] * ny + s[i, 9] * nz
    y = s[i, 4] * nx + s[i, 7] * ny + s[i, 10] * nz
    z = s[i, 5] * nx + s[i, 8] * ny + s[i, 11] * nz
    norm = sqrt(x * x + y * y + z * z)
    return x / norm, y / norm, z / norm


@jit
def _window(s, tags, i, eye, cam, height, width, f):
    """Return the pixel rectangle that contains solid i: rows v0:v1, columns u0:u1."""
    if tags[i, 0] == PLANE:
        return 0, height, 0, width
    reach = 1.0 + s[i, 15] if tags[i, 0] == CAPSULE else 1.0
    wide = max(1.0, s[i, 15]) if tags[i, 0] == CONE else 1.0
    v0, v1, u0, u1 = inf, -inf, inf, -inf
    for corner in range(8):
        a = s[i, 12] * wide * (1.0 if corner & 1 else -1.0)
        b = s[i, 13] * reach * (1.0 if corner & 2 else -1.0)
        c = s[i, 14] * wide * (1.0 if corner & 4 else -1.0)
        x = s[i, 0] - eye[0] + a * s[i, 3] + b * s[i, 6] + c * s[i, 9]
        y = s[i, 1] - eye[1] + a * s[i, 4] + b * s[i, 7] + c * s[i, 10]
        z = s[i, 2] - eye[2] + a * s[i, 5] + b * s[i, 8] + c * s[i, 11]
        ahead = -(cam[0, 2] * x + cam[1, 2] * y + cam[2, 2] * z)
        if ahead < 0.01:
            return 0, height, 0, width
        u = width / 2 + f * (cam[0, 0] * x + cam[1, 0] * y + cam[2, 0] * z) / ahead
        v = height / 2 - f * (cam[0, 1] * x + cam[1, 1] * y + cam[2, 1] * z) / ahead
        u0, u1, v0, v1 = min(u0, u), max(u1, u), min(v0, v), max(v1, v)
    # Clamp as floats: a corner far outside would overflow an int.
    return (
        int(min(max(np.floor(v0), 0.0), height)),
        int(min(max(np.floor(v1) + 1.0, 0.0), height)),
        int(min(max(np.floor(u0), 0.0), width)),
        int(min(max(np.floor(u1) + 1.0, 0.0), width)),
    )


@entry
def cast(s, tags, eye, cam, height, width, f):
    """Return the first hits at pixel centres: z-depth [H, W] (sky: inf), solid [H, W] (sky: -1), normal [H, W, 3]."""
    depth = np.full((height, width), inf)
    solid = np.full((height, width), -1, np.int64)
    normal = np.zeros((height, width, 3))
    for i in range(len(s)):
        v0, v1, u0, u1 = _window(s, tags, i, eye, cam, height, width, f)
        ox, oy, oz = _local(s, i, eye[0] - s[i, 0], eye[1] - s[i, 1], eye[2] - s[i, 2])
        # The camera's axes in local coordinates: a pixel's ray is a sum of three vectors.
        ax, ay, az = _local(s, i, cam[0, 0], cam[1, 0], cam[2, 0])
        bx, by, bz = _local(s, i, cam[0, 1], cam[1, 1], cam[2, 1])
        cx, cy, cz = _local(s, i, cam[0, 2], cam[1, 2], cam[2, 2])
        for v in range(v0, v1):
            y = (height / 2 - v - 0.5) / f
            rx, ry, rz = y * bx - cx, y * by - cy, y * bz - cz
            for u in range(u0, u1):
                x = (u + 0.5 - width / 2) / f
                if tags[i, 0] == PLANE:  # most rays see a plane, so it has a shorter computation
                    t, nx, ny, nz = _hit_plane(oy, x * ay + ry, NEAR)
                else:
                    t, nx, ny, nz = _hit(tags[i, 0], s[i, 15], ox, oy, oz, x * ax + rx, x * ay + ry, x * az + rz, NEAR)
                if t < depth[v, u]:
                    depth[v, u], solid[v, u] = t, i
                    normal[v, u, 0], normal[v, u, 1], normal[v, u, 2] = nx, ny, nz
    for v in range(height):  # convert only the normals of the nearest hits to world coordinates
        for u in range(width):
            i = solid[v, u]
            if i >= 0:
                nx, ny, nz = normal[v, u, 0], normal[v, u, 1], normal[v, u, 2]
                normal[v, u, 0], normal[v, u, 1], normal[v, u, 2] = _world_normal(s, i, nx, ny, nz)
    return depth, solid, normal


@entry
def spheres(s, tags, casts):
    """Return the bounding sphere and the range of solids of each object, [K, 6]; radius 0 if it casts no shadow."""
    count = len(casts)
    out = np.zeros((count, 6))
    out[:, 4] = len(s)
    for i in range(len(s)):
        k = tags[i, 1]
        out[k, 4], out[k, 5] = min(out[k, 4], i), max(out[k, 5], i + 1)
    for k in range(count):
        first, last = int(out[k, 4]), int(out[k, 5])
        if not casts[k]:
            continue
        for i in range(first, last):
            for c in range(3):
                out[k, c] += s[i, c] / (last - first)
        for i in range(first, last):
            gap = sqrt((s[i, 0] - out[k, 0]) ** 2 + (s[i, 1] - out[k, 1]) ** 2 + (s[i, 2] - out[k, 2]) ** 2)
            out[k, 3] = max(out[k, 3], gap + s[i, 33])
    return out


@jit
def _misses(x, y, z, radius, lx, ly, lz, far):
    """Return whether the ray from the origin along unit l, up to far, misses the sphere at (x, y, z)."""
    along = x * lx + y * ly + z * lz
    return along < -radius or along > far + radius or x * x + y * y + z * z - along * along > radius * radius


@jit
def _blocked(s, tags, bound, px, py, pz, lx, ly, lz, far):
    """Return whether anything is between p and p + far * l, for unit l."""
    for k in range(len(bound)):
        radius = bound[k, 3]
        if radius == 0.0 or _misses(bound[k, 0] - px, bound[k, 1] - py, bound[k, 2] - pz, radius, lx, ly, lz, far):
            continue
        for i in range(int(bound[k, 4]), int(bound[k, 5])):
            if s[i, 23] > 0.0:  # a lamp does not block its own light
                continue
            x, y, z = px - s[i, 0], py - s[i, 1], pz - s[i, 2]
            if _misses(-x, -y, -z, s[i, 33], lx, ly, lz, far):
                continue
            ox, oy, oz = _local(s, i, x, y, z)
            dx, dy, dz = _local(s, i, lx, ly, lz)
            t, _, _, _ = _hit(tags[i, 0], s[i, 15], ox, oy, oz, dx, dy, dz, NEAR)
            if t < far:
                return True
    return False


@entry
def lit(s, tags, bound, depth, solid, normal, eye, cam, f, light, w, blur):
    """Return [H, W], 1 where the light reaches the point seen at a pixel, else 0.

    The light is moved within each 2x2 block of pixels, so that averaging the block softens the shadow's rim.
    """
    height, width = depth.shape
    out = np.zeros((height, width))
    for v in range(height):
        for u in range(width):
            t = depth[v, u]
            if t == inf:
                continue
            if u & 1 != v & 1 and solid[v, u] == solid[v, u ^ 1]:
                continue  # filled in below from its neighbour in the block
            x, y = (u + 0.5 - width / 2) / f, (height / 2 - v - 0.5) / f
            nx, ny, nz = normal[v, u, 0], normal[v, u, 1], normal[v, u, 2]
            lift = 2e-3 + 1e-4 * t
            px = eye[0] + t * (cam[0, 0] * x + cam[0, 1] * y - cam[0, 2]) + lift * nx
            py = eye[1] + t * (cam[1, 0] * x + cam[1, 1] * y - cam[1, 2]) + lift * ny
            pz = eye[2] + t * (cam[2, 0] * x + cam[2, 1] * y - cam[2, 2]) + lift * nz
            du, dv = blur * ((u & 1) - 0.5), blur * ((v & 1) - 0.5)
            lx, ly, lz = light[0] + du - w * px, light[1] - w * py, light[2] + dv - w * pz
            far = sqrt(lx * lx + ly * ly + lz * lz)
            lx, ly, lz = lx / far, ly / far, lz / far
            if nx * lx + ny * ly + nz * lz <= 0.0:
                continue
            if not _blocked(s, tags, bound, px, py, pz, lx, ly, lz, far if w > 0.0 else inf):
                out[v, u] = 1.0
    for v in range(height):
        for u in range(width):
            if u & 1 != v & 1 and solid[v, u] == solid[v, u ^ 1]:
                out[v, u] = out[v, u ^ 1]
    return out
