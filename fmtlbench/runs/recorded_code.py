"""Which code a run's records name, and which folder the run of a config by some code has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..base.errors import FmtlbenchError
from ..base.stored import DamagedRun
from ..config.request import ANY_CODE, SAME_CODE
from . import file_names
from .code_identity import CodeIdentity, digest_of
from .folder import RunFolder
from .records import CodeRecord, Session, SummaryCode
from .same_code import parts_as_today

DIGITS = 6  # of a code's sha256, at the end of the name of a second folder of one config


@dataclass(frozen=True)
class ChosenFolder:
    """The folder of a run, and what is to be said if other code has made a run of the same config."""

    folder: Path
    note: str = ""  # in one line what lies where
    change: str = ""  # how that code differs from this one
    is_by_other: bool = False  # the folder itself is the other code's


@dataclass(frozen=True)
class Found:
    """A folder with something in it; `codes` made it, None where one was not recorded."""

    folder: Path
    is_finished: bool
    codes: tuple[CodeRecord | None, ...]
    changed: float  # when

    def is_by(self, code: CodeIdentity) -> bool:
        """Whether this code made it, and no other."""
        return all(made is not None and not code.find_changes(made["parts"]) for made in self.codes)

    def explain(self, code: CodeIdentity) -> str:
        """Say how the code that made it differs from this one."""
        known = [made for made in self.codes if made is not None]
        if len(known) < len(self.codes):
            return "which was not recorded"
        if len(known) > 1:
            return f"{len(known)} versions of it, one after the other"
        return code.explain_change(known[0]["parts"], _recorded_files(self.folder, known[0]))


def choose_run_folder(base: Path, code: CodeIdentity, reuse: str = SAME_CODE) -> ChosenFolder:
    """Choose the folder of a run.

    Args:
        base: The folder that the config has by itself.
        code: By which the run is made.
        reuse: `same-code`: a folder that other code has worked in is left alone; the run gets one of its own then,
            named after the code. `any`: of the folders of this config the newest finished one, else one to go on with.
    """
    if reuse == ANY_CODE:
        return _choose_any(base, code)
    own = _own_folder(base, code)
    there = _look_into(base)
    if there is None:
        # Made when there was another code's run in the first place, which is gone by now.
        return ChosenFolder(own if _look_into(own) is not None else base)
    if there.is_by(code):
        return ChosenFolder(base)
    verb = "shows" if there.is_finished else "continues"
    change = there.explain(code)
    note = f"{base} was made by other code ({change}); this run goes to {own}; --reuse any {verb} the old one"
    return ChosenFolder(own, note, change)


def _own_folder(base: Path, code: CodeIdentity) -> Path:
    """Return the folder that a code has beside `base`: the first by its name that no other code has worked in too."""
    for digits in range(DIGITS, len(code.sha256) + 1):
        folder = base.with_name(f"{base.name}-{code.sha256[:digits]}")
        found = _look_into(folder)
        if found is None or found.is_by(code):
            return folder
    raise FmtlbenchError(f"{base}: other code has worked in every folder of this run; --out chooses another place")


def _choose_any(base: Path, code: CodeIdentity) -> ChosenFolder:
    folders = [base, *sorted(base.parent.glob(f"{base.name}-{'[0-9a-f]' * DIGITS}*"))]
    there = [found for found in map(_look_into, folders) if found is not None]
    if not there:
        return ChosenFolder(base)
    if finished := [found for found in there if found.is_finished]:
        best = max(finished, key=lambda found: found.changed)
    else:
        best = max(there, key=lambda found: (found.is_by(code), found.changed))
    if best.is_by(code):
        return ChosenFolder(best.folder)
    what = "is shown" if best.is_finished else "is continued by this code"
    change = best.explain(code)
    note = f"{best.folder} was made by other code ({change}) and {what}, as --reuse any asks for"
    return ChosenFolder(best.folder, note, change, is_by_other=True)


def _look_into(folder: Path) -> Found | None:
    """Find out what a folder holds; None: nothing, or what is damaged, of which whoever opens the folder is told."""
    files = RunFolder(folder)
    try:
        summary = files.summary()
        if summary is not None:
            return Found(folder, True, _codes_of(summary.get("code")), _changed(folder / file_names.SUMMARY))
        manifest = files.manifest()
    except DamagedRun:
        return None
    if manifest is None:
        return None
    codes = [session.get("code") for session in lasting_sessions(manifest["sessions"])]
    return Found(folder, False, _each_once(codes), _changed(folder / file_names.MANIFEST))


def _codes_of(code: SummaryCode | None) -> tuple[CodeRecord | None, ...]:
    return (None,) if code is None else (*code.get("earlier", ()), code)


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # removed meanwhile
        return 0.0


def _recorded_files(folder: Path, made: CodeRecord) -> dict[str, dict[str, str]]:
    """Return the files that a code had, as the manifest of a run tells; {} where it does not."""
    try:
        manifest = RunFolder(folder).manifest()
    except DamagedRun:
        return {}
    for session in manifest["sessions"] if manifest else ():
        if (code := session.get("code")) is not None and code["sha256"] == made["sha256"]:
            return code.get("files", {})
    return {}


def explain_network_change(files: RunFolder, code: CodeIdentity) -> str:
    """Say how the code that built a run's networks differs from this one; "" where it does not, or was not recorded."""
    try:
        manifest = files.manifest()
    except DamagedRun:
        return ""
    made = manifest["sessions"][-1].get("code") if manifest and manifest["sessions"] else None
    return code.explain_network_change(made["files"]) if made and made.get("files") else ""


def lasting_sessions(sessions: Sequence[Session]) -> list[Session]:
    """Return the sessions of which some round is left: a later one may have begun at an earlier round."""
    begins = [session.get("from_round", 1) for session in sessions]
    return [one for i, one in enumerate(sessions) if all(later > begins[i] for later in begins[i + 1 :])]


def summarize_code(sessions: Sequence[Session]) -> SummaryCode:
    """Return what a summary says of the code of a run's sessions, of which the last one was recorded."""
    codes = _each_once([session.get("code") for session in lasting_sessions(sessions)])
    *earlier, last = [code and {"sha256": code["sha256"], "parts": code["parts"]} for code in codes]
    return cast(SummaryCode, {**(last or {}), **({"earlier": earlier} if earlier else {})})


def code_as_today(code: SummaryCode) -> SummaryCode:
    """Return a recorded code as the one that took its place (same_code.py)."""
    parts = parts_as_today(code["parts"])
    if parts == code["parts"]:
        return code
    today: SummaryCode = {**code, "parts": parts, "sha256": digest_of(parts)}
    if "earlier" in code:
        today["earlier"] = [one and code_as_today({**one}) for one in code["earlier"]]
    return today


def _each_once(codes: Sequence[CodeRecord | None]) -> tuple[CodeRecord | None, ...]:
    """Return every code once, in the order in which they were at work for the last time."""
    last = {code["sha256"] if code else None: code for code in reversed(codes)}
    return tuple(reversed(last.values()))
