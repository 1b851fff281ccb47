"""Find and build the network of a config; check what its code returns and report mistakes in one line.

Networks may be users' code. Torch is imported only to check what was built, so that configs can be checked without it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..base.errors import FmtlbenchError, UsageError, nearest, short_repr, unknown
from ..base.user_code import UserCode, check_class, read_user_code
from ..exchange import PART_KINDS
from ..exchange.hooks import MethodError, build_options, call_hook, kind_of, refusal_of
from ..tasks import in_order
from .architectures import ARCHITECTURES, Architecture
from .catalog import STRIDES

if TYPE_CHECKING:
    from ..config.run_config import ModelConfig, RunConfig
    from .backbones import Encoder
    from .net import DenseNet

OPTIONS = "model.options"
TEXTS = ("title", "description", "paper")

# Classes of users' files, by content, so that each file is executed once per process.
_classes: dict[str, type[Architecture]] = {}
_networks: dict[str, Network] = {}  # by name, content and options


def find_architecture(name: str, where: str) -> tuple[type[Architecture], UserCode]:
    """Return the class of a registered name or of a file's path, checked, and what identifies its code.

    Raises:
        UsageError: There is no such name, or the file has no such class; `where` names the setting in the message.
    """
    found = check_class(ARCHITECTURES.resolve(name, where), Architecture, "architecture", TEXTS, where)
    if found.maps not in STRIDES:
        choice = nearest(str(found.maps), STRIDES)
        raise UsageError(f"{where}: {found.__qualname__}.maps: no maps {short_repr(found.maps)}; {choice}")
    code = read_user_code(name)
    if code.file is not None:
        _classes[_key(found.name, code)] = found
    return found, code


def network_of(model: ModelConfig) -> Network:
    """Return the network that a config names, with its options.

    Raises:
        FmtlbenchError: Its file is missing, or was changed after the config was made.
    """
    key = _key(model.architecture, model.code, model.options)
    if key not in _networks:
        options = build_options(architecture_of(model), model.options, OPTIONS)
        _networks[key] = Network(architecture_of(model), options, model.code)
    return _networks[key]


def architecture_of(model: ModelConfig) -> type[Architecture]:
    """Return the class of the network that a config names."""
    if model.code.file is None:
        if model.architecture not in ARCHITECTURES:  # by name only, so that a stored config cannot execute a file
            raise unknown("architecture", model.architecture, ARCHITECTURES, "model.architecture")
        return ARCHITECTURES[model.architecture]
    key = _key(model.architecture, model.code)
    if key not in _classes:
        if not model.code.is_unchanged():
            raise FmtlbenchError(
                f"model.architecture: {model.code.file} is not there, or not as it was when the run was set up"
            )
        return find_architecture(model.code.file, "model.architecture")[0]
    return _classes[key]


def _key(name: str, code: UserCode, options: Mapping[str, Any] | None = None) -> str:
    return json.dumps([name, code.source, code.helpers, options], sort_keys=True)


class Network:
    """One network with its options, ready to be built for any client."""

    def __init__(self, architecture: type[Architecture], options: Any, code: UserCode) -> None:
        self.name, self.maps, self.one_decoder = architecture.name, architecture.maps, bool(architecture.one_decoder)
        self._class, self._options, self._code = architecture, options, code
        self._network = call_hook(self.name, "__init__", architecture, options)
        self._tried: set[tuple] = set()  # outputs and image sizes that a user's network was tried on

    def refusal(self, config: RunConfig) -> str | None:
        """Return the network's reason why it cannot be used in a run; None if it can."""
        return refusal_of(self._class, self._options, config)

    def task_steps(self, tasks: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the tasks of each optimiser step on a batch; refuse an answer without each task exactly once."""
        steps = self._ask("task_steps", tasks)
        listed = isinstance(steps, (list, tuple)) and all(isinstance(step, (list, tuple)) and step for step in steps)
        if not listed or sorted(task for step in steps for task in step) != sorted(tasks):
            raise self._wrong(
                "task_steps", f"returned {short_repr(steps)} for {list(tasks)}, expected each task in one tuple"
            )
        return [tuple(step) for step in steps]

    @property
    def adds_up_gradients(self) -> bool:
        """Whether a step on a batch also carries the gradients of the steps before it."""
        return bool(self._network.adds_up_gradients)

    def build(self, encoder: Encoder, outputs: Mapping[str, int], everybody: Mapping[str, int]) -> DenseNet:
        """Build the network of one client.

        Args:
            encoder: The client's encoder.
            outputs: Task → number of output channels, of the client's own tasks.
            everybody: The same for all tasks of the federation.
        """
        from .net import DenseNet

        model = self._ask("build", encoder, dict(outputs), {task: everybody[task] for task in in_order(everybody)})
        if not isinstance(model, DenseNet):
            raise self._wrong(
                "build",
                f"returned {kind_of(model)}, expected a fmtlbench.networks.net.DenseNet, for example "
                "PerTaskNet(encoder, decoders, heads)",
            )
        if model.encoder is not encoder:
            raise self._wrong("build", "returned a network with another encoder than the one it was given")
        if model.tasks != tuple(outputs):
            raise self._wrong("build", f"returned a network for {list(model.tasks)}, expected {list(outputs)}")
        self._check_parts(model)
        if self._code.file is not None:
            self._check_outputs(model, outputs)
        return model

    def _check_parts(self, model: DenseNet) -> None:
        """Check that every parameter is in exactly one part, and that every part has a valid kind and task."""
        from torch import nn

        parts = self._ask("parts", call=model.parts)
        for part in parts:
            kind, task, module = part if isinstance(part, tuple) and len(part) == 3 else (None, None, None)
            if kind not in PART_KINDS or task not in (None, *model.tasks) or not isinstance(module, nn.Module):
                raise self._wrong(
                    "parts", f'has {short_repr(part)}, expected for example ("decoder", "{model.tasks[0]}", module)'
                )
            if kind == "decoder" and (task is None) != self.one_decoder:
                expected = "None, since one_decoder is true" if self.one_decoder else "one of the client's tasks"
                raise self._wrong("parts", f"has a decoder of {task!r}, expected {expected}")
        places = Counter(id(parameter) for _, _, module in parts for parameter in module.parameters())
        for name, parameter in model.named_parameters():
            if places[id(parameter)] != 1:
                raise self._wrong("parts", f"has {name} in {places[id(parameter)]} parts, expected it in one")

    def _check_outputs(self, model: DenseNet, outputs: Mapping[str, int]) -> None:
        """Check on one image that every task has outputs of the right shape, once per kind of client."""
        import torch

        size = tuple(model.encoder.size)
        if (tried := (tuple(outputs.items()), size)) in self._tried:
            return
        was_training = model.training
        model.eval()
        image = torch.zeros(1, 3, *size, device=next(model.parameters()).device)
        with torch.no_grad():
            raw = self._ask("forward", image, call=model)
        model.train(was_training)
        for task, channels in outputs.items():
            found, expected = getattr(raw.get(task), "shape", None), (1, channels, *size)
            if found is None or tuple(found) != expected:
                came = kind_of(raw.get(task)) if found is None else tuple(found)
                raise self._wrong("decode", f"gives {came} for {task!r}, expected a tensor of shape {expected}")
        self._tried.add(tried)

    def _ask(self, hook: str, *given: Any, call: Callable[..., Any] | None = None) -> Any:
        return call_hook(self.name, hook, call or getattr(self._network, hook), *given)

    def _wrong(self, hook: str, what: str) -> MethodError:
        return MethodError(f"{self.name}.{hook} {what}")
