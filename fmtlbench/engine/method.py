"""A method as everybody asks it: what a hook answers is checked, and its mistakes are one line that names it.

Methods are other people's code. Wherever one is asked, it is asked through `Hooks`: an exception, a `sys.exit` or an
answer of a wrong type, shape or value becomes a `MethodError` with the method, the hook, the client and the round.
Torch is imported only to look at tensors, so that configs can be checked without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..algorithms import ALGORITHMS, Algorithm, Evaluation
from ..base.errors import FmtlbenchError, describe_error, one_line, short_repr
from ..exchange import PART_KINDS, TRAVELLING_KINDS, Party, Round, TensorSlice
from ..exchange.hooks import MethodError, ScheduleRefused, kind_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ..algorithms import EpochKinds, Kinds, Local, RowName, Workbench
    from ..config.run_config import RunConfig


def method_of(config: RunConfig) -> type[Algorithm]:
    """Return the class of a config's method."""
    return ALGORITHMS.resolve(config.algorithm.file or config.algorithm.name)


class Hooks:
    """One method at work. What is no hook (`title`, `tracks`, `params`) is passed on."""

    def __init__(self, method: type[Algorithm], options: Any, parties: Sequence[Party], rounds: int = 0) -> None:
        self._name: str = method.name
        self._round: int | None = None
        try:
            self._method = method(options, parties)
        except FmtlbenchError:
            raise
        except (Exception, SystemExit) as error:
            raise self._wrong("__init__", f"failed: {describe_error(error)}") from error
        self._method.rounds = rounds
        tracks, trained = self._method.tracks, self._method.trained_tracks
        if trained is not None and (not _is_list(trained, str) or not trained or set(trained) - set(tracks)):
            raise self._wrong("trained_tracks", f"is {short_repr(trained)}, expected some of {short_repr(tracks)}")
        if not _is_list(tracks, str) or "main" not in tracks or len(set(tracks)) < len(tracks):
            raise self._wrong("tracks", f'is {short_repr(tracks)}, expected different names with "main" among them')
        if not _is_list(self._method.common, str) or set(self._method.common) - set(TRAVELLING_KINDS):
            raise self._wrong(
                "common", f"is {short_repr(self._method.common)}, expected kinds: {', '.join(TRAVELLING_KINDS)}"
            )

    def __getattr__(self, name: str) -> Any:
        if name == "_method":  # before __init__, and in a copy
            raise AttributeError(name)
        return getattr(self._method, name)

    def begin(self, index: int) -> None:
        """Name round `index` in complaints from now on."""
        self._round = index

    # -- the server's hooks --------------------------------------------------------------------------------------------

    def shared(self, index: int) -> Kinds:
        """Ask which kinds travel in round `index`."""
        self._round = index
        kinds = self._ask("shared", index)
        if not _is_list(kinds, str) or set(kinds) - set(TRAVELLING_KINDS) or len(set(kinds)) < len(kinds):
            raise self._wrong("shared", f'returned {short_repr(kinds)}, expected kinds such as ("encoder",)')
        return tuple(kinds)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        """Have the server step done; the new rows by kind have the shape of those that came, and are finite."""
        self._round = rnd.index
        new = self._ask("aggregate", rnd)
        if not isinstance(new, Mapping):
            raise self._wrong("aggregate", f"returned {kind_of(new)}, expected a dict of tensors by kind")
        rows = {kind: getattr(rnd, kind) for kind in TRAVELLING_KINDS if getattr(rnd, kind) is not None}
        for kind, values in new.items():
            if kind not in rows:
                raise self._wrong(
                    "aggregate", f"returned {short_repr(kind)}, but only {', '.join(rows)} travelled in this round"
                )
            self._check_tensor("aggregate", kind, values, tuple(rows[kind].after.shape), rows[kind].after.device)
            if False in (good := _finite_rows(values)):
                owner = rows[kind].owners[good.index(False)]
                raise self._wrong(
                    "aggregate", f"returned NaN or infinity for {kind!r}", rnd.parties[owner.client].id, owner.task
                )
        return dict(new)

    def newcomer_encoder(self, encoders: Tensor) -> Tensor:
        """Ask for the encoder of a client that never took part."""
        chosen = self._ask("newcomer_encoder", encoders)
        self._check_tensor("newcomer_encoder", "encoder", chosen, tuple(encoders.shape[1:]), encoders.device)
        if False in _finite_rows(chosen[None]):
            raise self._wrong("newcomer_encoder", "returned NaN or infinity for 'encoder'")
        return chosen

    def billed_copies(self) -> int:
        """Ask how often a row that travels is billed."""
        copies = self._ask("billed_copies")
        if not isinstance(copies, int) or isinstance(copies, bool) or copies < 1:
            raise self._wrong("billed_copies", f"returned {short_repr(copies)}, expected a whole number, 1 or more")
        return copies

    def diagnostics(self) -> dict[str, Any]:
        """Ask for the numbers to keep of the round."""
        found = self._ask("diagnostics")
        if not isinstance(found, dict):
            raise self._wrong("diagnostics", f"returned {kind_of(found)}, expected a dict of plain values")
        try:
            json.dumps(found, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._wrong(
                "diagnostics", f"returned what JSON cannot hold: {one_line(error)}; expected finite numbers and text"
            ) from None
        return found

    def notes(self) -> list[str]:
        """Ask what a user should be told after the round."""
        notes = self._ask("notes")
        if not _is_list(notes, str):
            raise self._wrong("notes", f"returned {short_repr(notes)}, expected a list of texts")
        return list(notes)

    def state_dict(self) -> dict[str, Any]:
        """Ask for what the next round depends on."""
        state = self._ask("state_dict")
        if not isinstance(state, dict):
            raise self._wrong("state_dict", f"returned {kind_of(state)}, expected a dict of tensors and JSON values")
        if problem := _unsaveable(state):
            raise self._wrong("state_dict", f"returned {problem}; expected tensors and JSON values, keys of text")
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Hand back what `state_dict` returned."""
        self._ask("load_state_dict", state)

    def parcel(self, client: int) -> dict[str, Tensor]:
        """Ask what a client is sent beside rows."""
        return self._check_tensors("parcel", self._ask("parcel", client))

    def rows_sent(self, index: int, party: Party, kind: str) -> tuple[RowName, ...] | None:
        """Ask which of a client's rows are exchanged; None: all of its main track."""
        names = self._ask("rows_sent", index, party, kind)
        if names is None:
            return None
        tasks = (None,) if kind == "encoder" or party.merged else party.tasks
        known = {(track, task) for track in self._method.tracks for task in tasks}
        if not _is_list(names, tuple) or set(names) - known or len(set(names)) < len(names):
            expected = f"different ones of {short_repr(sorted(known, key=str))}"
            raise self._wrong("rows_sent", f"returned {short_repr(names)} for {kind!r}, expected {expected}", party.id)
        return tuple(names)

    def kept_home(self, kind: str, tensors: Sequence[TensorSlice]) -> list[TensorSlice]:
        """Ask which tensors of a travelling row stay with the clients."""
        home = self._ask("kept_home", kind, tensors)
        if not _is_list(home, TensorSlice) or set(home) - set(tensors):
            raise self._wrong("kept_home", f"returned {short_repr(home)}, expected some of the tensors it was given")
        return list(home)

    # -- the clients' hooks --------------------------------------------------------------------------------------------

    def has(self, hook: str) -> bool:
        """Say whether the method fills in a hook; one that it does not is not worth a call in every step."""
        return getattr(type(self._method), hook) is not getattr(Algorithm, hook)

    @property
    def changes_scored(self) -> bool:
        """Say whether the network that is scored is not simply one of the tracks."""
        return self.has("before_scoring") or self.has("tasks_by_track")

    @property
    def has_objective(self) -> bool:
        """Say whether the method has a local objective of its own."""
        return self.has("local_objective")

    def tasks_by_track(self, local: Local) -> dict[str, tuple[str, ...]] | None:
        """Ask which tasks each track has; None: all tracks have all."""
        found = self._ask("tasks_by_track", local, client=local.party.id)
        if found is None:
            return None
        tasks = [task for named in found.values() for task in named] if isinstance(found, Mapping) else []
        if not tasks or set(found) - set(self._method.tracks) or sorted(tasks) != sorted(local.party.tasks):
            expected = f"tracks of {short_repr(self._method.tracks)} with each of {short_repr(local.party.tasks)} once"
            raise self._wrong("tasks_by_track", f"returned {short_repr(found)}, expected {expected}", local.party.id)
        return {track: tuple(named) for track, named in found.items() if named}

    def held_out(self) -> float:
        """Ask for the share of training images that is kept out of training."""
        return self._number("held_out", float, 0.0, 0.9)

    def steps_per_batch(self) -> int:
        """Ask how many optimiser steps a batch gets."""
        return self._number("steps_per_batch", int, 1, 1000)

    def adopt(self, local: Workbench) -> None:
        """Have the client's models prepared for the round."""
        self._ask("adopt", local, client=local.party.id)
        self._check_memory("adopt", local)

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        """Ask what the client tells beside its rows."""
        client = local.party.id
        measured = self._check_tensors("measure", self._ask("measure", local, client=client), client)
        self._check_memory("measure", local)
        return measured

    def change(self, hook: str, local: Local) -> None:
        """Have parameters or a gradient changed: before_step, before_update or before_scoring."""
        self._ask(hook, local, client=local.party.id)

    def local_objective(self, local: Local, losses: Tensor | None = None) -> Tensor | None:
        """Ask for the term that is added to `losses`; where these are finite, it must be."""
        client = local.party.id
        extra = self._ask("local_objective", local, client=client)
        if extra is None:
            return None
        self._check_tensor("local_objective", "the objective", extra, (), local.device, client)
        # As with losses: on a GPU looking at every step would cost more than the step.
        if extra.device.type == "cpu" and not extra.isfinite() and (losses is None or losses.isfinite()):
            raise self._wrong("local_objective", f"returned {extra.item()}, expected a finite number", client)
        return extra

    def local_schedule(self, epochs: int) -> list[EpochKinds]:
        """Ask what trains in which epoch; ScheduleRefused where the method says that it cannot be."""
        schedule = self._ask("local_schedule", epochs, refusing=True)
        if not _is_schedule(schedule) or len(schedule) != epochs:
            raise self._wrong(
                "local_schedule",
                f"returned {short_repr(schedule)} for {epochs} epochs, expected for each of them kinds such as "
                '("encoder",), or several such that share it',
            )
        return list(schedule)

    def evaluation_model(self) -> Evaluation:
        """Ask which track is scored, and after what fine-tuning."""
        chosen = self._ask("evaluation_model")
        if not isinstance(chosen, Evaluation):
            raise self._wrong("evaluation_model", f"returned {kind_of(chosen)}, expected an Evaluation")
        if chosen.track not in self._method.tracks:
            known = ", ".join(self._method.tracks)
            raise self._wrong("evaluation_model", f"chose track {short_repr(chosen.track)}; valid: {known}")
        if not _is_schedule(chosen.finetune):
            raise self._wrong(
                "evaluation_model", f"chose finetune={short_repr(chosen.finetune)}, expected kinds by epoch"
            )
        return chosen

    def _number(self, hook: str, form: type, low: float, high: float) -> Any:
        value = self._ask(hook)
        fits = isinstance(value, (int, float) if form is float else int) and not isinstance(value, bool)
        if not fits or not low <= value <= high:
            words = "a whole number" if form is int else "a number"
            raise self._wrong(hook, f"returned {short_repr(value)}, expected {words} from {low:g} to {high:g}")
        return value

    def _check_tensors(self, hook: str, found: Any, client: str | None = None) -> dict[str, Tensor]:
        import torch

        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise self._wrong(hook, f"returned {kind_of(found)}, expected a dict of tensors by name", client)
        for name, value in found.items():
            if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
                raise self._wrong(hook, f"returned {kind_of(value)} for {name!r}, expected a tensor", client)
            if value.is_floating_point() and not value.isfinite().all():
                raise self._wrong(hook, f"returned NaN or infinity for {name!r}", client)
        return found

    def _check_memory(self, hook: str, local: Local) -> None:
        if problem := _unsaveable(local.memory):
            expected = "expected tensors and JSON values, keys of text"
            raise self._wrong(hook, f"left {problem} in the client's memory; {expected}", local.party.id)

    # -- asking --------------------------------------------------------------------------------------------------------

    def _ask(self, hook: str, *arguments: Any, client: str | None = None, refusing: bool = False) -> Any:
        try:
            return getattr(self._method, hook)(*arguments)
        except (FmtlbenchError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            if refusing and isinstance(error, ValueError):
                raise ScheduleRefused(one_line(error)) from None
            raise self._wrong(hook, f"failed: {describe_error(error)}", client) from error

    def _wrong(self, hook: str, what: str, client: str | None = None, task: str | None = None) -> MethodError:
        where = [
            f"client {client}" if client else "",
            f"task {task}" if task else "",
            f"round {self._round + 1}" if self._round is not None else "",
        ]
        known = ", ".join(word for word in where if word)
        return MethodError(f"{self._name}.{hook} {what}" + (f" ({known})" if known else ""))

    def _check_tensor(
        self, hook: str, what: str, value: Any, shape: tuple[int, ...], device: torch.device, client: str | None = None
    ) -> None:
        import torch

        if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
            came = str(tuple(value.shape)) if isinstance(value, torch.Tensor) else kind_of(value)
            raise self._wrong(hook, f"returned {came} for {what!r}, expected a tensor of shape {shape}", client)
        if not value.is_floating_point() or value.layout != torch.strided or value.device.type != device.type:
            came = f"{value.dtype} ({value.layout}) on {value.device}"
            raise self._wrong(hook, f"returned {came} for {what!r}, expected floating point on {device}", client)


def _finite_rows(values: Tensor) -> list[bool]:
    """Say of every row whether it has neither NaN nor infinity, without a copy; rows that are one in memory are one."""
    if values.is_meta or not values.numel():
        return []
    rows = values[:1] if values.stride(0) == 0 else values
    low, high = rows.aminmax(dim=1)  # NaN is both
    finite: list[bool] = (low.isfinite() & high.isfinite()).tolist()
    return finite


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(member, kind) for member in value)


def _is_schedule(value: Any) -> bool:
    """Say whether it has for each epoch a tuple of kinds, or several tuples that share it."""

    def kinds(member: Any) -> bool:
        return _is_list(member, str) and bool(member) and not set(member) - set(PART_KINDS)

    def epoch(member: Any) -> bool:
        return kinds(member) or (isinstance(member, (tuple, list)) and bool(member) and all(map(kinds, member)))

    return isinstance(value, (tuple, list)) and all(map(epoch, value))


def _unsaveable(tree: Any, path: str = "") -> str | None:
    """Find what in a tree no checkpoint can hold; None if all of it can be saved."""
    import torch

    if isinstance(tree, dict):
        for key, value in tree.items():
            if not isinstance(key, str):
                return f"a {type(key).__name__} as a key below {path or 'the top'}"
            if problem := _unsaveable(value, f"{path}/{key}"):
                return problem
    elif isinstance(tree, (list, tuple)):
        return next(filter(None, (_unsaveable(value, f"{path}/{i}") for i, value in enumerate(tree))), None)
    elif isinstance(tree, torch.Tensor):
        if tree.layout != torch.strided or tree.is_meta:
            return f"a tensor ({tree.layout}, {tree.device}) at {path}"
    elif tree is not None and not isinstance(tree, (bool, int, float, str)):
        return f"{kind_of(tree)} at {path}"
    return None
