"""Make the encoder weights of the package anew: fmtlbench/weights/<backbone>.safetensors and their manifest.json.

Run: python benchmarks/make_weights.py     Some minutes for each of the two on one core; `make weights` calls it.

An encoder learns which classes an image shows, as the papers' encoders did on ImageNet. The scenes are those of the
split `pretrain` of both embedded domains, which no run trains or is scored on. Of their labels only the presence of a
class is used, nothing pixel-level. Every feature map is pooled over the whole image, so that all scales and their norms
learn; one linear layer per domain reads the pooled values and is dropped afterwards. The number of threads is fixed,
since it changes the last bits: the same machine makes the same bytes again.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn import functional as F

from fmtlbench.base.files import check_output, sha256_file, write_json, write_output
from fmtlbench.base.seeds import stream
from fmtlbench.config.run_config import ModelConfig, TrainConfig
from fmtlbench.data.batches import flip
from fmtlbench.data.datasets.synth import DOMAINS, VERSION, SynthDataset
from fmtlbench.data.tensors import to_tensors
from fmtlbench.engine.client_models import build_model
from fmtlbench.engine.epoch_losses import DivergedError
from fmtlbench.engine.optim import learning_rate
from fmtlbench.engine.process_settings import process_settings
from fmtlbench.engine.track import Track
from fmtlbench.listeners import Listener
from fmtlbench.listeners.bars import Bars
from fmtlbench.networks.backbones import Encoder
from fmtlbench.networks.catalog import BACKBONES
from fmtlbench.networks.weights_shipped import FOLDER, MANIFEST, read_manifest
from fmtlbench.runs.session import hardware, versions

COMMAND = "python benchmarks/make_weights.py"
SHIPPED = tuple(name for name, spec in BACKBONES.items() if spec.shipped)
PRESENT = 0.005  # fraction of an image's pixels (20 of 64×64); an object with fewer is hardly visible
HELD_OUT = 10  # one scene in ten is held out for the score
SEED = 0
CPU = torch.device("cpu")

# Optimiser and schedule, with steps in place of epochs.
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


def make_weights(
    backbone: str,
    folder: Path = FOLDER,
    steps: int = 3000,
    scenes: int = 9000,
    size: tuple[int, int] = (64, 64),
    progress: Listener | None = None,
) -> dict[str, Any]:
    """Train an encoder, write its file and its entry of the manifest into `folder`, and return the entry."""
    progress = progress or Listener()
    file = folder / f"{backbone}.safetensors"
    for path in (file, folder / MANIFEST):
        check_output(path, make_folder=True)
    folder.mkdir(parents=True, exist_ok=True)
    read_manifest(folder)  # a damaged one is reported before minutes are spent
    train = dataclasses.replace(TRAIN, warmup_epochs=steps // 20)
    with process_settings(train, CPU):
        opened = open_scenes(scenes, size, progress)
        model = ModelConfig("fedhca2", backbone, pretrained=False, init="lecun")  # as a client with that network begins
        encoder = build_model(model, size, {"semseg": 1}, SEED).encoder
        track = Track(Classifier(encoder, {s.name: len(s.classes) for s in opened}), train, CPU)
        track.model.train()
        for step in range(steps):
            train_step(track, opened, step, steps)
            progress.preparing(backbone, step + 1, steps)
        entry = describe(track, opened, steps, size)
    tensors = {name.removeprefix("body."): value.detach().clone() for name, value in encoder.state_dict().items()}
    write_output(file, lambda temporary: save_file(tensors, temporary))
    entry |= {"file": file.name, "sha256": sha256_file(file), "bytes": file.stat().st_size}
    write_json(folder / MANIFEST, dict(sorted({**read_manifest(folder), backbone: entry}.items())))
    return entry


def open_scenes(count: int, size: tuple[int, int], progress: Listener) -> list[Scenes]:
    """Render both domains, or read them from the cache, and find the classes they show; `count` is of both."""
    opened = []
    each = count // len(DOMAINS)
    for name, spec in DOMAINS.items():
        tell = partial(progress.preparing, f"{name} pretrain data")
        dataset = SynthDataset(name, "pretrain", each, size, progress=tell, keys=("image", "semseg"))
        opened.append(Scenes(dataset, presence(dataset.arrays("semseg"), spec.classes["semseg"]), each // HELD_OUT))
    return opened


def presence(semseg: np.ndarray, classes: int) -> np.ndarray:
    """Return which classes cover at least the fraction `PRESENT` of an image's pixels, bool [..., classes].

    `semseg` is [..., H, W]; unlabelled pixels count as pixels and belong to no class.
    """
    semseg = np.asarray(semseg)
    height, width = semseg.shape[-2:]
    pixels = [(semseg == label).sum(axis=(-2, -1)) for label in range(classes)]
    return np.stack(pixels, axis=-1) >= PRESENT * height * width


def train_step(track: Track, scenes: list[Scenes], step: int, steps: int) -> None:
    """Train on one batch of both domains, chosen by (seed, step) alone."""
    images, targets = {}, {}
    for s in scenes:
        rng = stream(SEED, "pretrain", s.name, step)
        chosen = np.sort(rng.choice(s.trained, track.train.batch_size // len(scenes), replace=False))
        images[s.name] = s.images(chosen, rng.random(len(chosen)) < 0.5)
        targets[s.name] = torch.from_numpy(s.shown[chosen]).float()
    logits = track.model(images)
    loss = sum(F.binary_cross_entropy_with_logits(logits[name], target) for name, target in targets.items())
    if not math.isfinite(loss.item()):
        raise DivergedError(f"step {step + 1}: the loss is {loss.item()}")
    for group in track.optimizer.param_groups:
        group["lr"] = learning_rate(track.train, step, steps)
    track.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    track.optimizer.step()


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
    return {
        "measure": "mean over classes of the area under the ROC curve, held-out scenes",
        "value": round(sum(areas.values()) / len(areas), 4) if areas else None,
        "chance": 0.5,
        "by_class": areas,
        "in_all_or_no_held_out_scene": constant,
    }


def area_under_roc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the probability that a positive scores above a negative; a tie counts half."""
    count = int(positive.sum())
    above = rankdata(scores)[positive].sum() - count * (count + 1) / 2
    return float(above / (count * (len(positive) - count)))


def describe(track: Track, scenes: list[Scenes], steps: int, size: tuple[int, int]) -> dict[str, Any]:
    """Return what the manifest tells of a trained encoder, besides its file."""
    encoder, train = track.model.encoder, track.train
    return {
        "command": COMMAND,
        "learns": "which classes an image shows; all maps pooled, one linear layer per domain, dropped afterwards",
        "labels": f"a class is present if it covers at least {PRESENT:g} of the pixels; nothing pixel-level",
        "data": {
            s.name: {
                "version": VERSION,
                "split": s.dataset.split,
                "size": list(size),
                "trained": s.trained,
                "held_out": s.held_out,
                "fingerprint": s.dataset.fingerprint,
            }
            for s in scenes
        },
        "steps": steps,
        "seed": SEED,
        "batch_size": train.batch_size,
        "optimizer": train.optimizer,
        "lr": train.lr,
        "weight_decay": train.weight_decay,
        "warmup_steps": train.warmup_epochs,
        "schedule": "linear warm-up, then cosine",
        "threads": train.threads,
        "parameters": sum(p.numel() for p in encoder.parameters()),
        "not_reached": [name for name, p in encoder.named_parameters() if p.grad is None],
        "score": held_out_score(track.model, scenes),
        "versions": versions(),
        "hardware": hardware("cpu"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, metavar="DIR", help="default: the package's own")
    args = parser.parse_args()
    for backbone in SHIPPED:
        began, progress = perf_counter(), Bars()
        try:
            entry = make_weights(backbone, args.output, progress=progress)
        finally:
            progress.end()
        print(
            f"{args.output / entry['file']}: sha256 {entry['sha256']}, held-out AUC {entry['score']['value']} "
            f"(chance 0.5), {(perf_counter() - began) / 60:.1f} min"
        )


if __name__ == "__main__":
    main()
