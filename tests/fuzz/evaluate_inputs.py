"""Folders of predictions and labels of which something is wrong, for `fmtlbench score`."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
from cases import ODD_NUMBERS, Case, Fifo, Link
from hypothesis import strategies as st
from PIL import Image
from robots import SIZE, good_array, npy, png

IDS = ("0007", "0012")
TASKS = ("semseg", "human_parts", "depth", "normals", "sal", "edge", "disparity")


CHANGES = {
    "nothing": lambda a: a,
    "times 1000": lambda a: a * 1000.0,
    "by 1000": lambda a: a / 1000,
    "negative": lambda a: -a.astype(np.float32),
    "zero": lambda a: a * 0,
    "constant": lambda a: np.full_like(a, a.flat[0]),
    "unlabelled": lambda a: np.full_like(a, 255),
    "NaN": lambda a: np.where(np.arange(a.size).reshape(a.shape) % 7, a, np.nan),
    "infinity": lambda a: np.where(np.arange(a.size).reshape(a.shape) % 7, a, np.inf),
    "huge": lambda a: np.full(a.shape, 1e300),
    "complex": lambda a: a.astype(np.complex64) + 1j,
    "bool": lambda a: a > 0,
    "text": lambda a: a.astype(str),
    "bytes": lambda a: a.astype("S8"),
    "objects": lambda a: a.astype(object),
    "dates": lambda a: a.astype(np.int64).astype("datetime64[s]"),
    "record": lambda a: np.zeros(SIZE, [("x", np.float32), ("y", np.int8)]),
    "half": lambda a: a.astype(np.float16),
    "double": lambda a: a.astype(np.float64),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "int64": lambda a: a.astype(np.int64),
    "int64, far": lambda a: a.astype(np.int64) + 2**40,
    "uint16": lambda a: a.astype(np.uint16),
    "int8": lambda a: a.astype(np.int8) - 100,
    "coded": lambda a: ((a + 1) * 127.5).astype(np.uint8),
    "percent": lambda a: a * 100.0,
    "shorter": lambda a: a[:-3],
    "turned": lambda a: np.swapaxes(a, 0, 1),
    "flat": lambda a: a.reshape(-1),
    "empty": lambda a: a[:0],
    "one more axis": lambda a: a[None],
    "channels first": lambda a: np.moveaxis(a, -1, 0),
    "two channels": lambda a: np.stack([a, a], -1),
    "many axes": lambda a: a.reshape((1,) * 20 + a.shape),
    "scalar": lambda a: np.float32(3),
    "Fortran": np.asfortranarray,
}


def _bomb() -> bytes:
    """A PNG of a few hundred bytes that says it has 900 million pixels."""
    content = bytearray(png(np.zeros((8, 8), np.uint8)))
    content[16:24] = (30_000).to_bytes(4, "big") * 2
    return bytes(content)


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(SIZE, np.float32)))
    return file.getvalue()


def _header(shape: str, dtype: str = "<f4") -> bytes:
    """A .npy file that says it holds more than it does."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 64


INSTEAD = (
    b"", b"text", b"\x93NUMPY", b"\x93NUMPY\x09\x00" + b"\0" * 50, pickle.dumps([1, 2]), _zip(), _bomb(),
    b"\x89PNG\r\n", _header("(100000, 100000)"), _header("(1000000000000,)"), _header("(-1, 4)"), _header("(4,)", "|O"),
    b"GIF89a", _header("(" * 500), None, Link("loop"), Link("."), Link("/dev/zero"), Fifo(),
)  # fmt: skip
PICTURES = ("L", "P", "1", "RGB", "RGBA", "LA", "I;16", "I", "F", "CMYK")
LISTS = (b"", b"\n\n", b"0007\n0012\n", b"0007\n", b"0007\n0007\n", b"\xff\xfe\x00", b"\x00", b"../0007\n", b"9999\n",
         b"0007 0012", b"0007\r\n0012\r\n", b"\xef\xbb\xbf0007\n", b"x" * 10**6, b"a\n" * 10**6,
         b"\n".join(b"%d" % i for i in range(200_000)), Link("ids.txt"), Link("."), Fifo())  # fmt: skip


@st.composite
def evaluations(draw):
    """One thing wrong with predictions, labels, ids or options; or nothing."""
    task = draw(st.sampled_from(TASKS))
    files = {f"{side}/{i}.npy": npy(good_array(task, k)) for side in ("pred", "gt") for k, i in enumerate(IDS)}
    argv = ["score", "--task", task, "--pred", "pred", "--gt", "gt", "--dataset", "plain"]
    classes = ["--classes", "5"] if task in ("semseg", "human_parts") else []
    place = draw(st.sampled_from(("pred", "pred", "pred", "gt", "all", "all", "ids", "option", "output")))
    if place in ("pred", "gt", "all"):
        side = draw(st.sampled_from(("pred", "gt"))) if place == "all" else place
        changed = IDS if place == "all" else IDS[:1]
        how = draw(st.sampled_from(("array",) * 4 + ("picture", "instead", "cut")))
        for k, i in enumerate(changed):
            array = good_array(task, k)
            name = f"{side}/{i}.npy"
            if how == "array":
                with np.errstate(all="ignore"):
                    files[name] = npy(CHANGES[draw(st.sampled_from(sorted(CHANGES)))](array))
            elif how == "picture":
                del files[name]
                files[f"{side}/{i}.png"] = picture(draw(st.sampled_from(PICTURES)), array)
            elif how == "cut":
                files[name] = files[name][: draw(st.integers(0, len(files[name])))]
            else:
                suffix = draw(st.sampled_from((".npy", ".npy", ".png")))
                if suffix == ".png":
                    del files[name]
                files[f"{side}/{i}{suffix}"] = draw(st.sampled_from(INSTEAD))
    elif place == "ids":
        files["ids.txt"] = draw(st.sampled_from(LISTS))
        argv += ["--ids", "ids.txt"]
    elif place == "option":
        number = str(draw(st.sampled_from([*ODD_NUMBERS, "x", ""])))[:50]
        words = draw(st.sampled_from((["--classes", number], ["--max-dist", number], ["--absent", "zero"],
                                      ["--option", f"lowest={number}"], ["--option", f"max_dist={number}"],
                                      ["--option", "x"], ["--option", f"thresholds={number}"], ["--split", number],
                                      ["--edge-gt", "seism"], ["--no-nms"])))  # fmt: skip
        classes = [] if "--classes" in words else classes
        argv += words
    else:
        argv += ["-o", draw(st.sampled_from(("out", "pred", "gt/0007.npy", "-", "/dev/null", "\0", "loop")))]
        files["loop"] = Link("loop")
    argv += draw(st.sampled_from(([], ["--json"])))
    return Case("evaluate", tuple(argv + classes), files, lists_first=True)


def picture(mode: str, array: np.ndarray) -> bytes:
    """An image file of a mode that shows an array."""
    grey = (np.abs(array if array.ndim == 2 else array[..., 0]) * 20).astype(np.uint8)
    picture = Image.fromarray(grey).convert("I") if mode == "I;16" else Image.fromarray(grey)
    file = io.BytesIO()
    picture.convert(mode).save(file, "TIFF" if mode in ("I", "F", "CMYK") else "PNG")
    return file.getvalue()
