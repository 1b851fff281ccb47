"""Compute, in compiled loops, the colours of textures, sky and light.

Solid rows and tags are as in rays.py; for the reason given there, no function of another compiled file is called.
"""

from __future__ import annotations

from math import exp, floor, sqrt

import numpy as np

from ....base.jit import entry, jit
from .scene import BOOKS, BRICKS, FACADE, GRAIN, MOTTLED, PLAIN, PLANE, PLANKS, STRIPES, TILES


@jit
def _hash(i, j, k):
    n = (i * 374761393 + j * 668265263 + k * 1440662683) & 0xFFFFFFFF
    n = ((n ^ (n >> 13)) * 1274126177) & 0xFFFFFFFF
    return ((n ^ (n >> 16)) & 0xFFFFFF) / 16777216.0


@jit
def _noise(x, y, z):
    """Return value noise in [0, 1]."""
    i, j, k = floor(x), floor(y), floor(z)
    a, b, c = x - i, y - j, z - k
    a, b, c = a * a * (3 - 2 * a), b * b * (3 - 2 * b), c * c * (3 - 2 * c)
    total = 0.0
    for corner in range(8):
        p, q, r = corner & 1, (corner >> 1) & 1, corner >> 2
        weight = (a if p else 1 - a) * (b if q else 1 - b) * (c if r else 1 - c)
        total += weight * _hash(i + p, j + q, k + r)
    return total


@jit
def _pattern(pattern, scale, x, y, z, nx, ny, nz, salt):
    """Return the weight of colour b; x, y, z are metres from the centre, the normal is in local coordinates."""
    if pattern == PLAIN:
        return 0.0
    if pattern == MOTTLED:
        q = 2.7 * scale
        return 0.65 * _noise(x * scale + salt, y * scale, z * scale) + 0.35 * _noise(x * q, y * q + salt, z * q)
    if abs(ny) > 0.7:  # in-plane coordinates of the face that was hit
        u, v = x * scale, z * scale
    elif abs(nx) > 0.7:
        u, v = z * scale, y * scale
    else:
        u, v = x * scale, y * scale
    if pattern == STRIPES:
        return 1.0 if u - floor(u) < 0.5 else 0.0
    if pattern == GRAIN:
        return _noise(u * 0.7 + salt, v * 6.0, 0.5)
    if pattern == TILES:
        line = 1.0 if min(u - floor(u), v - floor(v)) < 0.07 else 0.0
        return max(line, 0.35 * _hash(floor(u), floor(v), salt))
    if pattern == FACADE:  # a grid of dark windows
        a, b = u - floor(u), v - floor(v)
        return 1.0 if abs(ny) < 0.7 and 0.25 < a < 0.75 and 0.2 < b < 0.8 else 0.0
    if pattern == BOOKS:  # upright spines in rows, each with its own tone
        return _hash(floor(u * 3.0), floor(v), salt)
    shift = 0.5 if pattern == BRICKS and floor(v) & 1 else 0.0
    long = u * (0.5 if pattern == BRICKS else 0.18) + shift + (_hash(floor(v), 3, salt) if pattern == PLANKS else 0)
    line = 1.0 if v - floor(v) < 0.12 or (pattern == BRICKS and long - floor(long) < 0.06) else 0.0
    return max(line, 0.5 * _hash(floor(long), floor(v), salt))


@jit
def _sky(x, y, z, zenith, horizon, clouds, salt, out):
    up = max(y, 0.0) / sqrt(x * x + y * y + z * z)
    blend = up / (up + 0.25)
    stretch = 1.5 / (up + 0.15)
    puff = 0.6 * _noise(x * stretch + salt, 4.0 * up, z * stretch) + 0.4 * _noise(
        x * stretch * 2.3, 9.0 * up + salt, z * stretch * 2.3
    )
    white = min(max((puff - 1.0 + clouds) * 3.0, 0.0), 0.9)
    for c in range(3):
        out[c] = (1 - white) * (blend * zenith[c] + (1 - blend) * horizon[c]) + white


@entry
def paint(
    s,
    tags,
    depth,
    solid,
    normal,
    sun,
    eye,
    cam,
    f,
    salt,
    light,
    w,
    strength,
    tint,
    ambient,
    fill,
    zenith,
    horizon,
    clouds,
):
    """Return the linear colour of every 2x2 block of rays, [H/2, W/2, 3]; `sun` is the result of rays.lit."""
    height, width = depth.shape
    out = np.zeros((height // 2, width // 2, 3))
    sky = np.zeros(3)
    planes = [i for i in range(len(s)) if tags[i, 0] == PLANE]
    for v in range(height):
        for u in range(width):
            x, y = (u + 0.5 - width / 2) / f, (height / 2 - v - 0.5) / f
            dx = cam[0, 0] * x + cam[0, 1] * y - cam[0, 2]
            dy = cam[1, 0] * x + cam[1, 1] * y - cam[1, 2]
            dz = cam[2, 0] * x + cam[2, 1] * y - cam[2, 2]
            t, i = depth[v, u], solid[v, u]
            if i < 0:
                _sky(dx, dy, dz, zenith, horizon, clouds, salt, sky)
                for c in range(3):
                    out[v >> 1, u >> 1, c] += 0.25 * sky[c]
                continue
            px, py, pz = eye[0] + t * dx, eye[1] + t * dy, eye[2] + t * dz
            nx, ny, nz = normal[v, u, 0], normal[v, u, 1], normal[v, u, 2]
            x, y, z = px - s[i, 0], py - s[i, 1], pz - s[i, 2]
            b = _pattern(
                tags[i, 3],
                s[i, 22],
                s[i, 3] * x + s[i, 4] * y + s[i, 5] * z,
                s[i, 6] * x + s[i, 7] * y + s[i, 8] * z,
                s[i, 9] * x + s[i, 10] * y + s[i, 11] * z,
                s[i, 3] * nx + s[i, 4] * ny + s[i, 5] * nz,
                s[i, 6] * nx + s[i, 7] * ny + s[i, 8] * nz,
                s[i, 9] * nx + s[i, 10] * ny + s[i, 11] * nz,
                salt + 7 * tags[i, 1],
            )
            if tags[i, 3] != PLAIN:  # fade details finer than a pixel, which would give noise
                fine = 1.5 * s[i, 22] * t / f
                keep = 1.0 / (1.0 + fine * fine)
                b = 0.35 + (b - 0.35) * keep
            near = 1.0  # ambient light is weaker in corners and near the ground
            for k in planes:
                if k != i:
                    gap = abs(s[k, 6] * (px - s[k, 0]) + s[k, 7] * (py - s[k, 1]) + s[k, 8] * (pz - s[k, 2]))
                    near *= 1.0 - 0.3 / (1.0 + 20.0 * gap * gap)
            lx, ly, lz = light[0] - w * px, light[1] - w * py, light[2] - w * pz
            far = sqrt(lx * lx + ly * ly + lz * lz)
            direct = sun[v, u] * strength * max((nx * lx + ny * ly + nz * lz) / far, 0.0)
            if w > 0.0:
                direct /= 1.0 + 0.12 * far * far
            soft = max(nx * fill[0] + ny * fill[1] + nz * fill[2], 0.0)
            around = near * ambient * (0.72 + 0.18 * ny + 0.35 * soft)
            haze = 0.0 if w > 0.0 else 1.0 - exp(-t / 90.0)
            for c in range(3):
                colour = (1 - b) * s[i, 16 + c] + b * s[i, 19 + c]
                shade = colour * (direct * tint[c] + around)
                shade = s[i, 23] * colour + (1 - s[i, 23]) * shade
                out[v >> 1, u >> 1, c] += 0.25 * ((1 - haze) * shade + haze * horizon[c])
    return out
