"""Write files and folders so that a crash at any moment leaves the old one or the new one, never a half.

A name may stand for more than a file. A link is followed: what it points at is replaced, the link stays. A device, a
FIFO and an open descriptor (/dev/stdout) are written to as they are. `-` is the standard output.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .errors import FmtlbenchError, UsageError

STALE_AFTER = 24 * 3600  # seconds; what is unfinished and older than this was left by a killed process

# -- what the user names -----------------------------------------------------------------------------------------------


def is_stdout(path: str | Path | None) -> bool:
    """Return whether an output is the standard output: none was named, or `-`."""
    return path is None or str(path) == "-"


def is_stream(path: str | Path) -> bool:
    """Return whether a name stands for a device, a FIFO or an open descriptor, which is written to, never replaced."""
    try:
        return _kind_of_file(Path(path)) == "stream"
    except (OSError, ValueError):
        return False


def check_output(path: str | Path, flag: str = "-o", make_folder: bool = False) -> Path:
    """Return `path` if a file can be written there, as far as that can be told before the work.

    Args:
        path: as the user gave it.
        flag: what the user gave it with, for messages.
        make_folder: the folder need not be there yet.
    """
    path = Path(path)
    if is_stdout(path):
        return path
    try:
        kind = _kind_of_file(path)
        folder = _follow_link(path).parent
    except ValueError:
        raise UsageError(f"{flag} {str(path)!r}: holds a NUL or another character that no file name can") from None
    except NotADirectoryError:
        raise UsageError(f"{flag} {path}: no folder {path.parent}") from None
    except OSError as error:
        raise FmtlbenchError(f"{flag} {path}: {error.strerror or error}") from None
    if kind not in ("file", "stream", "new"):
        raise UsageError(f"{flag} {path}: {kind}, expected a file")
    if kind == "new" and make_folder:
        check_folder(folder, flag)
    elif kind == "new" and not folder.is_dir():
        raise UsageError(f"{flag} {path}: no folder {folder if path.is_symlink() else path.parent}")
    return path


def check_folder(path: str | Path, flag: str = "-o") -> Path:
    """Return `path` if it is a folder or can become one, as far as that can be told before the work."""
    path = Path(path)
    if is_stdout(path):
        raise UsageError(f"{flag} -: the standard output, expected a folder")
    try:
        for place in (path, *path.absolute().parents):
            kind = _kind_of_file(place)
            if kind == "a folder":
                return path
            if kind != "new" or place.is_symlink():
                what = "a link to nothing" if kind == "new" else "a file" if kind in ("file", "stream") else kind
                within = "" if place == path else f"{place} is "
                raise UsageError(f"{flag} {path}: {within}{what}, expected a folder")
    except ValueError:
        raise UsageError(f"{flag} {str(path)!r}: holds a NUL or another character that no file name can") from None
    except NotADirectoryError:
        raise UsageError(f"{flag} {path}: a file, expected a folder") from None
    except OSError as error:
        raise FmtlbenchError(f"{flag} {path}: {error.strerror or error}") from None
    return path


def write_output(path: str | Path, write: Callable[[Path], None], flag: str = "-o", make_folder: bool = False) -> None:
    """Write a file that the user named, `-` included; if that fails, raise a one-line error and keep the old file.

    Args:
        path: as the user gave it.
        write: fills the file at the path that it is given.
        flag: what the user gave it with, for messages.
        make_folder: create the file's folder if it is not there.
    """
    path = check_output(path, flag, make_folder)
    try:
        if is_stdout(path):
            sys.stdout.flush()
            _write_through(write, lambda source: shutil.copyfileobj(source, sys.stdout.buffer))
            sys.stdout.flush()
            return
        if make_folder:
            _follow_link(path).parent.mkdir(parents=True, exist_ok=True)
        if is_stream(path):  # the bytes are sent to it when the temporary file is complete
            _write_through(write, lambda source: _append_to(path, source))
        else:
            replace_file(path, write)
    except BrokenPipeError:  # the reader has stopped, which is no error
        raise
    except OSError as error:
        raise FmtlbenchError(f"could not write {path}: {error.strerror or error}") from None


def write_output_text(path: str | Path, text: str, flag: str = "-o", make_folder: bool = False) -> None:
    """Write a text as `write_output` does; what UTF-8 cannot encode becomes a question mark."""
    content = text.encode("utf-8", errors="replace")
    write_output(path, lambda temporary: temporary.write_bytes(content), flag, make_folder)


# -- what we name ------------------------------------------------------------------------------------------------------


def replace_file(path: str | Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file in the same folder, which then replaces `path` in one step.

    A stream is refused: nobody reads the other end of one that lies where a file of ours belongs.
    """
    path = Path(path)
    kind = _kind_of_file(path)
    if kind == "stream":
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if kind not in ("file", "new"):
        raise OSError(errno.EISDIR if kind == "a folder" else errno.EINVAL, f"{kind}, expected a file", str(path))
    target = _follow_link(path)
    if kind == "file" and not os.access(target, os.W_OK):  # a folder that may be written would let us replace it
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = target.with_name(f".fmtlbench-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if kind == "file":
            shutil.copymode(target, temporary)
        temporary.replace(target)
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def replace_folder(
    folder: str | Path, *, keeps: Callable[[Path], bool] | None = None, alone: bool = False
) -> Iterator[Path]:
    """Give a temporary folder to fill, which then replaces `folder` as a whole; after a failure the old one is there.

    What killed processes have left is repaired first: a folder that was renamed away and not yet replaced gets its name
    back, and what was never finished is removed.

    Args:
        folder: where the new one shall be; of a link, what it points at. Parents are made.
        keeps: whether a folder that is there when the new one is complete is as good as that; if so, it stays.
        alone: no other process writes here, so what is unfinished is a killed process's, whatever its age.
    """
    folder = Path(folder).resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    _recover(folder, 0 if alone else STALE_AFTER)
    new = folder.with_name(f".{folder.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        new.mkdir()
        yield new
        sync_folder(new)
        if _swap_folders(new, folder, keeps):
            sync_folder(folder.parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)


BYSTANDERS = {".DS_Store", "Thumbs.db"}  # file managers leave them behind


def list_files(folder: Path) -> set[str]:
    """List the files below a folder, and the folders in it that are empty, by their paths from it."""
    found = set()
    for here, folders, names in os.walk(folder):
        inside = Path(here).relative_to(folder)
        found |= {(inside / name).as_posix() for name in names}
        if not names and not folders and Path(here) != folder:
            found.add(inside.as_posix())
    return found


def refuse_strangers(folder: Path, is_ours: Callable[[str], bool], what: str, flag: str = "-o") -> None:
    """Refuse to replace a folder with files in it that we did not write, because they would be gone.

    Args:
        folder: The folder.
        is_ours: Whether a file, by its path from the folder, is one that we wrote.
        what: What is there of ours: "the site".
        flag: How the folder was given.
    """
    there = sorted(list_files(folder))
    strangers = [name for name in there if Path(name).name not in BYSTANDERS and not is_ours(name)]
    if strangers:
        more = f" and {len(strangers) - 3} more" if len(strangers) > 3 else ""
        raise UsageError(
            f"{flag} {folder}: replacing {what} would remove {', '.join(strangers[:3])}{more}, which it did not write; "
            "move them, or give another folder"
        )


def _swap_folders(new: Path, folder: Path, keeps: Callable[[Path], bool] | None) -> bool:
    """Rename the old folder away and the new one to its name; undo the first if the second fails."""
    old = new.with_suffix(".old")
    for _ in range(3):
        if keeps is not None and folder.is_dir() and keeps(folder):
            return False
        with contextlib.suppress(FileNotFoundError):  # there is none, or another process was faster
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            if folder.exists():  # another process put its own there in between
                shutil.rmtree(old, ignore_errors=True)
                continue
            if old.exists():
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
        return True
    raise OSError(errno.EBUSY, "keeps being replaced by another process", str(folder))


def _recover(folder: Path, age: float) -> None:
    """Repair what killed processes have left of replacing `folder`."""
    left = sorted(folder.parent.glob(f".{folder.name}.*.old"))
    if left and not folder.exists():
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            left.pop().rename(folder)
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    remove_stale(folder.parent, f".{folder.name}.*.tmp", age)


def remove_folder(folder: Path) -> None:
    """Remove a folder, if it is there: a kill at any moment leaves the whole of it, or nothing under its name."""
    for left in folder.parent.glob(f".{glob.escape(folder.name)}.*.removed"):
        shutil.rmtree(left, ignore_errors=True)
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        gone = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.removed")
        folder.rename(gone)
        shutil.rmtree(gone)


def remove_stale(folder: Path, pattern: str, age: float = STALE_AFTER) -> None:
    """Delete temporary files and folders that killed processes have left, if they are older than `age` seconds."""
    for left in folder.glob(pattern):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime >= age:
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()


def _kind_of_file(path: Path) -> str:
    """Return what a name stands for, links followed: "file", "stream", "new" (nothing yet), or what is not writable."""
    if _find_descriptor(path) is not None:
        return "stream"
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "new"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return "stream"
    return "a folder" if stat.S_ISDIR(mode) else "a block device" if stat.S_ISBLK(mode) else "a socket"


def _find_descriptor(path: Path) -> int | None:
    """Return the number of the open file that a name such as /dev/stdout stands for; None for other names."""
    ours = (Path(f"/proc/{os.getpid()}/fd"), Path("/dev/fd"))
    for _ in range(40):  # as many links as a kernel follows
        if path.name.isdecimal() and path.parent.resolve() in ours:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _follow_link(path: Path) -> Path:
    """Return the path that a link points at, whether or not it exists; any other path as it is."""
    return path.resolve() if path.is_symlink() else path


def _write_through(write: Callable[[Path], None], send: Callable[[Any], Any]) -> None:
    """Let `write` fill a temporary file, then call `send` with it, open for reading."""
    with tempfile.TemporaryDirectory(prefix="fmtlbench-") as folder:
        whole = Path(folder) / "whole"
        write(whole)
        with whole.open("rb") as source:
            send(source)


def _append_to(stream: Path, source: Any) -> None:
    sys.stdout.flush()  # the stream may be the standard output
    number = _find_descriptor(stream)
    # Not created and not truncated; in an open file, writing continues where its other writers are.
    handle = os.open(stream, os.O_WRONLY) if number is None else os.dup(number)
    with os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut (no-op where folders cannot be opened)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, sort_keys=False, allow_nan=False) + "\n")


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, where reading might never end, by an OSError."""
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # of a folder the system says what it is
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_whole(path: Path) -> bytes:
    """Return the content of a file; an OSError for a pipe or a device."""
    check_regular(path)
    return path.read_bytes()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file, which is read in pieces."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
