"""Read one file of an archive, or raise an error that names the file and what is wrong with it.

Nothing is repaired or skipped: a label that violates its format would give wrong training and wrong scores.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import FmtlbenchError, UsageError
from ...base.files import check_regular, read_whole
from ...base.words import say_count
from ...tasks import LabelError, LabelKind

Shape = tuple[int, int]  # height, width
NUMBERS = "biuf"  # kinds of arrays: yes or no, whole numbers with and without sign, floating-point
_CHUNK = struct.Struct(">I4s")  # length and kind, the first bytes of every PNG chunk


class DamagedFileError(FmtlbenchError):
    """A file of a dataset that is missing, unreadable or not in the expected format."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem

    def __reduce__(self):  # it may come out of a worker process
        return type(self), (self.path, self.problem)


def read_ids(path: Path) -> list[str]:
    """Read image ids, one per line; Windows line ends, a byte-order mark and blank lines are accepted."""
    try:
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DamagedFileError(path, "not a UTF-8 text file, expected one image id per line") from None
    except OSError as error:
        raise DamagedFileError(path, _describe_error(error)) from None
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word:
            continue
        if not re.fullmatch(r"\w[\w.-]*", word):
            raise DamagedFileError(path, f"line {number}: {word[:60]!r} is not an image id")
        if word in lines:
            raise DamagedFileError(path, f"line {number}: {word} is listed twice, first in line {lines[word]}")
        lines[word] = number
    if not lines:
        raise DamagedFileError(path, "lists no image")
    return list(lines)


def image_shape(path: Path) -> Shape:
    """Return a picture's height and width, reading its header alone."""
    with _open_picture(path, path) as picture:
        return picture.height, picture.width


def read_image(path: Path) -> np.ndarray:
    """Read a picture as [H, W, 3] uint8; a grey one gets three equal channels."""
    return _read_pixels(path, ("RGB", "L"), convert="RGB")


def read_classes(path: Path, shape: Shape | None, highest: int, ignore: bool) -> np.ndarray:
    """Read class numbers [H, W] uint8 from a grey or palette PNG: 0 to `highest`, and 255 if `ignore` is true.

    Without a `shape` any size is accepted.
    """
    labels = fitting(path, _read_pixels(path, ("L", "P")), shape)
    wrong = labels > highest
    if ignore:
        wrong &= labels != 255
    if wrong.any():
        also = " or 255 (ignore)" if ignore else ""
        raise DamagedFileError(
            path, f"class {labels[wrong][0]} in {_say_pixel_count(wrong)}, expected 0 to {highest}{also}"
        )
    return labels


def read_grey(path: Path, shape: Shape | None) -> np.ndarray:
    """Read a grey or black-and-white PNG as [H, W] uint8."""
    return fitting(path, _read_pixels(path, ("L", "1"), convert="L"), shape)


def read_colour(path: Path, shape: Shape | None) -> np.ndarray:
    """Read a colour PNG as [H, W, 3] uint8, refusing other modes, because its values are codes and not colours."""
    return fitting(path, _read_pixels(path, ("RGB",)), shape)


def read_floats(path: Path, channels: int | None = None) -> np.ndarray:
    """Read a .npy file of any floating type as [H, W] or [H, W, channels] float32; refuse NaN and infinity."""
    array = read_npy(path, channels)
    if array.dtype.kind != "f":
        raise DamagedFileError(path, f"numbers of type {array.dtype}, expected floating-point")
    array = array.astype(np.float32)
    wrong = ~np.isfinite(array)
    if wrong.any():
        raise DamagedFileError(
            path, f"NaN or infinity in {_say_pixel_count(wrong if channels is None else wrong.any(-1))}"
        )
    return array


def read_npy(path: Path, channels: int | None = None) -> np.ndarray:
    """Read the array of a .npy file, [H, W] or [H, W, channels]."""
    array = _load_npy(path)
    if array.ndim != (2 if channels is None else 3) or (channels and array.shape[-1] != channels):
        wanted = "[H, W]" if channels is None else f"[H, W, {channels}]"
        raise DamagedFileError(path, f"shape {list(array.shape)}, expected {wanted}")
    return array


def _load_npy(path: Path) -> np.ndarray:
    """Read the numbers of a .npy file; pickled objects are never loaded."""
    try:
        check_regular(path)
        array = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged header can raise nearly anything
        raise DamagedFileError(path, f"cannot be read as .npy: {_describe_error(error)}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise DamagedFileError(path, "an .npz archive, expected one .npy array")
    if array.dtype.kind not in NUMBERS:
        raise DamagedFileError(path, f"values of type {array.dtype}, expected numbers")
    return array


def read_mat(path: Path, variable: str) -> np.ndarray:
    """Read one variable of a MATLAB file (version 5)."""
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=[variable])
        if variable not in content:
            there = ", ".join(sorted(k for k in loadmat(path) if not k.startswith("__"))) or "nothing"
            raise DamagedFileError(path, f"no variable {variable!r} in it, it holds {there}")
    except DamagedFileError:
        raise
    except Exception as error:  # a damaged file can raise nearly anything
        raise DamagedFileError(path, f"cannot be read as a MATLAB file: {_describe_error(error)}") from None
    return content[variable]


def read_array(path: Path) -> np.ndarray:
    """Return the array in a .npy file or in any picture, unchanged."""
    if path.suffix.lower() == ".npy":
        return _load_npy(path)
    try:
        with _open_picture(path, BytesIO(read_whole(path))) as picture:
            return np.array(picture)
    except DamagedFileError:
        raise
    except Exception as error:  # decoders raise all sorts of things for damaged files
        raise DamagedFileError(path, f"cannot be read: {_describe_error(error)}") from None


def read_label_file(kind: LabelKind, path: Path, classes: int | None) -> np.ndarray:
    """Read a file with a label of a kind, as a dataset gives it; `classes`: how many the task has, if any."""
    try:
        return kind.read_label(read_array(path), classes, path.suffix.lower() == ".png")
    except LabelError as error:
        raise DamagedFileError(path, str(error)) from None


def list_by_id(folder: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """Return image id → file, of the files in a folder that have one of the suffixes; refuse two of one image."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in suffixes or path.name.startswith("."):
            continue
        if path.stem in found:
            raise UsageError(f"two files for image {path.stem}: {found[path.stem]} and {path}")
        found[path.stem] = path
    return found


def read_numbers(path: Path) -> dict[str, int]:
    """Read a JSON object that maps names to whole numbers."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DamagedFileError(path, _describe_error(error)) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON
        raise DamagedFileError(path, f"not JSON: {_describe_error(error)}") from None
    if not isinstance(content, dict) or not all(type(value) is int for value in content.values()):
        raise DamagedFileError(path, "expected a JSON object of names and whole numbers")
    return content


def fitting(path: Path, array: np.ndarray, shape: Shape | None) -> np.ndarray:
    """Return `array`; refuse it if its height and width differ from `shape` (None accepts any)."""
    if shape is not None and array.shape[:2] != shape:
        ours, image = ("×".join(map(str, s)) for s in (array.shape[:2], shape))
        raise DamagedFileError(path, f"{ours} pixels (height×width), but its image has {image}")
    return array


def nearest_resize(path: Path, array: np.ndarray, shape: Shape | None) -> np.ndarray:
    """Return `array` sampled to `shape` by nearest pixel; refuse one with another aspect ratio."""
    if shape is None:
        return array
    height, width = array.shape[:2]
    if abs(height * shape[1] - width * shape[0]) > max(height, width, *shape):
        return fitting(path, array, shape)
    rows, columns = (((np.arange(n) + 0.5) * m / n).astype(np.intp) for n, m in zip(shape, (height, width)))
    return array[rows[:, None], columns]


def _read_pixels(path: Path, modes: tuple[str, ...], convert: str | None = None) -> np.ndarray:
    try:
        content = read_whole(path)
    except OSError as error:
        raise DamagedFileError(path, f"cannot be read as a picture: {_describe_error(error)}") from None
    with _open_picture(path, BytesIO(content)) as picture:
        if picture.mode not in modes:
            raise DamagedFileError(path, f"a picture of mode {picture.mode}, expected {' or '.join(modes)}")
        try:
            if picture.format == "PNG":
                _verify_checksums(memoryview(content))
            return np.array(picture.convert(convert) if convert not in (None, picture.mode) else picture)
        except Exception as error:  # decoders raise all sorts of things for damaged files
            raise DamagedFileError(path, f"cannot be decoded: {_describe_error(error)}") from None


def _verify_checksums(png: memoryview) -> None:
    """Compare the checksums of a PNG, which decoding does not, so that a damaged label is detected."""
    at, kind = 8, b""
    while kind != b"IEND":
        if at + 12 > len(png):
            raise ValueError("cut short")
        length, kind = _CHUNK.unpack_from(png, at)
        end = at + 8 + length
        if end + 4 > len(png):
            raise ValueError("cut short")
        if zlib.crc32(png[at + 4 : end]) != int.from_bytes(png[end : end + 4], "big"):
            raise ValueError(f"wrong checksum of its part {kind.decode('latin-1')!r}")
        at = end + 4


def _open_picture(path: Path, file: Path | BytesIO):
    from PIL import Image

    try:
        return Image.open(file)
    except Exception as error:
        raise DamagedFileError(path, f"cannot be read as a picture: {_describe_error(error)}") from None


def _describe_error(error: Exception) -> str:
    """Return an exception's message in one line, without the path, which the caller names already."""
    text = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    return "not a picture" if "cannot identify image file" in text else text


def _say_pixel_count(mask: np.ndarray) -> str:
    return say_count(int(np.count_nonzero(mask)), "pixel")
