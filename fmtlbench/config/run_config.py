"""The config of a run: one frozen object that decides its numbers. `resolving.py` makes it, `checks.py` checks it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base.errors import FmtlbenchError
from ..base.located import Tree, locate, located
from ..base.names import check_name
from ..base.schema import build, limits, plain
from ..base.user_code import UserCode
from ..base.yamlfile import dump_yaml
from ..data.amounts import Amounts
from ..scenarios import Scenario, check_client_names
from .roles import Moved, roles
from .setting import EQUAL, Setting, digest, identity

if TYPE_CHECKING:
    from ..data.datasets import DatasetInfo

# Increased whenever a change of the engine changes a number that an unchanged config gives.
NUMERICS_VERSION = 3
MANY = 1_000_000  # rounds or epochs: more is a typing mistake


@dataclass(frozen=True)
class AlgorithmConfig:
    """Which method, with every option written out; `source` identifies a method given as a file."""

    name: str
    options: dict[str, Any]
    source: str | None = None  # sha256 of the user's file
    helpers: dict[str, str] = limits(dict, since={})  # sha256 of the modules beside it that it imports
    file: str | None = limits(None, role="neutral")

    @property
    def code(self) -> UserCode:
        """What identifies the method's file, if it is one."""
        return UserCode(self.source, self.helpers, self.file)


@dataclass(frozen=True)
class FederationConfig:
    """How long the federation lasts and who takes part in a round."""

    rounds: int = limits(low=1, high=MANY)
    participation: float = limits(1.0, above=0, high=1, doc="share of the clients in each round, sampled by seed")
    # decoders: one by one, also across tasks, while heads stay home (FedHCA²). models: all decoders of a client as one
    # row, with the heads where all clients have the same dataset and tasks (FMTL-Bench's whole models). Where nobody
    # says it, the scenario's paper does: `resolve` fills it in.
    exchange: Literal["decoders", "models"] | None = None
    # home: BatchNorm's running means and variances stay with the client (FedHCA², FMTL-Bench). travel: those of the
    # parts that travel are sent, aggregated and installed like parameters (MaT-FL's code).
    statistics: Literal["home", "travel"] = "home"
    # Where the models of clients wait that are not at work: in the memory of the device, of the machine, or in files.
    park: Literal["none", "cpu", "disk"] = limits("none", doc="of clients not at work; moves no number", role="neutral")
    # Faults, drawn by seed, client and round; the rows of metrics.jsonl say whom they met.
    dropout: float = limits(
        0.0, low=0, below=1, doc="chance that a client of a round delivers nothing in it", since=0.0
    )
    stragglers: float = limits(
        0.0, low=0, high=1, doc="chance that a client has time for a part of its batches only", since=0.0
    )
    straggler_work: Literal["partial", "dropped"] = limits(
        "partial",
        doc="what a straggler did of its round: it counts, or the round goes on without the client",
        since="partial",
    )
    # What clients send as updates, in fewer bytes. topk: the largest entries of each tensor. quantize: all, rounded.
    compression: Literal["none", "topk", "quantize"] = limits(
        "none", doc="of uploads, whatever the method", since="none"
    )
    compression_share: float = limits(0.1, above=0, high=1, doc="of the entries that topk sends", since=0.1)
    compression_bits: int | None = limits(
        None, low=1, high=32, doc="of each value that is sent; null = 32 for topk, 8 for quantize", since=None
    )
    error_feedback: bool = limits(
        True, doc="what compression left out is added to the client's next update", since=True
    )


@dataclass(frozen=True)
class DataConfig:
    """Which data stand for the scenario's domains, and how large."""

    source: Literal["synth", "real"]
    size: dict[str, tuple[int, int]] = limits(low=16)
    train_samples: dict[str, int] | None = limits(None, low=1)
    test_samples: dict[str, int] | None = limits(None, low=1)
    personal_fraction: float = limits(0.1, above=0, high=0.5, doc="held out of each client's data for `personal`")
    # Held out of what is left of each client's training images and scored instead of every test split, which then stays
    # unseen: for choosing options (bench --tune).
    validation: float = limits(
        0.0, low=0, high=0.5, doc="share of training images, scored in place of the test images", since=0.0
    )
    # Client → share of its training images that carry the labels of another one. Test images stay as they are.
    label_noise: dict[str, float] | None = limits(
        None, low=0, high=1, doc="by client: images with wrong labels", since=None
    )
    workers: int = limits(0, low=0, high=256, doc="loading processes for real images; moves no number", role="neutral")
    # How real images are brought to their size, in evaluation too. none: padded and cropped at their own resolution.
    # fixed: stretched, as in the MaT-FL code.
    resize: Literal["none", "fixed"] = "none"
    # Domain → the file that brings its dataset, where that is not installed (--dataset-file, or the scenario says it).
    files: dict[str, str] | None = limits(None, role="neutral")
    file_sha256: dict[str, str] | None = limits(None, doc="of these files, by domain; filled in by itself", since=None)

    def dataset(self, domain: str) -> DatasetInfo:
        """Return the dataset that stands for a domain of the scenario."""
        from ..data.datasets import dataset_for, identify_dataset_file  # here: reports read roles without datasets

        file = (self.files or {}).get(domain)
        known = (self.file_sha256 or {}).get(domain)
        if file is not None and known is not None and identify_dataset_file(file) != known:
            raise FmtlbenchError(
                f"{file}: the file that brought dataset {domain!r} has changed since, or one beside it"
            )
        return dataset_for(domain, self.source, file)

    def train_images(self, domain: str) -> int | None:
        """Return how many training images a domain has: as asked for, at most the official list; None: not known."""
        asked = (self.train_samples or {}).get(domain)
        there = self.dataset(domain).official.get("train")
        return min((n for n in (asked, there.images if there else None) if n is not None), default=None)


@dataclass(frozen=True)
class ModelConfig:
    """The network every client builds for its own tasks."""

    architecture: str = limits(doc="a name of `fmtlbench list architectures`, or the path of a .py file with one")
    backbone: str = limits(doc="a name of `fmtlbench list backbones`, or timm/ and the name of a network of timm")
    pretrained: bool
    drop_path: float = limits(0.0, low=0, high=0.9)
    # torch: every layer's own default, as in the public code. lecun: weights of variance 1/fan-in, which keeps the
    # signal's size through the head's chain of linear layers; it is what lets the nano network learn in minutes.
    init: Literal["torch", "lecun"] = "torch"
    # two_class: softmax over background and foreground. one_logit: one channel, as in the MaT-FL code.
    saliency: Literal["two_class", "one_logit"] = "two_class"
    weights: str | None = limits(
        None, doc="a local file of encoder weights instead of the backbone's own", role="neutral"
    )
    weights_sha256: str | None = limits(None, doc="of that file, or of the package's; filled in by itself")
    options: dict[str, Any] = limits(  # the network's own
        dict, since={}, moved={"task_steps": Moved("train.tc", "joint", {"fmtl-bench": "sequential"})}
    )
    code: UserCode = dataclasses.field(default_factory=UserCode)  # a network given as a file; filled in by itself


@dataclass(frozen=True)
class TrainConfig:
    """Local training."""

    optimizer: Literal["adamw", "adam", "sgd"]
    lr: float = limits(above=0)
    weight_decay: float = limits(low=0)
    batch_size: int = limits(low=1)
    local_epochs: dict[str, int] = limits(low=1, high=MANY)
    # cosine: over all local epochs, the warm-up's included. cosine_after_warmup: over those that follow it, as in the
    # FedHCA² and FMTL-Bench code. exponential: × decay in each round.
    schedule: Literal["cosine", "cosine_after_warmup", "exponential"] = "cosine"
    decay: float = limits(0.99, above=0, high=1, doc="of the exponential schedule, per round")
    # The rate rises linearly over so many local epochs (for all datasets, or by dataset), or over so many rounds.
    warmup_epochs: int | dict[str, int] = limits(0, low=0)
    warmup_rounds: int | None = limits(None, low=0, doc="instead of warmup_epochs")
    warmup_lr: float = limits(0.0, low=0)
    min_lr: float = limits(0.0, low=0)
    augment: tuple[Literal["flip", "scale", "crop", "photometric", "rotate"], ...] = ()
    scales: dict[str, tuple[float, ...]] | None = limits(
        None, above=0, doc="by dataset: two numbers to scale by anything between, more to choose from; null = [0.5, 2]"
    )
    rotate_degrees: dict[str, float] | None = limits(
        None, low=0, high=180, doc="by dataset: turned by at most so much, to either side"
    )
    loss_weights: dict[str, float] | None = limits(None, low=0, doc="overrides FedHCA²'s weights, by task")
    weighting: str = limits(
        EQUAL, doc="of a client's losses: `fmtlbench list weightings`, or a .py file with one", role="own", since=EQUAL
    )
    weighting_options: dict[str, Any] = limits(dict, role="own", since={})  # the weighting's own
    amp: Literal["none", "bf16", "fp16"] = "none"
    compile: bool = limits(
        False, doc="training steps through torch.compile; other bits, and a minute or more at first", since=False
    )
    betas: tuple[float, float] = limits((0.9, 0.999), low=0, below=1)
    amsgrad: bool = False
    optimizer_state: Literal["keep", "fresh"] = limits("keep", doc="fresh: a new optimiser in every round")
    edge_weight: dict[str, float] | None = limits(
        None, above=0, below=1, doc="of edge pixels in the edge loss, by dataset"
    )
    clip_norm: float | None = limits(None, above=0, doc="clip the gradient norm; null leaves it alone")
    threads: int | None = limits(
        None, low=1, high=1024, doc="CPU threads; null = all, then numbers depend on the machine", role="incidental"
    )

    def amounts(self, dataset: str) -> Amounts:
        """Return how much the random transforms change the images of a dataset."""
        scales = (self.scales or {}).get(dataset, Amounts.scales)
        return Amounts(scales, (self.rotate_degrees or {}).get(dataset, 0.0))

    def warmup(self, dataset: str, per_round: int) -> int:
        """Return for how many local epochs the learning rate rises; a client has `per_round` of them in a round."""
        if self.warmup_rounds is not None:
            return self.warmup_rounds * per_round
        return self.warmup_epochs[dataset] if isinstance(self.warmup_epochs, dict) else self.warmup_epochs


@dataclass(frozen=True)
class EvaluationConfig:
    """When to score; the last round always is."""

    every: int = limits(low=1, role="incidental")
    batch_size: int = limits(low=1, role="incidental")
    metrics: dict[str, str] | None = limits(None, doc="another primary metric, by task")
    metric_options: dict[str, dict[str, Any]] | None = limits(None, doc="by metric, over its and the dataset's own")
    # The models of a scored round: with the server's reply, as they were sent to it (MaT-FL's code), or each in turn.
    when: Literal["after_aggregation", "before_aggregation", "both"] = "after_aggregation"
    # Whose inner products a scored round keeps, for `plot updates`. shared: of what travels. encoder: of the encoders
    # too where these stay at home (local); nothing is sent for it, so no traffic is counted and no score changes.
    updates: Literal["shared", "encoder"] = limits("shared", role="incidental", since="shared")
    unseen_epochs: int = limits(
        5, low=1, high=MANY, doc="of an unseen client's decoders and heads, before it is scored"
    )


@dataclass(frozen=True)
class PresetFile:
    """A preset that a user gave as a file. All is empty for an installed one, whose name says it all."""

    sha256: str | None = limits(None, since=None)  # of what it says, with what it extends
    path: str | None = limits(None, role="neutral")  # where it lay
    options: dict[str, Any] = limits(dict, role="neutral")  # those that it gives the run's method; sha256 has them too


def _move_old_values(tree: Tree) -> None:
    """Move the values of older versions to their present places.

    Every old config had these values, whatever its network. If the network has no such option, the value is dropped.
    """
    from ..networks.architectures import ARCHITECTURES  # here: reports read roles without networks

    for new, moved in roles().moved.items():
        (old_section, old_name), (section, group, option) = moved.first.split("."), new.split(".")
        holder, model = tree.get(old_section), tree.get(section)
        if not (isinstance(holder, Tree) and old_name in holder and isinstance(model, Tree)) or group in model:
            continue
        value, place = holder.pop(old_name), locate(holder, old_name)
        network = ARCHITECTURES.get(model["architecture"]) if isinstance(model.get("architecture"), str) else None
        if network is not None and network.has_option(option):
            model.section(group).put(option, value, place)


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's numbers."""

    algorithm: AlgorithmConfig = limits(role="own")
    scenario: Scenario
    preset: str
    seed: int = limits(role="own")
    device: str = limits(role="incidental")  # "cpu", "cuda" or "mps": bits differ between kinds, not between cards
    federation: FederationConfig
    data: DataConfig
    model: ModelConfig
    train: TrainConfig
    evaluation: EvaluationConfig
    checkpoint_every: int = limits(1, low=1, role="neutral")
    numerics: int = limits(NUMERICS_VERSION, role="incidental")
    # "metric robustness" → sha256, and → path, of the files whose registrations the config names (plugins.py).
    plugins: dict[str, str] = limits(dict, since={})
    plugin_files: dict[str, str] = limits(dict, role="neutral")
    # Path → value, where it is not the preset's; None: not recorded. The values themselves count.
    departures: dict[str, Any] | None = limits(None, role="neutral")
    preset_file: PresetFile = dataclasses.field(default_factory=PresetFile)

    @classmethod
    def from_tree(cls, tree: Any) -> RunConfig:
        """Read back what `dump` wrote, as YAML gives it."""
        if isinstance(tree, Mapping):
            tree = located(tree, locate(tree), tree)
            _move_old_values(tree)
        config = build(cls, tree)
        # A stored file may have been edited: its names must not lead out of the folders we write to.
        names = {"algorithm.name": "method", "scenario.name": "scenario", "preset": "preset"}
        for key, kind in (names | {"model.architecture": "architecture"}).items():
            section, _, field = key.rpartition(".")
            name = getattr(getattr(config, section) if section else config, field)
            check_name(name, kind, f"{locate(tree, key)}: {key}")
        check_client_names(config.scenario, tree["scenario"])
        return config.with_exchange()

    def dump(self) -> str:
        """Return the whole config as YAML, every default written out."""
        return dump_yaml(plain(self))

    def hash(self) -> str:
        """Return the hash of all that decides the numbers; it is part of the name of the run's folder."""
        return digest(identity(plain(self)))

    def setting(self) -> Setting:
        """Return everything but method and seed: runs of equal settings may stand in one table."""
        return Setting.of(plain(self))

    def with_exchange(self) -> RunConfig:
        """Return the config with `federation.exchange` filled in: as given, else as in the scenario's paper."""
        exchange = self.federation.exchange or self.scenario.exchange
        return dataclasses.replace(self, federation=dataclasses.replace(self.federation, exchange=exchange))

    @property
    def method(self) -> str:
        """The method as `--algo` takes it, with a weighting of losses if it has one: `fedavg+uw`."""
        weighting = self.train.weighting
        return self.algorithm.name if weighting == EQUAL else f"{self.algorithm.name}+{weighting}"

    @property
    def reads_files(self) -> bool:
        """Whether some client's data are read from files, not rendered."""
        return bool(self.scenario.domains - self.rendered)

    @property
    def rendered(self) -> set[str]:
        """The domains whose images are rendered, not read."""
        return {domain for domain in self.scenario.domains if self.data.dataset(domain).source == "synth"}

    @property
    def heads_travel(self) -> bool:
        """Whole models are exchanged and all clients have the same heads."""
        alike = {(spec.dataset, frozenset(spec.tasks)) for spec in self.scenario.parties()}
        return self.federation.exchange == "models" and len(alike) == 1

    @property
    def preset_options(self) -> dict[str, Any] | None:
        """The options that a user's preset file gave the method; None: the preset is an installed one."""
        return None if self.preset_file.sha256 is None else self.preset_file.options

    def folder(self) -> Path:
        """Return the run's folder, relative to the output folder."""
        leaf = f"{self.preset}-{self.data.source}-s{self.seed}-{self.hash()[:8]}"
        return Path(self.scenario.name) / self.algorithm.name / leaf
