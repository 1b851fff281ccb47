"""Runs as one .zip file: what it lists is what it holds, by hashes, and nothing in it is executed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from ..base.errors import UsageError, one_line, shorten
from ..base.files import replace_folder, sha256_file, write_output
from ..base.names import check_name
from ..runs import file_names
from ..runs.find import locate_runs
from ..runs.session import versions
from ..runs.type_check import decode
from .rescoring import SubmissionError
from .run_checks import Checked, check_run

FORMAT = 1
CONTENTS = "submission.json"
RUNS, CODE = "runs", "code"
MOST_BYTES = 64 * 2**20  # of one file in it; real ones have less than one MB
MOST_FILES = 100_000
NAME = re.compile(r"[^/\\\x00-\x1f:]+(/[^/\\\x00-\x1f:]+)*")  # of a file below a run's folder


class RunEntry(TypedDict):
    """One run: its folder, scenario/method/name, and the sha256 of each of its files."""

    folder: str
    files: dict[str, str]


class Contents(TypedDict):
    """What a submission holds, and who made it with which version."""

    format: int
    fmtlbench: str
    by: str | None
    runs: list[RunEntry]


def pack(paths: Iterable[Path], file: Path, by: str | None = None) -> list[Checked]:
    """Check every finished run below the paths, and write them all into one file; return them.

    Raises:
        SubmissionError: One of them would not be accepted, or is not finished; nothing was written then.
    """
    if by is not None:
        check_name(by, "person or group", "--by")
    found, _ = locate_runs(paths)
    runs = [check_run(folder) for folder, _ in found]
    entries: list[RunEntry] = []
    sources: dict[str, Path] = {}
    for run in runs:
        folder = f"{run.config.scenario.name}/{run.config.algorithm.name}/{run.folder.name}"
        if any(entry["folder"] == folder for entry in entries):
            raise SubmissionError(f"{run.folder}: another run given has the same name, {folder}; give one of them")
        files = _list_files(run)
        entries.append({"folder": folder, "files": {name: sha256_file(path) for name, path in sorted(files.items())}})
        sources |= {f"{RUNS}/{folder}/{name}": path for name, path in files.items()}
    contents: Contents = {"format": FORMAT, "fmtlbench": versions()["fmtlbench"], "by": by, "runs": entries}
    write_output(file, lambda path: _write(path, contents, sources))
    return runs


def _list_files(run: Checked) -> dict[str, Path]:
    """Return the files of a run that are packed, by their names below its folder."""
    names = [name for name in file_names.RECORDS if (run.folder / name).is_file()]
    files = {name: run.folder / name for name in names}
    for own in run.own:
        inside = run.folder / CODE / own.name  # of a run that was unpacked from a submission itself
        path = inside if inside.is_file() else own.path
        if not path.is_file() or sha256_file(path) != own.sha256:
            raise SubmissionError(f"{run.folder}: {own.path}, which it was trained by, is not there as it was then")
        files[f"{CODE}/{own.name}"] = path
    return files


def _write(path: Path, contents: Contents, sources: dict[str, Path]) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        _add(packed, CONTENTS, (json.dumps(contents, indent=1, ensure_ascii=False) + "\n").encode())
        for name, source in sorted(sources.items()):
            _add(packed, name, source.read_bytes())


def _add(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    # Dated 1980, whenever it is written: the same runs give the same bytes.
    packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def verify(file: Path, target: Path | None = None) -> tuple[Contents, list[tuple[RunEntry, Checked | SubmissionError]]]:
    """Check a submission: the file itself, then run by run; unpack the runs below `target` if all is as it should be.

    Returns:
        What it says of itself, and for each run what was found, or why it is refused.

    Raises:
        SubmissionError: The file itself is not what it should be, or `target` has another run of the same name.
    """
    with tempfile.TemporaryDirectory(prefix="fmtlbench-") as place:
        with _opened(file) as packed:
            contents = _read_contents(file, packed)
            _extract(file, packed, contents, Path(place))
        found = [(entry, _check(Path(place) / entry["folder"], entry)) for entry in contents["runs"]]
        if target is not None and not any(isinstance(outcome, SubmissionError) for _, outcome in found):
            _move(Path(place), target, contents["runs"])
    return contents, found


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    if not file.is_file():
        raise UsageError(f"{file}: {'not a file' if file.exists() else 'no such file'}; expected a submission")
    try:
        with zipfile.ZipFile(file) as packed:
            yield packed
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise SubmissionError(f"{file}: no submission, or damaged: {shorten(one_line(error))}") from None


def _read_contents(file: Path, packed: zipfile.ZipFile) -> Contents:
    """Read what the file says it holds; refuse a list that is no list of runs, or not that of the files in it."""
    members = packed.infolist()
    sizes = {member.filename: member.file_size for member in members}
    if CONTENTS not in sizes:
        raise SubmissionError(f"{file}: no submission: no {CONTENTS} in it")
    if len(sizes) < len(members) or len(sizes) > MOST_FILES:
        raise SubmissionError(f"{file}: {'a file is in it twice' if len(sizes) < len(members) else 'too many files'}")
    large = [name for name, size in sizes.items() if size > MOST_BYTES]
    if large:
        raise SubmissionError(f"{file}: {large[0]!r:.80} unpacks to more than {MOST_BYTES} bytes")
    try:
        contents, wrong = decode(packed.read(CONTENTS), Contents)
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{file}: {CONTENTS} cannot be read: {error}") from None
    number = contents.get("format") if isinstance(contents, dict) else None
    if type(number) is int and number > FORMAT:
        raise SubmissionError(f"{file}: has format {number}, newer than this version's {FORMAT}; update fmtlbench")
    if wrong:
        raise SubmissionError(f"{file}: {CONTENTS}: {wrong}")
    listed = [f"{RUNS}/{entry['folder']}/{name}" for entry in contents["runs"] for name in entry["files"]]
    for name in listed:
        if not _is_inside(name):
            raise SubmissionError(f"{file}: {name!r:.80} is no name of a file of a run")
    if strange := {*listed} ^ (sizes.keys() - {CONTENTS}):
        state = "listed, but not in it" if min(strange) in listed else "in it, but not listed"
        raise SubmissionError(f"{file}: {min(strange)!r:.80} is {state}")
    if not contents["runs"]:
        raise SubmissionError(f"{file}: no run in it")
    return contents


def _is_inside(name: str) -> bool:
    """Whether a file is one of a run's, in a folder scenario/method/name, and cannot lead anywhere else."""
    parts = name.split("/")
    plain = NAME.fullmatch(name) is not None and not any(part.startswith(".") or part != part.strip() for part in parts)
    return plain and len(parts) >= 5 and (parts[4] == CODE or parts[4:] == [Path(name).name])


def _extract(file: Path, packed: zipfile.ZipFile, contents: Contents, place: Path) -> None:
    for entry in contents["runs"]:
        for name, sha256 in entry["files"].items():
            content = packed.read(f"{RUNS}/{entry['folder']}/{name}")
            if hashlib.sha256(content).hexdigest() != sha256:
                raise SubmissionError(f"{file}: {entry['folder']}/{name} has changed since it was packed")
            path = place / entry["folder"] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _check(folder: Path, entry: RunEntry) -> Checked | SubmissionError:
    """Check one unpacked run; return the reason where it is refused."""
    known = {*file_names.RECORDS}
    try:
        if strangers := [name for name in entry["files"] if name not in known and not name.startswith(f"{CODE}/")]:
            raise SubmissionError(f"{strangers[0]}: no file of a run's records")
        run = check_run(folder)
        expected = f"{run.config.scenario.name}/{run.config.algorithm.name}"
        if entry["folder"].rpartition("/")[0] != expected:
            raise SubmissionError(f"its config is of {expected}")
        own = {f"{CODE}/{file.name}": file.sha256 for file in run.own}
        if own != {name: sha256 for name, sha256 in entry["files"].items() if name.startswith(f"{CODE}/")}:
            raise SubmissionError(f"{CODE}/: not the files that config.yaml says it was trained by")
        return run
    except SubmissionError as error:
        return SubmissionError(str(error).removeprefix(f"{folder}: ").replace(str(folder.parents[2]), ""))


def _move(place: Path, target: Path, entries: Sequence[RunEntry]) -> None:
    """Put the runs below a folder; refuse where other runs lie in their places, before anything is written."""
    new = []
    for entry in entries:
        folder = target / entry["folder"]
        if not folder.exists():
            new.append(entry)
        elif any(not (folder / n).is_file() or sha256_file(folder / n) != sha for n, sha in entry["files"].items()):
            raise SubmissionError(f"{folder}: another run of this name is there; nothing was unpacked")
    for entry in new:
        with replace_folder(target / entry["folder"]) as folder:
            shutil.copytree(place / entry["folder"], folder, dirs_exist_ok=True)
