"""A request for a run, as one value: from the command line, from Python, or from a cell of a bench grid."""

from __future__ import annotations

import dataclasses
import json
import numbers
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UsageError, unknown
from .ray_cluster import SECTION, RayOptions, ray_options
from .schema import plain

if TYPE_CHECKING:
    from .config import RunConfig

EXECUTORS = ("serial", "ray")
FILES = {"model.architecture": (".py",), "model.weights": ()}  # overrides that may be files, and how these end
# What YAML does not take as it is, even in quotes: control characters, line breaks of all kinds, the byte-order mark.
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class RunRequest:
    """A run as it is asked for: what decides its numbers, where it lies, and how it is done and measured.

    Args:
        algo: A name of `fmtlbench list algorithms`, or the path of a .py file with one registered method.
        scenario: A name of `fmtlbench list scenarios`, or the path of a .yml file.
        preset: How big: a name of `fmtlbench list presets`.
        seed: Of everything random.
        rounds: Shorthand for the override `federation.rounds`.
        device: "auto", "cpu", "cuda", "cuda:1" or "mps".
        data_root: Where the real datasets lie; the embedded data need none.
        out: The folder runs are kept in.
        fresh: Throw away what an earlier run with this config left, and start over.
        save_predictions: Write the last round's predictions for the test images into the run folder.
        energy: Measure it; by default unless $FMTLBENCH_ENERGY is "off".
        country: Three-letter code: whose electricity the CO₂e figure counts with; by default $FMTLBENCH_COUNTRY, the
            user's config file, or the world average.
        region: Of that country.
        log: Who else is told what happens: names of `fmtlbench list listeners` or paths of .py files, as a list or with
            commas between them.
        executor: Where clients live: "serial", all in this process, or "ray", in those of a Ray cluster.
        ray_address: Of a running cluster, host:port or "auto"; without one, a cluster of this machine is started.
        overrides: Config values by dotted name; with the executor ray also `ray.…`, which decide no number.
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
    save_predictions: bool = False
    energy: bool | None = None
    country: str | None = None
    region: str | None = None
    executor: str = "serial"
    ray_address: str | None = None
    log: tuple[str, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("algo", "scenario", "data_root", "out"):
            if isinstance(given := getattr(self, name), Path):
                object.__setattr__(self, name, str(given))
        object.__setattr__(self, "log", _split_names(self.log))
        overrides = {key: str(value) if isinstance(value, Path) else value for key, value in self.overrides.items()}
        object.__setattr__(self, "overrides", {key: plain(value) for key, value in overrides.items()})

    @classmethod
    def of(cls, algo: str | Path, scenario: str | Path, **asked: Any) -> RunRequest:
        """Build a request from keywords: its own fields by their names, every other one is an override."""
        own = {f.name for f in dataclasses.fields(cls)} - {"overrides"}
        overrides = {key: value for key, value in asked.items() if key not in own}
        return cls(algo, scenario, overrides=overrides, **{key: asked[key] for key in asked if key in own})

    def config(self, device: str = "cpu") -> RunConfig:
        """Resolve all that decides the numbers; `device` is the kind of device that was found.

        Raises:
            UsageError: The request makes no sense.
        """
        from .resolving import resolve

        overrides = {key: value for key, value in self.overrides.items() if not key.startswith(SECTION)}
        self.ray_options()
        if self.rounds is not None:
            if not isinstance(self.rounds, numbers.Integral) or isinstance(self.rounds, bool) or self.rounds < 1:
                raise UsageError(f"--rounds {self.rounds}: expected a whole number, 1 or more")
            if "federation.rounds" in overrides:
                raise UsageError(f"--rounds {self.rounds}: federation.rounds is set too; give one of them")
            overrides["federation.rounds"] = self.rounds
        config = resolve(self.algo, self.scenario, self.preset, self.seed, device, overrides)
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

        def full(name: Any, *endings: str) -> Any:
            return str(Path(name).absolute()) if isinstance(name, str) and name.endswith(endings or "") else name

        overrides = {key: full(value, *FILES[key]) if key in FILES else value for key, value in self.overrides.items()}
        if isinstance(files := overrides.get("data.files"), dict):
            overrides["data.files"] = {domain: full(path) for domain, path in files.items()}
        return dataclasses.replace(
            self,
            overrides=overrides,
            algo=full(self.algo, ".py"),
            scenario=full(self.scenario, ".yml", ".yaml"),
            out=full(self.out),
            data_root=full(self.data_root),
            log=tuple(full(name, ".py") for name in self.log),
        )

    def to_argv(self) -> list[str]:
        """Return the words after `fmtlbench run` that make the same request."""
        words = []
        for flag, value in (
            ("--algo", self.algo),
            ("--scenario", self.scenario),
            ("--preset", self.preset),
            ("--seed", self.seed),
            ("--rounds", self.rounds),
            ("--device", self.device),
            ("--data-root", self.data_root),
            ("--out", self.out),
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
        words += ["--fresh"] * self.fresh + ["--save-predictions"] * self.save_predictions
        for key, value in self.overrides.items():
            words += _write_flag("--set", f"{key}={override_text(value)}")
        return words


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
