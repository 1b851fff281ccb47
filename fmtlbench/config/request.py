"""A request for a run, as one value: from the command line, from Python, or from a cell of a bench grid."""

from __future__ import annotations

import dataclasses
import json
import numbers
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.errors import FmtlbenchError, UsageError, unknown
from ..base.schema import plain
from .named_files import rewrite_files
from .ray_options import SECTION, RayOptions, ray_options
from .setting import WEIGHTING
from .stored import read_config

if TYPE_CHECKING:
    from .run_config import RunConfig

Error = TypeVar("Error", bound=FmtlbenchError)
EXECUTORS = ("serial", "ray")
SAME_CODE, ANY_CODE = "same-code", "any"
REUSES = (SAME_CODE, ANY_CODE)
YAML = (".yml", ".yaml")
# What YAML does not take as it is, even in quotes: control characters, line breaks of all kinds, the byte-order mark.
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class RunRequest:
    """A run as it is asked for: what decides its numbers, where it lies, and how it is done and measured.

    Args:
        algo: A name of `fmtlbench list algorithms`, or the path of a .py file with one registered method. A weighting
            of losses may follow: `fedavg+uw` is `fedavg` with the override `train.weighting`.
        scenario: A name of `fmtlbench list scenarios`, or the path of a .yml file.
        preset: How big: a name of `fmtlbench list presets`, or the path of a .yml file.
        seed: Of everything random.
        rounds: Shorthand for the override `federation.rounds`.
        device: "auto", "cpu", "cuda", "cuda:1" or "mps".
        data_root: Where the real datasets lie; the embedded data need none.
        out: The folder runs are kept in.
        fresh: Throw away what an earlier run with this config left, and start over.
        reuse: Which earlier runs of this config will do: those made by the "same-code", or "any".
        save_predictions: Write the last round's predictions for the test images into the run folder.
        keep: What stays of the networks when the run is finished: "last" (those that the last round scored) or
            "none"; by default what the user's config file says, or "last". Decides no number.
        energy: Measure it; by default unless $FMTLBENCH_ENERGY is "off".
        country: Three-letter code: whose electricity the CO₂e figure counts with; by default $FMTLBENCH_COUNTRY, the
            user's config file, or the world average.
        region: Of that country.
        log: Who else is told what happens: names of `fmtlbench list listeners` or paths of .py files, as a list or with
            commas between them.
        executor: Where clients live: "serial", all in this process, or "ray", in those of a Ray cluster.
        ray_address: Of a running cluster, host:port or "auto"; without one, a cluster of this machine is started.
        stored: The config.yaml of a run, which then says all of method, scenario and preset.
        overrides: Config values by dotted name; with the executor ray also `ray.…`, which decide no number.
        lines: Of a file that gave values, for messages: flag, or dotted name of an override → `file:line`.
    """

    algo: str
    scenario: str
    preset: str = "nano"
    seed: int = 0
    rounds: int | None = None
    device: str = "auto"
    data_root: str | None = None
    out: str = "runs"
    fresh: bool = False
    reuse: str = SAME_CODE
    save_predictions: bool = False
    keep: str | None = None
    energy: bool | None = None
    country: str | None = None
    region: str | None = None
    executor: str = "serial"
    ray_address: str | None = None
    log: tuple[str, ...] = ()
    stored: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("algo", "scenario", "preset", "data_root", "out", "stored"):
            if isinstance(given := getattr(self, name), Path):
                object.__setattr__(self, name, str(given))
        if self.reuse not in REUSES:
            raise unknown("reuse", str(self.reuse), REUSES, f"--reuse {self.reuse}")
        object.__setattr__(self, "log", _split_names(self.log))
        overrides = {key: str(value) if isinstance(value, Path) else value for key, value in self.overrides.items()}
        overrides = {key: plain(value) for key, value in overrides.items()}
        if "+" in self.algo:
            algo, overrides = self._split_method(overrides)
            object.__setattr__(self, "algo", algo)
        object.__setattr__(self, "overrides", overrides)

    def _split_method(self, overrides: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the method of `fedavg+uw`, and the overrides with its weighting; refuse two different ones."""
        from .resolve import read_method

        flag = f"--algo {self.algo}"
        method, chosen = read_method(self.algo, flag)
        train = overrides.get("train")
        given = overrides.get(WEIGHTING, train.get("weighting") if isinstance(train, Mapping) else None)
        if chosen and given not in (None, chosen[WEIGHTING]):
            raise UsageError(f"{flag}: {WEIGHTING}={given} is set too; give one of them")
        return method, {**overrides, **chosen}

    @classmethod
    def of(cls, algo: str | Path, scenario: str | Path, **asked: Any) -> RunRequest:
        """Build a request from keywords: its own fields by their names, every other one is an override."""
        fields, overrides = split_keywords(asked)
        return cls(algo, scenario, overrides=overrides, **fields)

    def config(self, device: str = "cpu") -> RunConfig:
        """Resolve all that decides the numbers; `device` is the kind of device that was found.

        Raises:
            UsageError: The request makes no sense.
        """
        with self.naming_lines():
            return self._resolve(device)

    @contextmanager
    def naming_lines(self) -> Iterator[None]:
        """Refuse what is refused inside by the line of the file that asked for it, where that was no flag."""
        try:
            yield
        except FmtlbenchError as error:
            raise name_line(error, self.lines) from None

    def _resolve(self, device: str) -> RunConfig:
        from .resolve import resolve, resolve_stored

        overrides = {key: value for key, value in self.overrides.items() if not key.startswith(SECTION)}
        self.ray_options()
        if self.rounds is not None:
            if not isinstance(self.rounds, numbers.Integral) or isinstance(self.rounds, bool) or self.rounds < 1:
                raise UsageError(f"--rounds {self.rounds}: expected a whole number, 1 or more")
            if "federation.rounds" in overrides:
                raise UsageError(f"--rounds {self.rounds}: federation.rounds is set too; give one of them")
            overrides["federation.rounds"] = self.rounds
        if self.stored is None:
            config = resolve(self.algo, self.scenario, self.preset, self.seed, device, overrides)
        else:
            config = resolve_stored(read_config(Path(self.stored)), self.seed, device, overrides)
        if self.data_root is not None and not config.reads_files:
            raise UsageError(
                f"--data-root {self.data_root}: preset {self.preset!r} uses the embedded data; --set data.source=real?"
            )
        return config

    def ray_options(self) -> RayOptions:
        """Return how clients are spread over a Ray cluster; refuse such settings for another executor.

        Raises:
            UsageError: An unknown executor, or Ray's settings without it.
        """
        if self.executor not in EXECUTORS:
            raise unknown("executor", str(self.executor), EXECUTORS, f"--executor {self.executor}")
        spread = [f"--set {key}" for key in self.overrides if key.startswith(SECTION)]
        if self.ray_address is not None:
            spread.append(f"--ray-address {self.ray_address}")
        if self.executor != "ray" and spread:
            raise UsageError(f"{spread[0]}: is for --executor ray; this run has --executor {self.executor}")
        return ray_options(self.overrides)

    def anywhere(self) -> RunRequest:
        """Return the request with absolute paths, so that it can be done from every working directory."""
        return self._with_paths(lambda path: str(Path(path).absolute()))

    def command(self) -> str:
        """Return the command line that makes the same request in this working directory; paths below it are short."""
        here = Path.cwd()

        def shorten(path: str) -> str:
            full = Path(path).absolute()
            return str(full.relative_to(here)) if full.is_relative_to(here) else path

        return shlex.join(["fmtlbench", "run", *self._with_paths(shorten).to_argv()])

    def _with_paths(self, rewrite: Callable[[str], str]) -> RunRequest:
        """Return the request with every path in it rewritten."""

        def change(name: Any, *endings: str) -> Any:
            return rewrite(name) if isinstance(name, str) and name.endswith(endings or "") else name

        return dataclasses.replace(
            self,
            overrides=rewrite_files(self.overrides, rewrite),
            algo=change(self.algo, ".py"),
            scenario=change(self.scenario, *YAML),
            preset=change(self.preset, *YAML),
            stored=change(self.stored),
            out=change(self.out),
            data_root=change(self.data_root),
            log=tuple(change(name, ".py") for name in self.log),
        )

    def to_argv(self) -> list[str]:
        """Return the words after `fmtlbench run` that make the same request."""
        words = []
        chosen = ("--algo", self.algo), ("--scenario", self.scenario), ("--preset", self.preset)
        for flag, value in (
            ("--config", self.stored),
            *(() if self.stored else chosen),
            ("--seed", self.seed),
            ("--rounds", self.rounds),
            ("--device", self.device),
            ("--data-root", self.data_root),
            ("--out", self.out),
            ("--keep", self.keep),
            ("--country", self.country),
            ("--region", self.region),
            ("--ray-address", self.ray_address),
            ("--log", ",".join(self.log) or None),
        ):
            if value is not None:
                words += _write_flag(flag, str(value))
        if self.energy is not None:
            words.append("--energy" if self.energy else "--no-energy")
        if self.executor != "serial":
            words += _write_flag("--executor", self.executor)
        if self.reuse != SAME_CODE:
            words += _write_flag("--reuse", self.reuse)
        words += ["--fresh"] * self.fresh + ["--save-predictions"] * self.save_predictions
        for key, value in self.overrides.items():
            words += _write_flag("--set", f"{key}={override_text(value)}")
        return words


def split_keywords(asked: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keywords into fields of a request, by name, and overrides: all others."""
    own = {f.name for f in dataclasses.fields(RunRequest)} - {"overrides", "lines"}
    fields = {key: value for key, value in asked.items() if key in own}
    return fields, {key: value for key, value in asked.items() if key not in own}


def place_beside(word: str, base: Path) -> str:
    """Return the path of a .py or YAML file that a file in `base` names: it lies beside it; other words as they are."""
    name, bracket, options = word.partition("[")
    names = [base / one if one.endswith((".py", *YAML)) else one for one in _split_plus(name)]
    return f"{'+'.join(map(str, names))}{bracket}{options}"


def _split_plus(name: str) -> list[str]:
    """Split a method from its weighting, where a word has both."""
    if "+" not in name or name.endswith(YAML):
        return [name]
    from .resolve import split_method

    return [one for one in split_method(name) if one is not None]


def place_files(overrides: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return overrides of a file in `base` in which the files that they name lie beside it."""
    return rewrite_files(overrides, lambda name: str(base / name))


def name_line(error: Error, lines: Mapping[str, str]) -> Error:
    """Return the error for a value with the line that gave it, in the place of a flag that nobody typed.

    `lines` maps flags and keys of overrides to `file:line`; it is empty where flags gave them.
    """
    text = str(error)
    for key, line in lines.items():
        if line and text.startswith(f"--set {key}="):
            return type(error)(f"{line}: {text.removeprefix('--set ')}")
        if line and key.startswith("--") and text.startswith((f"{key}:", f"{key} ")):
            return type(error)(f"{line}: {text.removeprefix('--')}")
    return error


def _split_names(given: str | Path | Iterable[str | Path]) -> tuple[str, ...]:
    """Split names at commas, in one text or in several; each name is returned once."""
    texts = [given] if isinstance(given, (str, Path)) else given
    return tuple(dict.fromkeys(filter(None, (word.strip() for text in texts for word in str(text).split(",")))))


def _write_flag(flag: str, value: str) -> list[str]:
    """Write a flag so that its value is not taken for another flag."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def override_text(value: Any) -> str:
    """Write a value so that `--set key=value` reads it back: JSON, as far as YAML understands it."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\U{ord(match[0]):08X}", text)
