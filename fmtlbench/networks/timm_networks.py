"""Find out how to ask timm for a network so that it gives the maps an architecture decodes.

Networks are built without storage, and tried on one image without content: nothing is computed and nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from ..base.errors import UsageError, first_line, nearest
from .catalog import STRIDES, TIMM, Maps

PYRAMID = (4, 8, 16, 32)  # strides


@dataclass(frozen=True)
class Form:
    """The options of `timm.create_model` that give the maps, and whether these have their channels last."""

    options: dict[str, Any]
    channels_last: bool


def create_body(name: str, options: dict[str, Any]) -> nn.Module:
    """Build a network of timm that returns feature maps, with random weights."""
    import timm

    return timm.create_model(name, pretrained=False, features_only=True, **options)


def shared_options(size: tuple[int, int], drop_path: float, sized: bool) -> dict[str, Any]:
    """Return the options that do not depend on the maps; a `sized` network is laid out for one input size."""
    # The drop path rate is always given, because timm's default is not 0. Windows keep their size even on maps smaller
    # than they are. Otherwise clients with other image sizes would have encoders of other shapes, which cannot be
    # averaged.
    fixed = {"img_size": size, "always_partition": True} if sized else {}
    return {"drop_path_rate": drop_path, **fixed}


@lru_cache(maxsize=32)
def find_form(name: str, size: tuple[int, int], drop_path: float, maps: Maps) -> Form:
    """Return the form of timm's network `name` with these maps for images of `size`.

    Raises:
        UsageError: It has no such maps, no drop path, or cannot take such images.
    """
    wanted = shared_options(size, drop_path, _is_sized(name))
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        body, options = _create_with_known(name, wanted, size)
        if drop_path and "drop_path_rate" not in options:
            raise UsageError(f"model.drop_path: {TIMM}{name} has no drop path, got {drop_path:g}; valid: 0")
        if maps == "dilated":
            options["output_stride"] = STRIDES[maps]
            body = _create_dilated(name, options)
        options["out_indices"] = _choose_maps(name, [entry["reduction"] for entry in body.feature_info.info], maps)
        return Form(options, _has_channels_last(name, options, size))


def _refuse(name: str, reason: str) -> UsageError:
    return UsageError(f"model.backbone: {TIMM}{name} {reason}")


def _is_sized(name: str) -> bool:
    """Return whether the network is laid out for one input size; refuse weights that timm does not know."""
    import timm

    try:
        config = timm.get_pretrained_cfg(name)
    except RuntimeError:
        network, _, tag = name.partition(".")
        tags = [full.partition(".")[2] for full in timm.list_pretrained(f"{network}.*")]
        raise _refuse(network, f"has no weights {tag!r}; {nearest(tag, tags)}") from None
    return config is not None and bool(config.fixed_input_size)


def _create_with_known(name: str, wanted: dict[str, Any], size: tuple[int, int]) -> tuple[nn.Module, dict[str, Any]]:
    """Build the network with those of the wanted options that it has; return it and them."""
    options = dict(wanted)
    while True:
        try:
            return create_body(name, options), options
        except Exception as error:  # timm's networks refuse with any kind of exception
            lacking = [option for option in options if isinstance(error, TypeError) and f"'{option}'" in str(error)]
            if not lacking:
                reason = f"gives no feature maps for images of {_times(size)}: {first_line(error)}"
                raise _refuse(name, reason) from None
            options = {option: value for option, value in options.items() if option not in lacking}


def _create_dilated(name: str, options: dict[str, Any]) -> nn.Module:
    try:
        return create_body(name, options)
    except Exception:  # as above
        raise _refuse(name, "has no dilated form, which this architecture needs") from None


def _choose_maps(name: str, strides: list[int], maps: Maps) -> tuple[int, ...]:
    """Return the indices of the maps asked for; of several with one stride the deepest is taken."""
    deepest = {stride: index for index, stride in enumerate(strides)}
    if maps == "dilated":
        if strides[-1] != STRIDES[maps]:
            raise _refuse(name, f"has no dilated form: its last map has stride {strides[-1]}, not {STRIDES[maps]}")
        return (len(strides) - 1,)
    if missing := [stride for stride in PYRAMID if stride not in deepest]:
        raise _refuse(
            name, f"has maps of stride {_join(deepest)}, expected {_join(PYRAMID)}; missing: {_join(missing)}"
        )
    stem = (2,) if maps == "all" and 2 in deepest else ()
    return tuple(deepest[stride] for stride in (*stem, *PYRAMID))


@torch.no_grad()
def _has_channels_last(name: str, options: dict[str, Any], size: tuple[int, int]) -> bool:
    """Try the network on one image; refuse maps of other shapes than timm announces."""
    try:
        body = create_body(name, options)
        found = [tuple(m.shape[1:]) for m in body.eval()(torch.empty(1, 3, *size))]
    except Exception as error:  # as above
        raise _refuse(name, f"cannot take images of {_times(size)}: {first_line(error)}") from None
    edges = [(size[0] // stride, size[1] // stride) for stride in body.feature_info.reduction()]
    channels = body.feature_info.channels()
    expected = [(c, *edge) for c, edge in zip(channels, edges)]
    last = [(*edge, c) for c, edge in zip(channels, edges)]
    if found not in (expected, last):
        given, announced = (", ".join(map(_times, shapes)) for shapes in (found, expected))
        raise _refuse(name, f"gives maps of {given} for images of {_times(size)}, expected {announced}")
    return found == last


def _times(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape))


def _join(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
