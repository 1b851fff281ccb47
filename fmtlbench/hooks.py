"""A method as everybody asks it: what a hook answers is checked, and its mistakes are one line that names it.

Methods are other people's code. Wherever one is asked, it is asked through `Hooks`: an exception, a `sys.exit` or an
answer of a wrong type, shape or value becomes a `MethodError` with the method, the hook, the client and the round.
Torch is imported only to look at tensors, so that configs can be checked without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .algorithms import Algorithm, Evaluation
from .errors import FmtlbenchError, UsageError, describe_error, one_line, short_repr
from .exchange import PART_KINDS, TRAVELLING_KINDS, Party, Round
from .schema import build, plain

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from .algorithms import EpochKinds, Kinds, Local


class MethodError(FmtlbenchError):
    """A method's own mistake, or a network's."""


class ScheduleRefused(FmtlbenchError):
    """A method's word that so many local epochs make no sense for it."""


def build_options(owner: Any, given: Any, origins: Mapping[str, str], path: str = "algo") -> Any:
    """Build the Params of a method's or network's class from plain data; values that no config can hold are refused.

    Args:
        owner: The class, with `name` and `Params`.
        given: A mapping, as the config has it at `path`.
        origins: Where each value was written.
        path: Of the options in the config.
    """
    try:
        options = build(owner.Params, given, origins, path)
    except FmtlbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{owner.name}.Params: {describe_error(error)}") from error
    for name, value in plain(options).items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise UsageError(
                f"{owner.name}.Params.{name}: {short_repr(value)} cannot be an option; expected finite numbers, text, "
                "true, false, null, and lists or mappings of these"
            ) from None
    return options


def refusal_of(owner: Any, *given: Any) -> str | None:
    """Ask a class why it has no meaning for what is given, its options first; None where it has."""
    reason = call_hook(owner.name, "refuses", owner.refuses, *given)
    if reason is not None and not isinstance(reason, str):
        raise MethodError(f"{owner.name}.refuses returned {short_repr(reason)}, expected a text or None")
    return reason


def call_hook(owner: str, hook: str, call: Callable[..., Any], *given: Any) -> Any:
    """Call a hook; what goes wrong in it is told in one line with the names of owner and hook."""
    try:
        return call(*given)
    except (FmtlbenchError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise MethodError(f"{owner}.{hook} failed: {describe_error(error)}") from error


class Hooks:
    """One method at work. What is no hook (`title`, `tracks`, `params`) is passed on."""

    def __init__(self, method: type[Algorithm], options: Any, parties: Sequence[Party]) -> None:
        self._name: str = method.name
        self._round: int | None = None
        try:
            self._method = method(options, parties)
        except FmtlbenchError:
            raise
        except (Exception, SystemExit) as error:
            raise self._wrong("__init__", f"failed: {describe_error(error)}") from error
        tracks = self._method.tracks
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

    # -- the clients' hooks --------------------------------------------------------------------------------------------

    @property
    def has_objective(self) -> bool:
        """Say whether the method has a local objective of its own."""
        return type(self._method).local_objective is not Algorithm.local_objective

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


def kind_of(value: Any) -> str:
    """Return what a value is, for a message."""
    return "None" if value is None else f"a {type(value).__name__}"
