"""Load an encoder's initial weights from timm, the package or a file: once per process, all tensors or none.

Torch is not imported at the top, so that a configuration can get a file's hash without it.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import FmtlbenchError, UsageError
from ..base.files import sha256_file
from .catalog import BACKBONES, Maps, find_backbone
from .weights_file import check_path, read_tensors
from .weights_hub import fetch
from .weights_shipped import shipped_path, shipped_sha256

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..config.run_config import ModelConfig
    from .backbones import Encoder

SHOWN = 3  # names per problem in a message; the exception carries all
COUNTER = "num_batches_tracked"  # of BatchNorm: old files lack it, and nothing here uses it
WRAPPED = ("model.", "body.")  # FeatureGetterNet's and FeatureHookNet's name for the network inside
NORMS = "norms."  # the encoder's own norms after every scale, which only the files of the package have


class WeightsError(FmtlbenchError):
    """Weights that do not fit the encoder.

    Attributes:
        missing: the encoder's tensors that the weights lack.
        unexpected: tensors that neither the encoder nor the classifier it was cut from has.
        shapes: name → (shape that came, shape expected).
    """

    def __init__(self, message: str, missing: list[str], unexpected: list[str], shapes: dict[str, tuple]) -> None:
        super().__init__(message)
        self.missing, self.unexpected, self.shapes = missing, unexpected, shapes


@dataclass(frozen=True)
class Weights:
    """Named tensors, their source for messages, and what identifies them."""

    source: str
    tensors: dict[str, Tensor]
    identity: dict[str, str]


def resolved(model: ModelConfig) -> ModelConfig:
    """Return the config with the hash of its weights file, which identifies the file in a run's hash."""
    if model.weights is not None:
        file, found = f"model.weights: {model.weights}", sha256_file(check_path(Path(model.weights)))
    elif _is_shipped(model):
        file, found = f"model.pretrained: {shipped_path(model.backbone)}", shipped_sha256(model.backbone)
    elif model.weights_sha256 is not None:
        raise UsageError("model.weights_sha256: model.weights is not set, so there is no file to compare it with")
    else:
        return model
    if model.weights_sha256 not in (None, found):
        raise UsageError(f"{file} has sha256 {found}, expected {model.weights_sha256}")
    return dataclasses.replace(model, pretrained=True, weights_sha256=found)


def _is_shipped(model: ModelConfig) -> bool:
    """Return whether the encoder starts from weights of the package; an unknown backbone is refused elsewhere."""
    return model.pretrained and model.backbone in BACKBONES and BACKBONES[model.backbone].shipped


def starting_point(model: ModelConfig) -> bool | str:
    """Return the `pretrained` argument of `Encoder`: a file's path, True for the backbone's own, False for none."""
    return model.weights or model.pretrained


def weights_identity(model: ModelConfig) -> dict[str, str]:
    """Return what identifies the encoder's initial weights: their source and content, never their path."""
    start = starting_point(model)
    return _read(*_make_key(model.backbone, start)).identity if start else {"source": "none"}


def describe_weights(model: ModelConfig) -> str:
    """Return in words which weights the encoder of a resolved config starts from, or could; nothing is read."""
    content = f" (sha256 {model.weights_sha256[:8]})" if model.weights_sha256 else ""
    if model.weights:
        return f"those of {model.weights}{content}"
    spec = find_backbone(model.backbone)
    own = f"the package's{content}" if spec.shipped else f"timm's {spec.timm}"
    return own if model.pretrained else f"none, it starts from scratch; --set model.pretrained=true takes {own}"


def check_weights(model: ModelConfig, size: tuple[int, int], maps: Maps) -> list[str]:
    """Fetch the weights and load them into an encoder with these maps, to find problems before a run starts.

    Returns:
        How the weights had to be adapted, as notes for the user.
    """
    from .backbones import Encoder

    start = starting_point(model)
    if not start:
        return []
    return Encoder(model.backbone, size, start, model.drop_path, maps).adapted


def load_pretrained(encoder: Encoder, backbone: str, pretrained: bool | str, options: dict[str, Any]) -> None:
    """Load all parameters and running statistics of an encoder's body, and those of its norms if the weights have them.

    Args:
        encoder: whose body timm made with features_only=True and `options`.
        backbone: its name.
        pretrained: True for the backbone's own weights, else the path of a file.
        options: what the body was made with.
    """
    widths = tuple(encoder.channels) if encoder.norms is not None else ()
    plain = tuple((k, _make_hashable(v)) for k, v in sorted(options.items()))
    fit = _fit(_make_key(backbone, pretrained), find_backbone(backbone).timm, plain, widths)
    norms = {n.removeprefix(NORMS): t for n, t in fit.tensors.items() if n.startswith(NORMS)}
    encoder.body.load_state_dict({n: t for n, t in fit.tensors.items() if not n.startswith(NORMS)}, strict=True)
    if norms:
        encoder.norms.load_state_dict(norms, strict=True)
    encoder.adapted = list(fit.notes)


# -- reading -----------------------------------------------------------------------------------------------------------


def _make_key(backbone: str, pretrained: bool | str) -> tuple:
    """Return the cache key of the weights; it changes when the file is replaced."""
    spec = find_backbone(backbone)
    if pretrained is True and not spec.shipped:
        return "timm", spec.timm
    path = shipped_path(backbone) if pretrained is True else check_path(Path(pretrained).absolute())
    stat = path.stat()
    kind, what = ("shipped", backbone) if pretrained is True else ("file", str(path))
    return kind, what, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=1)  # all clients of a run use the same weights
def _read(kind: str, what: str, *_stamp: int) -> Weights:
    if kind == "timm":
        return _read_from_timm(what)
    if kind == "shipped":
        return _read_from_package(what)
    return Weights(what, read_tensors(Path(what)), {"source": "file", "sha256": sha256_file(Path(what))})


def _read_from_timm(name: str) -> Weights:
    path, full = fetch(name)
    return Weights(full, read_tensors(path), {"source": "timm", "name": full, "sha256": sha256_file(path)})


def _read_from_package(backbone: str) -> Weights:
    path, sha256 = shipped_path(backbone), shipped_sha256(backbone)
    return Weights(str(path), read_tensors(path), {"source": "fmtlbench", "name": backbone, "sha256": sha256})


# -- fitting -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    tensors: dict[str, Tensor]  # by the encoder's own names
    notes: tuple[str, ...]


def _make_hashable(value: Any) -> Any:
    return tuple(map(_make_hashable, value)) if isinstance(value, (list, tuple)) else value


@lru_cache(maxsize=4)  # one per image size
def _fit(key: tuple, name: str, options: tuple[tuple[str, Any], ...], widths: tuple[int, ...]) -> _Fit:
    """Return the weights in the encoder's names and shapes, or raise WeightsError with all that does not fit.

    `widths` are those of the encoder's norms, which weights without norms leave unchanged.
    """
    import timm
    import torch

    from .timm_networks import create_body

    weights = _read(*key)
    with torch.device("meta"):  # only names and shapes of these two are needed
        encoder = create_body(name, dict(options)).state_dict()
        whole = timm.create_model(name, **{k: v for k, v in options if k != "out_indices"})
        if any(tensor.startswith(NORMS) for tensor in weights.tensors):
            norms = {f"{NORMS}{i}.{kind}": torch.empty(w) for i, w in enumerate(widths) for kind in ("weight", "bias")}
            encoder |= norms
    attempts = [(weights.tensors, ())]
    if convert := getattr(sys.modules[type(whole).__module__], "checkpoint_filter_fn", None):
        attempts.append(_convert(convert, weights.tensors, whole))
    problems = []
    for tensors, notes in attempts:
        fit, *wrong = _match(tensors, encoder, whole.state_dict())
        if not any(wrong):
            return _Fit(fit, notes)
        problems.append(wrong)
    raise _describe_misfit(weights, name, *min(problems, key=lambda wrong: sum(map(len, wrong))))


def _convert(convert, tensors: dict[str, Tensor], whole: nn.Module) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Convert names with timm's own function, which also resizes tables of relative positions to the window."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # timm's interpolation warns about future versions of torch
            out = convert(dict(tensors), whole)
    except Exception:  # weights of another architecture: the original names give the better message
        return tensors, ()
    resized = [n for n in out if n in tensors and n.endswith("bias_table") and out[n].shape != tensors[n].shape]
    note = f"{len(resized)} tables of relative positions were resized to the encoder's windows"
    return out, (note,) if resized else ()


def _match(tensors: dict[str, Tensor], encoder: dict[str, Tensor], whole: dict[str, Tensor]) -> tuple:
    """Return (fit, missing, unexpected, shapes); an encoder's `layers_0` is the classifier's `layers.0`."""
    given = {_plain(name): name for name in tensors}
    wrapper = _wrapper_of(encoder)
    fit, missing, shapes = {}, [], {}
    for name, expected in encoder.items():
        theirs = given.get(_plain(name.removeprefix(wrapper)))
        if theirs is None and name.endswith(COUNTER):
            fit[name] = expected.new_zeros((), device="cpu")
        elif theirs is None:
            missing.append(name)
        elif tensors[theirs].shape != expected.shape:
            shapes[name] = tuple(tensors[theirs].shape), tuple(expected.shape)
        else:
            fit[name] = tensors[theirs]
    own = {_plain(name.removeprefix(wrapper)) for name in encoder}
    known = own | set(map(_plain, whole))
    classifier = {name.split(".")[0] for name in whole if _plain(name) not in own}
    unexpected = [name for plain, name in given.items() if plain not in known and name.split(".")[0] not in classifier]
    return fit, missing, unexpected, shapes


def _wrapper_of(encoder: Iterable[str]) -> str:
    """Return what timm puts before all names of a network that it wraps as a whole; usually nothing."""
    return next((prefix for prefix in WRAPPED if all(name.startswith(prefix) for name in encoder)), "")


def _plain(name: str) -> str:
    return name.replace("_", ".")


def _describe_misfit(weights: Weights, name: str, missing: list, unexpected: list, shapes: dict) -> WeightsError:
    said = []
    if missing:
        close = difflib.get_close_matches(missing[0], unexpected or list(weights.tensors), n=1)
        said.append(f"{len(missing)} missing ({_list_some(missing)}{f'; nearest there: {close[0]}' if close else ''})")
    if unexpected:
        said.append(f"{len(unexpected)} unexpected ({_list_some(unexpected)})")
    if shapes:
        shown = (f"{key} {list(came)} instead of {list(expected)}" for key, (came, expected) in shapes.items())
        said.append(f"{len(shapes)} of another shape ({_list_some(list(shown))})")
    return WeightsError(
        f"weights {weights.source} do not fit the encoder {name}: {'; '.join(said)}. "
        "Weights must have all of an encoder's tensors: check model.backbone",
        missing,
        unexpected,
        shapes,
    )


def _list_some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
