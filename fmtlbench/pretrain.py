"""Train weights for the nano encoders to tell which classes an image shows, as the papers' encoders were on ImageNet.

The scenes are those of the split `pretrain` of both embedded domains, which no run trains or is scored on. Of their
labels only the presence of a class is used, nothing pixel-level. Every feature map is pooled over the whole image, so
that all scales and their norms learn; one linear layer per domain reads the pooled values and is dropped afterwards.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn import functional as F

from .base.errors import UsageError, unknown
from .base.files import check_folder, check_output, sha256_file, write_json, write_output
from .base.seeds import stream
from .config.run_config import ModelConfig, TrainConfig
from .config.setting import digest
from .data.batches import flip
from .data.datasets.synth import DOMAINS, VERSION, SynthDataset
from .data.datasets.synth.labels import PRESENT, presence
from .data.tensors import to_tensors
from .engine.checkpoint import Checkpoint, DamagedCheckpoint, save_checkpoint, save_file, state_file, write_state
from .engine.client_models import build_model
from .engine.epoch_watch import DivergedError
from .engine.optim import learning_rate
from .engine.process_settings import process_settings
from .engine.track import Track
from .listeners import Listener
from .networks.backbones import Encoder
from .networks.catalog import BACKBONES
from .networks.weights_shipped import MANIFEST, read_manifest
from .runs.kept import available
from .runs.session import hardware, versions

HELD_OUT = 10  # one scene in ten is held out for the score
MANY = 10_000_000  # largest number of steps or scenes; more is a typing mistake
LEAST_SCENES = 40  # each domain then has 2 held out and 18 for training, of which a batch takes 16
CHECKPOINT_EVERY = 100  # steps
TOLD_EVERY = 25  # steps
CPU = torch.device("cpu")

# Optimiser and schedule, with steps in place of epochs. The number of threads changes the last bits, so it is fixed.
TRAIN = TrainConfig(
    optimizer="adamw",
    lr=3e-3,
    weight_decay=1e-2,
    batch_size=32,
    local_epochs={},
    schedule="cosine_after_warmup",
    warmup_lr=1e-5,
    min_lr=1e-5,
    betas=(0.9, 0.95),
    augment=("flip",),
    threads=1,
)


@dataclass(frozen=True)
class Plan:
    """All settings the weights depend on, besides the versions of the libraries. `scenes` counts both domains."""

    backbone: str
    steps: int = 3000
    scenes: int = 9000
    seed: int = 0
    size: tuple[int, int] = (64, 64)

    def check(self) -> None:
        """Refuse a plan that cannot be trained."""
        fitting = [name for name, spec in BACKBONES.items() if spec.shipped]
        if self.backbone not in fitting:
            raise unknown("backbone to pretrain", self.backbone, fitting, "--backbone")
        for flag, value, least in (
            ("--steps", self.steps, 1),
            ("--scenes", self.scenes, LEAST_SCENES),
            ("--seed", self.seed, 0),
        ):
            if not least <= value <= MANY:
                raise UsageError(f"{flag} {value}: expected a whole number from {least} to {MANY}")

    @property
    def train(self) -> TrainConfig:
        return dataclasses.replace(TRAIN, warmup_epochs=self.steps // 20)

    @property
    def command(self) -> str:
        """The command that makes the same weights again."""
        told = {"backbone": self.backbone, "steps": self.steps, "scenes": self.scenes, "seed": self.seed}
        return " ".join(["fmtlbench pretrain", *(f"--{flag} {value}" for flag, value in told.items())])

    def key(self) -> str:
        """Return the hash that names the checkpoints, so that a plan never continues from those of another."""
        values = {"plan": dataclasses.asdict(self), "train": dataclasses.asdict(self.train), "data": VERSION}
        return digest({**values, "versions": versions()})


@dataclass(frozen=True)
class Scenes:
    """The scenes of one domain with the classes they show; the last ones are held out."""

    dataset: SynthDataset
    shown: np.ndarray  # bool [scenes, classes]
    held_out: int

    @property
    def name(self) -> str:
        return self.dataset.name

    @property
    def classes(self) -> tuple[str, ...]:
        return self.dataset.class_names["semseg"]

    @property
    def trained(self) -> int:
        return len(self.dataset) - self.held_out

    def images(self, indices: np.ndarray, mirrored: np.ndarray | None = None) -> Tensor:
        arrays = self.dataset.batch(indices, keys=("image",))
        if mirrored is not None:
            flip(arrays, mirrored)
        return to_tensors(arrays, CPU)["image"]


class Classifier(nn.Module):
    """An encoder, and per domain a linear layer on all its maps, each averaged over the image."""

    def __init__(self, encoder: Encoder, classes: dict[str, int]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict({name: nn.Linear(sum(encoder.channels), n) for name, n in classes.items()})
        for head in self.heads.values():  # every class starts equally likely, independent of earlier random draws
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    def forward(self, images: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return logits [B, classes] by domain; the encoder sees all domains as one batch."""
        maps = self.encoder(torch.cat(list(images.values())))
        pooled = torch.cat([m.mean(dim=(2, 3)) for m in maps], dim=1)
        parts = pooled.split([len(image) for image in images.values()])
        return {name: self.heads[name](part) for name, part in zip(images, parts)}

    def parts(self) -> list[tuple[str, str | None, nn.Module]]:
        """Return the parts, like `DenseNet.parts`, for the flat parameters of a `Track`."""
        return [("encoder", None, self.encoder), *(("head", name, head) for name, head in self.heads.items())]


def pretrain(plan: Plan, folder: Path, progress: Listener | None = None) -> dict[str, Any]:
    """Train an encoder and write `<backbone>.safetensors` into `folder`, with an entry in its manifest.json.

    After an interruption, the same call continues from the last checkpoint and ends with the same bytes. Existing files
    stay unchanged until the new ones replace them.

    Returns:
        The entry of the manifest.
    """
    plan.check()
    folder, progress = check_folder(folder), progress or Listener()
    for name in (f"{plan.backbone}.safetensors", MANIFEST):
        check_output(folder / name, make_folder=True)
    read_manifest(folder)  # a damaged one is reported before minutes are spent
    work = folder / f".{plan.backbone}-{plan.key()[:8]}"
    work.mkdir(parents=True, exist_ok=True)
    with process_settings(plan.train, CPU):
        scenes = open_scenes(plan, progress)
        track = new_track(plan, scenes)
        not_reached = _train(plan, track, scenes, work, progress)
        entry = _make_entry(plan, scenes, track, not_reached)
    entry |= _write(track.model.encoder, folder / f"{plan.backbone}.safetensors")
    write_json(folder / MANIFEST, dict(sorted({**read_manifest(folder), plan.backbone: entry}.items())))
    shutil.rmtree(work, ignore_errors=True)
    return entry


def open_scenes(plan: Plan, progress: Listener) -> list[Scenes]:
    """Render both domains, or read them from the cache, and find the classes they show."""
    count = plan.scenes // len(DOMAINS)
    opened = []
    for name, spec in DOMAINS.items():
        tell = partial(progress.preparing, f"{name} pretrain data")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dataset = SynthDataset(name, "pretrain", count, plan.size, progress=tell, keys=("image", "semseg"))
        for warning in caught:
            progress.note(str(warning.message))
        shown = presence(np.asarray(dataset.arrays("semseg")), spec.classes["semseg"])
        opened.append(Scenes(dataset, shown, count // HELD_OUT))
    return opened


def new_track(plan: Plan, scenes: list[Scenes]) -> Track:
    """Return a new encoder, initialised as in a client with the FedHCA² network, with its optimiser."""
    model = ModelConfig("fedhca2", plan.backbone, pretrained=False, init="lecun")
    encoder = build_model(model, plan.size, {"semseg": 1}, plan.seed).encoder
    return Track(Classifier(encoder, {s.name: len(s.classes) for s in scenes}), plan.train, CPU)


# -- training ----------------------------------------------------------------------------------------------------------


def _train(plan: Plan, track: Track, scenes: list[Scenes], work: Path, progress: Listener) -> list[str]:
    """Run all steps after the last checkpoint; return the names of encoder parameters that get no gradient."""
    first = _resume(track, work, plan.steps, progress)
    track.model.train()
    for step in range(first, plan.steps):
        loss = train_step(plan, track, scenes, step)
        done = step + 1
        if done % TOLD_EVERY == 0 or done == plan.steps:
            progress.pretraining(plan.backbone, done, plan.steps, loss)
        if done % CHECKPOINT_EVERY == 0 and done < plan.steps:
            save_checkpoint(work, done, lambda p: {"track": write_state(state_file(p, "track"), track.state_dict())})
    return [name for name, parameter in track.model.encoder.named_parameters() if parameter.grad is None]


def train_step(plan: Plan, track: Track, scenes: list[Scenes], step: int) -> float:
    """Train on one batch of both domains, chosen by (seed, step) alone, and return its loss."""
    images, targets = {}, {}
    for s in scenes:
        rng = stream(plan.seed, "pretrain", s.name, step)
        chosen = np.sort(rng.choice(s.trained, track.train.batch_size // len(scenes), replace=False))
        images[s.name] = s.images(chosen, rng.random(len(chosen)) < 0.5)
        targets[s.name] = torch.from_numpy(s.shown[chosen]).float()
    logits = track.model(images)
    loss = sum(F.binary_cross_entropy_with_logits(logits[name], target) for name, target in targets.items())
    value = loss.item()
    if not math.isfinite(value):
        raise DivergedError(f"pretraining {plan.backbone}, step {step + 1}: the loss is {value}")
    for group in track.optimizer.param_groups:
        group["lr"] = learning_rate(track.train, step, plan.steps)
    track.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    track.optimizer.step()
    return value


def _resume(track: Track, work: Path, steps: int, progress: Listener) -> int:
    """Load the newest intact checkpoint and return the number of steps it has done, 0 if there is none."""
    for done in reversed(available(work)):
        try:
            track.load_state_dict(Checkpoint(work, done).read("track"))
        except DamagedCheckpoint as error:
            progress.note(f"damaged checkpoint: {error}")
            continue
        progress.note(f"going on after step {done} of {steps} in {work}")
        return done
    return 0


# -- scoring and writing -----------------------------------------------------------------------------------------------


@torch.no_grad()
def held_out_score(model: Classifier, scenes: list[Scenes]) -> dict[str, Any]:
    """Return the areas under the ROC curve, by class and their mean, on the held-out scenes."""
    model.eval()
    areas, constant = {}, []
    for s in scenes:
        indices = np.arange(s.trained, len(s.dataset))
        logits = [model({s.name: s.images(part)})[s.name] for part in np.array_split(indices, 1 + len(indices) // 64)]
        for label, (name, scores) in enumerate(zip(s.classes, torch.cat(logits).double().numpy().T)):
            shown = s.shown[indices, label]
            if shown.all() or not shown.any():
                constant.append(f"{s.name}/{name}")
            else:
                areas[f"{s.name}/{name}"] = round(area_under_roc(scores, shown), 4)
    mean = round(sum(areas.values()) / len(areas), 4) if areas else None
    return {
        "measure": "mean over classes of the area under the ROC curve, held-out scenes",
        "value": mean,
        "chance": 0.5,
        "by_class": areas,
        "in_all_or_no_held_out_scene": constant,
    }


def area_under_roc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the probability that a positive scores above a negative; a tie counts half."""
    count = int(positive.sum())
    above = rankdata(scores)[positive].sum() - count * (count + 1) / 2
    return float(above / (count * (len(positive) - count)))


def _make_entry(plan: Plan, scenes: list[Scenes], track: Track, not_reached: list[str]) -> dict[str, Any]:
    train = plan.train
    return {
        "command": plan.command,
        "learns": "which classes an image shows; all maps pooled, one linear layer per domain, dropped afterwards",
        "labels": f"a class is present if it covers at least {PRESENT:g} of the pixels; nothing pixel-level",
        "data": {
            s.name: {
                "version": VERSION,
                "split": s.dataset.split,
                "size": list(plan.size),
                "trained": s.trained,
                "held_out": s.held_out,
                "fingerprint": s.dataset.fingerprint,
            }
            for s in scenes
        },
        "steps": plan.steps,
        "seed": plan.seed,
        "batch_size": train.batch_size,
        "optimizer": train.optimizer,
        "lr": train.lr,
        "weight_decay": train.weight_decay,
        "warmup_steps": train.warmup_epochs,
        "schedule": "linear warm-up, then cosine",
        "threads": train.threads,
        "parameters": sum(p.numel() for p in track.model.encoder.parameters()),
        "not_reached": not_reached,
        "score": held_out_score(track.model, scenes),
        "versions": versions(),
        "hardware": hardware("cpu"),
    }


def _write(encoder: Encoder, path: Path) -> dict[str, Any]:
    """Write the encoder's tensors under timm's names, and its own norms as `norms.<scale>`, for `model.weights`."""
    tensors = {name.removeprefix("body."): value.detach().clone() for name, value in encoder.state_dict().items()}
    write_output(path, lambda temporary: save_file(tensors, temporary))
    return {"file": path.name, "sha256": sha256_file(path), "bytes": path.stat().st_size}
