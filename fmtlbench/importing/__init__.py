"""Turn configs of the public FedHCA² and FMTL-Bench repositories into scenario files and commands."""

from __future__ import annotations

import dataclasses
import json
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import UsageError
from ..base.schema import plain
from ..base.yamlfile import load_yaml
from ..config.resolve import resolve, resolve_options, resolve_without_method
from ..scenarios import Scenario, load_scenario, scenario_files
from ._clients import clients_of, partition_of
from ._reader import Notes, Reader, check_is_yaml
from ._settings import METHOD_FLAGS, UNMAPPED_TOP, is_fmtl_bench, method_of, network_of, overrides_of

PAPERS = {"paper": "FedHCA² (Lu et al., CVPR 2024)", "fmtl-bench": "FMTL-Bench (Yang et al., ICMR 2024)"}


@dataclass(frozen=True)
class Imported:
    """What a public config became."""

    source: str  # its name
    scenario: dict[str, Any]  # as a scenario file says it
    algo: str
    preset: str
    seed: int
    overrides: dict[str, Any]  # what differs from the preset and the method's defaults
    notes: Notes
    same_as: str | None  # a built-in scenario with the same clients

    def command(self, scenario: str | Path) -> str:
        """Return the `fmtlbench run` line for the scenario file at this path."""
        words = ["fmtlbench", "run", "--algo", self.algo, "--scenario", str(scenario), "--preset", self.preset]
        words += ["--seed", str(self.seed)] if self.seed else []
        for key, value in self.overrides.items():
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        return shlex.join(words)

    def text(self, scenario: str | Path) -> str:
        """Return the scenario file's text, with the command and the notes as comments."""
        s = self.scenario
        notes = [f"Run: {self.command(scenario)}", *self.notes.remarks]
        notes += [f"Not mapped: {note}" for note in self.notes.unmapped]
        comments = "".join(f"# {' '.join(note.split())}\n" for note in notes)  # one line each, whatever a key holds
        clients = "".join(f"  - {_write_flow(group)}\n" for group in s["clients"])
        return (
            f"{comments}description: {json.dumps(s['description'], ensure_ascii=False)}\n"
            f"paper: {json.dumps(s['paper'], ensure_ascii=False)}\nversion: 1\nclients:\n{clients}"
            f"partition: {_write_flow(s['partition'])}\nevaluation: [{', '.join(s['evaluation'])}]\n"
            f"exchange: {s['exchange']}\n"
        )


def import_config(path: str | Path, algo: str | None = None, preset: str | None = None, gpus: int = 2) -> Imported:
    """Read one public config and check that what it becomes can be run.

    Args:
        path: the YAML file.
        algo: the method, where the file does not say it; by default what its hyper weights imply.
        preset: by default that of the paper the file belongs to.
        gpus: processes of the public run; its batch size is per process.

    Raises:
        UsageError: not such a config, or one that no scenario can express; names file, line and key.
    """
    path = Path(path)
    check_is_yaml(path)
    if gpus < 1:
        raise UsageError(f"--gpus {gpus}: expected at least 1")
    data, origins = load_yaml(path)
    top = Reader(data, origins)
    groups, entries = clients_of(top)
    bench = is_fmtl_bench(top, entries)
    preset = preset or ("fmtl-bench" if bench else "paper")
    scenario = {
        "description": f"Imported from {path.name}",
        "paper": PAPERS["fmtl-bench" if bench else "paper"] + ", a public config",
        "clients": groups,
        "partition": {"kind": partition_of(entries, groups)},
        "evaluation": ["global", "personal"] if bench else ["global"],
        "exchange": "models" if bench else "decoders",
    }
    method, options = method_of(top, algo)
    values = options | overrides_of(top, entries, method, gpus)
    if bench:
        values |= network_of(top)
    if method == "fedhca2":
        values["federation.exchange"] = "decoders"  # it never sends whole models
    seed = top.get("seed", "a whole number", 0, low=0)
    top.note_if_there(UNMAPPED_TOP)
    top.finish((*METHOD_FLAGS, "ST_Datasets", "MT_Datasets"))
    draft = Imported(path.name, scenario, method, preset, seed, values, top.notes, None)
    return _check_draft(draft)


def _check_draft(draft: Imported) -> Imported:
    """Load the draft as a run would, and keep only the overrides that change something."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{Path(draft.source).stem}.yml"
        file.write_text(draft.text(file.name), encoding="utf-8")
        try:
            _, options = resolve_options(draft.algo, draft.preset, {})
            present = _flatten({**plain(resolve_without_method(str(file), draft.preset)), "algo": plain(options)})
            needed = {key: value for key, value in draft.overrides.items() if present.get(key) != value}
            general = {key: value for key, value in needed.items() if not key.startswith("algo.")}
            scenario = resolve_without_method(str(file), draft.preset, overrides=general).scenario
        except UsageError as error:  # it names our temporary file, which the user has never seen
            raise UsageError(str(error).replace(f"{file}:", f"{draft.source}, as a scenario, line ")) from None
        try:
            resolve(draft.algo, str(file), draft.preset, overrides=needed)
        except UsageError as error:  # the scenario is good; the user may know another method or option for it
            draft.notes.remarks.append(f"The command will be refused: {error}")
    return dataclasses.replace(draft, overrides=needed, same_as=_find_equal(scenario))


def _flatten(node: Any, path: str = "") -> dict[str, Any]:
    """Return a tree's values and sections by dotted key."""
    found = {path: node} if path else {}
    if isinstance(node, dict):
        for key, value in node.items():
            found |= _flatten(value, f"{path}.{key}" if path else key)
    return found


def _find_equal(scenario: Scenario) -> str | None:
    """Return the name of a built-in scenario with the same clients, partition, evaluation and exchange."""
    wanted = _take_essentials(scenario)
    return next((name for name in scenario_files() if _take_essentials(load_scenario(name)) == wanted), None)


def _take_essentials(scenario: Scenario) -> tuple:
    clients = [(spec.dataset, tuple(sorted(spec.tasks)), spec.pool or "") for spec in scenario.everybody()]
    if scenario.partition.kind != "linear":  # there the order decides the shares
        clients.sort()
    return clients, scenario.partition, scenario.evaluation, scenario.exchange


def _write_flow(value: Any) -> str:
    """Write a mapping in one line, as people write YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_write_flow(inner)}" for key, inner in value.items()) + "}"
    return f"[{', '.join(value)}]" if isinstance(value, list) else str(value)
