"""Reading a run folder: one method per file, every file checked, nothing filled in. store.py writes a run's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..base.files import read_whole, write_json
from ..base.stored import FIRST_FORMAT, FORMAT, DamagedRun, check_format
from ..config.stored import read_config
from . import file_names
from .records import ClientRecord, Cost, Manifest, RoundRow, Summary, TimingRow, Tuning
from .type_check import decode

if TYPE_CHECKING:
    from ..config.run_config import RunConfig

Record = TypeVar("Record")
Written = TypeVar("Written", bound=Mapping[str, Any])


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, finished or not. Files that are not there are None or have no rows."""

    path: Path

    def summary(self) -> Summary | None:
        """Read what a finished run found; None: it is not finished."""
        summary = read_record(self.path / file_names.SUMMARY, Summary)
        if summary is not None and (wrong := _contradiction(summary)):
            raise DamagedRun(self.path, f"{file_names.SUMMARY}: {wrong}")
        return summary

    def cost(self) -> Cost | None:
        """Read what the run took."""
        return read_record(self.path / file_names.COST, Cost)

    def manifest(self) -> Manifest | None:
        """Read where the numbers came from."""
        return read_record(self.path / file_names.MANIFEST, Manifest, whole=True)  # sessions are added to it

    def tuning(self) -> Tuning | None:
        """Read how the run's config was chosen; None: nobody tuned it."""
        file = self.path / file_names.TUNING
        # Most runs have none, and to ask is quicker than to fail: reports do it a thousand times.
        return read_record(file, Tuning) if os.path.lexists(file) else None

    def write_tuning(self, tuning: Tuning) -> None:
        """Write how the run's config was chosen, before the run begins or after it."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / file_names.TUNING, with_format(tuning))

    def rounds(self) -> list[RoundRow]:
        """Read what every round found."""
        return read_rows(self.path / file_names.ROUNDS, RoundRow)

    def timing(self) -> list[TimingRow]:
        """Read what every round took."""
        return read_rows(self.path / file_names.TIMING, TimingRow)

    def repeated(self) -> list[TimingRow]:
        """Read what rounds took that had to be made again."""
        return read_rows(self.path / file_names.REPEATED, TimingRow)

    def config(self) -> dict[str, Any]:
        """Read the config as nested plain values.

        Raises:
            UsageError: There is none, or it is no YAML.
            DamagedRun: It is empty or no mapping.
        """
        return read_config(self.path / file_names.CONFIG)

    def run_config(self) -> RunConfig:
        """Build the run's config from its file.

        Raises:
            UsageError: There is none, or not one that this version understands; the line is named.
        """
        from ..config.run_config import RunConfig

        return RunConfig.from_tree(self.config())

    def config_text(self) -> str:
        """Read the config as it is written; OSError where it is lost."""
        return (self.path / file_names.CONFIG).read_text(encoding="utf-8", errors="replace")

    def has_config(self) -> bool:
        """Say whether there is a config, so a run; reading it tells whether it is a file."""
        return os.path.lexists(self.path / file_names.CONFIG)

    def is_finished(self) -> bool:
        """Say whether the folder holds a result that can be read."""
        try:
            return self.summary() is not None
        except DamagedRun:
            return False

    @property
    def checkpoints(self) -> Path:
        """Return the folder of the run's checkpoints."""
        return self.path / file_names.CHECKPOINTS

    @property
    def networks(self) -> Path:
        """Return the folder of the networks that were scored in the last round."""
        return self.path / file_names.NETWORKS

    @property
    def networks_index(self) -> Path:
        """Return the file that says whose networks these are."""
        return self.networks / file_names.INDEX

    def has_networks(self) -> bool:
        """Say whether the networks of the last round are kept, all of them: their index is written last."""
        return self.networks_index.is_file()

    def has_former_weights(self) -> bool:
        """Say whether an earlier version has kept the networks, in a file that is not read any more."""
        return (self.path / file_names.FORMER_WEIGHTS).is_file()

    @property
    def sums(self) -> Path:
        """Return the file of what the scores of the last round were computed from."""
        return self.path / file_names.SUMS

    @property
    def logs(self) -> Path:
        """Return the folder that listeners of the run write to (--log); nobody reads it here."""
        return self.path / file_names.LOGS

    @property
    def lock(self) -> Path:
        """Return the file that a process holds locked while it works on the run."""
        return self.path / file_names.LOCK

    def predictions(self, split: str) -> Path:
        """Return the folder of the run's predictions for a split."""
        return self.path / (file_names.PREDICTIONS if split == "global" else f"{file_names.PREDICTIONS}-{split}")


def examples_in(predictions: Path) -> Path:
    """Return where a folder of predictions keeps some of them as pictures, beside input and ground truth."""
    return predictions / file_names.EXAMPLES


def everybody(summary: Summary) -> list[ClientRecord]:
    """List the clients of a run: those that took part, then those that never did."""
    return [*summary["clients"], *(summary.get("unseen") or ())]


def _contradiction(summary: Summary) -> str:
    """Say which keys of a summary contradict each other, though each is of its type; "" if none do."""
    scores, clients = summary["scores"], everybody(summary)
    strange = set(map(itemgetter("client"), scores)) - set(map(itemgetter("id"), clients))
    if strange:
        return f"scores: {sorted(strange)} are not among the clients"
    if None in [score.get("higher_is_better") for score in scores if score["primary"]]:
        return "scores: a primary one has no higher_is_better, true or false"
    if not all(map(itemgetter("tasks"), clients)):
        return "clients: one has no tasks"
    return ""


# -- files -------------------------------------------------------------------------------------------------------------


def with_format(record: Written) -> Written:
    """Return the record as it is written: with its format number first."""
    return cast(Written, {"format": FORMAT, **{key: value for key, value in record.items() if key != "format"}})


def read_record(file: Path, kind: type[Record], whole: bool = False) -> Record | None:
    """Read a .json file that holds one object of a kind; None if there is none.

    What is written again is read `whole`, with the keys that this version does not know.
    """
    try:
        content = read_whole(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DamagedRun(file.parent, f"{file.name} cannot be read: {error.strerror or error}") from None
    if not content.strip():
        raise DamagedRun(file.parent, f"{file.name} is empty")
    try:
        record, wrong = decode(content, kind, whole)
    except (ValueError, RecursionError) as error:
        raise DamagedRun(file.parent, f"{file.name} cannot be read: {error}") from None
    if isinstance(record, dict):
        check_format(file.parent, file.name, record.get("format", FIRST_FORMAT))
    if wrong:
        raise DamagedRun(file.parent, f"{file.name}: {wrong}")
    return cast(Record, record)


def read_rows(file: Path, kind: type[Record]) -> list[Record]:
    """Read the complete lines of a .jsonl file, whole; a last line cut short by a kill is not one. No file: no rows."""
    try:
        lines = read_whole(file).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedRun(file.parent, f"{file.name} cannot be read: {error.strerror or error}") from None
    found: list[tuple[Any, str]] = []
    for line in lines:
        try:
            found.append(decode(line, kind, whole=True))
        except (ValueError, RecursionError) as error:
            raise DamagedRun(file.parent, f"{file.name} cannot be read: line {len(found) + 1}: {error}") from None
    for number, (row, _) in enumerate(found, 1):
        if isinstance(row, dict):
            check_format(file.parent, f"{file.name}, line {number},", row.get("format", FIRST_FORMAT))
    for number, (_, wrong) in enumerate(found, 1):
        if wrong:
            raise DamagedRun(file.parent, f"{file.name}, line {number}: {wrong}")
    return [row for row, _ in found]
