"""Checks of a config that need two of its sections at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import RefusedError, nearest
from ..base.located import locate
from ..data.datasets import domains
from ..data.machine_limits import check_config_memory
from ..data.meters import fits_task
from ..metrics import METRICS
from ..networks.catalog import STRIDES, TIMM, misfit
from ..networks.network import architecture_of
from ..scenarios import check_images
from ..tasks import TASKS
from ..weightings import WEIGHTINGS
from .run_config import RunConfig


def check_together(config: RunConfig, tree: Mapping[str, Any]) -> None:
    """Check what needs two sections of the config at once; `tree` is what it was made of."""

    def complain(key: str, message: str) -> RefusedError:
        return RefusedError(f"{locate(tree, key) or config.preset}: {key}: {message}")

    for key, floor in (("train.min_lr", config.train.min_lr), ("train.warmup_lr", config.train.warmup_lr)):
        if floor > config.train.lr:
            raise complain(key, f"{floor:g} is above train.lr={config.train.lr:g}, so the rate would not fall to it")
    if config.train.warmup_rounds is not None and config.train.warmup_epochs:
        raise complain(
            "train.warmup_rounds",
            "the warm-up is counted in rounds or in local epochs (train.warmup_epochs), not in both; --set "
            "train.warmup_rounds=null or train.warmup_epochs=0 too",
        )
    used, rendered = config.scenario.domains, config.rendered
    known = domains(tuple((config.data.files or {}).values()))
    needed = {"train.local_epochs": config.train.local_epochs, "data.size": config.data.size}
    if "rotate" in config.train.augment:
        needed["train.rotate_degrees"] = config.train.rotate_degrees
    if isinstance(config.train.warmup_epochs, dict):
        needed["train.warmup_epochs"] = config.train.warmup_epochs
    if rendered:
        for name in sorted(set(config.train.augment) - {"flip"}):
            raise complain("train.augment", f"{name!r} is for real images; the embedded data take flip only")
        if config.data.resize != "none" and rendered == used:
            raise complain("data.resize", f"{config.data.resize} is for real images; the embedded ones have data.size")
    swin = config.model.backbone.removeprefix(TIMM).startswith("swin")
    if rendered != used and config.model.init == "lecun" and swin and not config.model.pretrained:
        # Zero padding and zero biases leave LayerNorm nothing to scale; each one multiplies the gradient by 300.
        raise complain("model.init", "lecun lets a Swin overflow where real images are padded; --set model.init=torch")
    counts = {"data.train_samples": config.data.train_samples, "data.test_samples": config.data.test_samples}
    for key, mapping in (needed | counts).items():
        wanted = rendered if key in counts else used
        for domain in sorted(set(mapping or {}) - set(known)):
            raise complain(f"{key}.{domain}", f"no dataset {domain!r}; {nearest(domain, known)}")
        for domain in sorted(wanted - set(mapping or {})):
            raise complain(key, f"no entry for {domain!r}, which the scenario uses")
    maps = architecture_of(config.model).maps
    if reason := misfit(config.model.backbone, maps):
        raise complain("model.backbone", reason)
    for domain in sorted(used):
        if any(edge % STRIDES[maps] for edge in config.data.size[domain]):
            size = list(config.data.size[domain])
            raise complain(f"data.size.{domain}", f"expected multiples of {STRIDES[maps]} here, got {size}")
    check_config_memory(config, complain)
    images = {domain: config.data.train_images(domain) for domain in used}
    check_images(config.scenario, images, config.data.train_samples is not None, tree["scenario"])
    for key, mapping in (
        ("train.loss_weights", config.train.loss_weights),
        ("evaluation.metrics", config.evaluation.metrics),
    ):
        for task in sorted(set(mapping or {}) - set(TASKS)):
            raise complain(f"{key}.{task}", f"no task {task!r}; {nearest(task, TASKS)}")
    taking_part, unseen = ([spec.id for spec in of()] for of in (config.scenario.parties, config.scenario.unseen))
    for client in sorted(set(config.data.label_noise or {}) - set(taking_part)):
        why = f"{client!r} is unseen and trains in no round" if client in unseen else f"no client {client!r}"
        raise complain(f"data.label_noise.{client}", f"{why}; {nearest(client, taking_part)}")
    for key in ("edge_weight", "scales", "rotate_degrees"):
        for domain in sorted(set(getattr(config.train, key) or {}) - set(known)):
            raise complain(f"train.{key}.{domain}", f"no dataset {domain!r}; {nearest(domain, known)}")
    for domain, scales in (config.train.scales or {}).items():
        if not scales or (len(scales) == 2 and scales[0] > scales[1]):
            expected = "the lowest and the highest, or numbers to choose from"
            raise complain(f"train.scales.{domain}", f"expected {expected}, got {list(scales)}")
    if config.data.resize == "fixed" and "crop" in config.train.augment:
        raise complain("train.augment", "nothing is left to crop where data.resize=fixed fits all of an image in")
    for task, name in (config.evaluation.metrics or {}).items():
        fitting = [metric for metric in METRICS if fits_task(METRICS[metric], TASKS[task])]
        if name not in fitting:
            raise complain(f"evaluation.metrics.{task}", f"no metric {name!r} of {task}; {nearest(name, fitting)}")
    if config.train.compile and WEIGHTINGS[config.train.weighting].needs_gradients:
        name = config.train.weighting
        raise complain(
            "train.weighting",
            f"{name} differentiates the losses one by one, which compiled steps cannot; --set train.compile=false",
        )
    if config.train.amsgrad and config.train.optimizer == "sgd":
        raise complain("train.amsgrad", "is for adam and adamw, not for sgd")
