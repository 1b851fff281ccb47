"""Turn everything but the clients into overrides of the configuration, and note what has no counterpart."""

from __future__ import annotations

from typing import Any

from ._clients import domain_of
from ._reader import Reader

BACKBONES = {
    "swin-t": "swin_tiny",
    "swin_t": "swin_tiny",
    "swin-s": "swin_small",
    "swin_s": "swin_small",
    "swin-b": "swin_base",
    "swin_b": "swin_base",
    "resnet18": "resnet18",
}
# Key of a list entry → (configuration key, kind, lowest value).
ENTRY = {
    "val_batch": ("evaluation.batch_size", "a whole number", 1),
    "nworkers": ("data.workers", "a whole number", 0),
    "lr": ("train.lr", "a number", 0),
    "weight_decay": ("train.weight_decay", "a number", 0),
    "warmup_epochs": ("train.warmup_epochs", "a whole number", 0),
}
# Flags of the public training scripts; some people keep them in the same file.
FLAGS = {
    "max_rounds": ("federation.rounds", "a whole number", 1),
    "eval_freq": ("evaluation.every", "a whole number", 1),
}
# Flag → method → option.
METHOD_FLAGS = {
    "ca_c": {"fedhca2": "c"},
    "cagrad_c": {"fedhca2": "c", "cagrad": "c"},
    "enc_alpha_init": {"fedhca2": "alpha"},
    "dec_beta_init": {"fedhca2": "beta"},
    "mu": {"fedprox": "mu"},
    "lamda": {"fedamp": "lam"},
    "sigma": {"fedamp": "sigma"},
    "alphak": {"fedamp": "alpha"},
}
METHODS = {
    "none": "local",
    "fedavg": "fedavg",
    "fedprox": "fedprox",
    "fedamp": "fedamp",
    "ditto": "ditto",
    "manytask": "matfl",
    "pcgrad": "pcgrad",
    "cagrad": "cagrad",
    "fedmtl": "fedmtl",
    "fedhca2": "fedhca2",
    "conflict_averse": "fedhca2",
    "cross_attention": "fedhca2",
}
ENCODERS_ALONE = ("local", "matfl")  # methods that never send decoders
OUTPUT = "where the public script writes; here: fmtlbench run --out"
UNMAPPED_TOP = {
    **dict.fromkeys(("exp", "results_dir", "root_dir", "exp_dir", "checkpoint_dir", "config_path", "configs"), OUTPUT),
    "wandb_name": "logging is not part of a scenario",
    "save_vram": "where the server step runs; it moves no number",
    "local_rank": "a process number of the public script",
}
UNMAPPED_MODEL = {
    "n_class": "follows from the dataset",
    "n_fc": "the sizes of the task-conditioned network are fixed",
    "dim_latent": "the sizes of the task-conditioned network are fixed",
    "decoder_type": "decided by model.architecture",
    "head_type": "decided by model.architecture",
}


def is_fmtl_bench(top: Reader, entries: list[Reader]) -> bool:
    """Return whether the file is FMTL-Bench's: it has `backbone` and `noniid`, where FedHCA²'s has `backbone_type`."""
    model = top.data.get("Model")
    if isinstance(model, dict) and "backbone_type" in model:
        return False
    return isinstance(model, dict) or any("noniid" in entry.data for entry in entries)


def method_of(top: Reader, given: str | None) -> tuple[str, dict[str, Any]]:
    """Return the method's name and options: as the user asks, else by the flags, else as the hyper weights imply."""
    encoder, decoder = (top.get(key, "text") for key in ("encoder_agg", "decoder_agg"))
    if given:
        return given, {}
    if encoder is None and decoder is None:
        implied = "fedhca2" if {"Hyperweight", "Hypernetwork"} & set(top.data) else "local"
        top.notes.remarks.append(f"The method is a flag of the public script: {implied} taken, --algo NAME for another")
        return implied, {}
    parts = []
    for key, word in (("encoder_agg", encoder or "none"), ("decoder_agg", decoder or "none")):
        if word not in METHODS:
            top.note(key, f"no method {word!r} here; taken as none")
        parts.append(METHODS.get(word, "local"))
    first, second = parts
    if first == second or (second == "local" and first in ENCODERS_ALONE):
        return first, {}
    if second == "local":
        return first, {"algo.decoder": "none"} if first == "fedhca2" else {"algo.shared": "encoder"}
    if (first, second) == ("local", "fedhca2"):
        return "fedhca2", {"algo.encoder": "none"}
    top.note(
        "decoder_agg", f"{first} for encoders with {second} for decoders is no method here; {first} taken for both"
    )
    return first, {}


def overrides_of(top: Reader, entries: list[Reader], method: str, gpus: int) -> dict[str, Any]:
    """Return the values that have a counterpart, by dotted configuration key."""
    values: dict[str, Any] = {}
    for key, (target, kind, low) in FLAGS.items():
        _put(values, target, top.get(key, kind, low=low))
    if top.get("fp16", "true or false", False):
        values["train.amp"] = "fp16"
    for entry in entries:
        _put(values, f"train.local_epochs.{domain_of(entry)}", entry.get("local_epochs", "a whole number", low=1))
        batch = entry.get("tr_batch", "a whole number", low=1)
        _put_once(values, "train.batch_size", batch and batch * gpus, entry, "tr_batch")
        for key, (target, kind, low) in ENTRY.items():
            _put_once(values, target, entry.get(key, kind, low=low), entry, key)
        if "train.warmup_epochs" in values:
            values["train.warmup_rounds"] = None  # the public code counts epochs, whatever its paper says
        optimizer = entry.get("optimizer", "text")
        if optimizer in (None, "adamw", "adam", "sgd"):
            _put_once(values, "train.optimizer", optimizer, entry, "optimizer")
        else:
            entry.note("optimizer", f"no optimiser {optimizer!r} here; the preset's is taken")
        transforms = "the preset's data.size and train.augment decide"
        entry.note_if_there({"train_transforms": transforms, "val_transforms": transforms})
        entry.finish(("client_num", "noniid", "task_dict"))
    if any("tr_batch" in entry.data for entry in entries):
        top.notes.remarks.append(
            f"tr_batch is per GPU in the public code: train.batch_size is tr_batch × {gpus} "
            "(two GPUs give the papers' 8; --gpus N for another number)"
        )
    _read_model(top.inner("Model"), values)
    _read_hyper_weights(top, values, method)
    for key, by_method in METHOD_FLAGS.items():
        value = top.get(key, "a number", low=0)
        if value is not None and method in by_method:
            values[f"algo.{by_method[method]}"] = value
        elif value is not None:
            top.note(key, f"an option of {' and '.join(by_method)}, not of {method}")
    return values


def network_of(top: Reader) -> dict[str, Any]:
    """Return the override that chooses FMTL-Bench's network: its scripts decide, and only that of TC has a `Mode`."""
    mode = top.get("Mode", "text")
    if mode == "tc":
        return {"model.architecture": "tc"}
    if mode is not None:
        top.note("Mode", f"{mode!r} conditions the network otherwise; tc is the only way here")
    top.notes.remarks.append(
        "The public scripts decide the network: the preset's taken (MD, main_md.py), TC (main.py) by --set "
        "model.architecture=tc"
    )
    return {}


def _read_model(model: Reader, values: dict[str, Any]) -> None:
    for key in ("backbone_type", "backbone"):
        name = model.get(key, "text")
        if name in BACKBONES:
            values["model.backbone"] = BACKBONES[name]
        elif name is not None:
            model.note(key, f"no backbone {name!r} here (there are {', '.join(BACKBONES)}); the preset's is taken")
    _put(values, "model.pretrained", model.get("backbone_pretrained", "true or false"))
    model.note_if_there(UNMAPPED_MODEL)
    model.finish()


def _read_hyper_weights(top: Reader, values: dict[str, Any], method: str) -> None:
    both = top.inner("Hypernetwork")
    groups = [top.inner("Hyperweight"), both.inner("enc_opt"), both.inner("dec_opt")]
    for group in groups:
        for key in ("lr", "weight_decay", "momentum"):
            value = group.get(key, "a number", low=0)
            if method == "fedhca2":
                _put_once(values, f"algo.{key}", value, group, key)
        group.finish()
    both.finish()
    if method != "fedhca2":
        top.note_if_there(dict.fromkeys(("Hyperweight", "Hypernetwork"), f"options of fedhca2, not of {method}"))


def _put(values: dict[str, Any], target: str, value: Any) -> None:
    if value is not None:
        values[target] = value


def _put_once(values: dict[str, Any], target: str, value: Any, entry: Reader, key: str) -> None:
    """Put a value that all clients share; note a different one later in the file."""
    if value is not None and values.setdefault(target, value) != value:
        entry.note(key, f"{target} is one value for all; {values[target]} of an earlier entry is kept")
