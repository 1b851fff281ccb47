"""The one frozen object a run is a function of, and how preset, scenario, options and overrides become it."""

from __future__ import annotations

import dataclasses
import json
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .algorithms import ALGORITHMS, Algorithm
from .data.amounts import Amounts
from .data.catalog import DOMAINS, dataset_for
from .errors import RefusedError, UsageError, nearest, short_repr, shorten, unknown
from .exchange import Party
from .files import sha256_file
from .hooks import Hooks, ScheduleRefused, build_options, refusal_of
from .memory import check_config_memory
from .meters import check_metric_options
from .metrics import METRICS
from .models.catalog import MAPS, STRIDES, misfit
from .models.weights import resolved
from .names import check_name
from .presets import read_preset
from .scenarios import Parameters, Scenario, check_client_names, check_images, check_scenario, read_scenario
from .schema import build, build_mapping, limits, locate, plain
from .setting import Setting, digest, identity
from .tasks import TASKS
from .yamlfile import dump_yaml, parse_scalar

# Raised whenever a change of the engine moves a number that an unchanged config gives.
NUMERICS_VERSION = 3
MANY = 1_000_000  # rounds or epochs: more is a typing mistake


@dataclass(frozen=True)
class AlgorithmConfig:
    """Which method, with every option written out; `source` identifies a method given as a file."""

    name: str
    options: dict[str, Any]
    source: str | None = None  # sha256 of the user's file
    helpers: dict[str, str] = dataclasses.field(default_factory=dict)  # sha256 of the modules beside it that it imports
    file: str | None = None


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
    park: Literal["none", "cpu", "disk"] = limits("none", doc="of clients not at work; moves no number")


@dataclass(frozen=True)
class DataConfig:
    """Which data stand for the scenario's domains, and how large."""

    source: Literal["synth", "real"]
    size: dict[str, tuple[int, int]] = limits(low=16)
    train_samples: dict[str, int] | None = limits(None, low=1)
    test_samples: dict[str, int] | None = limits(None, low=1)
    personal_fraction: float = limits(0.1, above=0, high=0.5, doc="held out of each client's data for `personal`")
    workers: int = limits(0, low=0, high=256, doc="loading processes for real images; moves no number")
    # How real images are brought to their size, in evaluation too. none: padded and cropped at their own resolution.
    # fixed: stretched, as in the MaT-FL code.
    resize: Literal["none", "fixed"] = "none"

    def train_images(self, domain: str) -> int:
        """How many training images a domain has: as many as asked for, of real data at most the official list."""
        asked = (self.train_samples or {}).get(domain)
        there = dataset_for(domain, self.source).official.get("train")
        return min(n for n in (asked, there.images if there else None) if n is not None)


@dataclass(frozen=True)
class ModelConfig:
    """The network every client builds for its own tasks."""

    architecture: Literal["fedhca2", "md", "tc", "matfl"]
    backbone: str
    pretrained: bool
    drop_path: float = limits(0.0, low=0, high=0.9)
    # torch: every layer's own default, as in the public code. lecun: weights of variance 1/fan-in, which keeps the
    # signal's size through the head's chain of linear layers; it is what lets the nano network learn in minutes.
    init: Literal["torch", "lecun"] = "torch"
    # two_class: softmax over background and foreground. one_logit: one channel, as in the MaT-FL code.
    saliency: Literal["two_class", "one_logit"] = "two_class"
    weights: str | None = limits(None, doc="a local file of encoder weights instead of the backbone's own")
    weights_sha256: str | None = limits(None, doc="of that file, or of the package's; filled in by itself")

    @property
    def one_decoder(self) -> bool:
        """One decoder serves all tasks, so the models of any clients have the same shapes."""
        return self.architecture == "tc"


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
    amp: Literal["none", "bf16", "fp16"] = "none"
    compile: bool = limits(False, doc="training steps through torch.compile; other bits, and a minute or more at first")
    betas: tuple[float, float] = limits((0.9, 0.999), low=0, below=1)
    amsgrad: bool = False
    optimizer_state: Literal["keep", "fresh"] = limits("keep", doc="fresh: a new optimiser in every round")
    edge_weight: dict[str, float] | None = limits(
        None, above=0, below=1, doc="of edge pixels in the edge loss, by dataset"
    )
    # How the task-conditioned network learns its tasks: one encoder pass and one step for all (joint) or one per task
    # (sequential); public: sequential without clearing the gradients in between, as the FMTL-Bench code does.
    tc: Literal["joint", "sequential", "public"] = "joint"
    clip_norm: float | None = limits(None, above=0, doc="clip the gradient norm; null leaves it alone")
    threads: int | None = limits(
        None, low=1, high=1024, doc="CPU threads; null = all, then numbers depend on the machine"
    )

    def amounts(self, dataset: str) -> Amounts:
        """How much the random transforms do to the images of a dataset."""
        scales = (self.scales or {}).get(dataset, Amounts.scales)
        return Amounts(scales, (self.rotate_degrees or {}).get(dataset, 0.0))

    def warmup(self, dataset: str, per_round: int) -> int:
        """How many local epochs the learning rate rises for a client that has `per_round` of them in a round."""
        if self.warmup_rounds is not None:
            return self.warmup_rounds * per_round
        return self.warmup_epochs[dataset] if isinstance(self.warmup_epochs, dict) else self.warmup_epochs


@dataclass(frozen=True)
class EvaluationConfig:
    """When to score; the last round always is."""

    every: int = limits(low=1)
    batch_size: int = limits(low=1)
    metrics: dict[str, str] | None = limits(None, doc="another primary metric, by task")
    metric_options: dict[str, dict[str, Any]] | None = limits(None, doc="by metric, over its and the dataset's own")
    # The models of a scored round: with the server's reply, as they were sent to it (MaT-FL's code), or each in turn.
    when: Literal["after_aggregation", "before_aggregation", "both"] = "after_aggregation"
    unseen_epochs: int = limits(
        5, low=1, high=MANY, doc="of an unseen client's decoders and heads, before it is scored"
    )


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's numbers."""

    algorithm: AlgorithmConfig
    scenario: Scenario
    preset: str
    seed: int
    device: str  # "cpu", "cuda" or "mps": bits differ between kinds, not between cards
    federation: FederationConfig
    data: DataConfig
    model: ModelConfig
    train: TrainConfig
    evaluation: EvaluationConfig
    checkpoint_every: int = limits(1, low=1)
    numerics: int = NUMERICS_VERSION

    @classmethod
    def from_tree(cls, tree: Any, origins: Mapping[str, str]) -> RunConfig:
        """Read back what `dump` wrote, as YAML gives it; `origins` says on which line each value stands."""
        config = build(cls, tree, origins)
        # A stored file is somebody's word: what it calls things must not lead out of the folders we write to.
        for key, kind in (("algorithm.name", "method"), ("scenario.name", "scenario"), ("preset", "preset")):
            section, _, field = key.rpartition(".")
            name = getattr(getattr(config, section) if section else config, field)
            check_name(name, kind, f"{locate(key, origins)}: {key}")
        check_client_names(config.scenario, origins, "scenario")
        return config._with_exchange()

    def dump(self) -> str:
        """The whole config as YAML, every default written out."""
        return dump_yaml(plain(self))

    def hash(self) -> str:
        """The canonical hash of all that decides the numbers: it names the run's folder."""
        return digest(identity(plain(self)))

    def setting(self) -> Setting:
        """Everything but method and seed: runs with equal ones may stand in one table."""
        return Setting.of(plain(self))

    def _with_exchange(self) -> RunConfig:
        """What the clients exchange: as said, else as the scenario's paper has it."""
        exchange = self.federation.exchange or self.scenario.exchange
        return dataclasses.replace(self, federation=dataclasses.replace(self.federation, exchange=exchange))

    @property
    def heads_travel(self) -> bool:
        """Whole models are exchanged and all clients have the same heads."""
        alike = {(spec.dataset, frozenset(spec.tasks)) for spec in self.scenario.parties()}
        return self.federation.exchange == "models" and len(alike) == 1

    def folder(self) -> Path:
        """Where the run lives below the output folder."""
        leaf = f"{self.preset}-{self.data.source}-s{self.seed}-{self.hash()[:8]}"
        return Path(self.scenario.name) / self.algorithm.name / leaf


def parse_overrides(assignments: Iterable[str], flag: str = "--set", example: str = "train.lr=1e-3") -> dict[str, Any]:
    """`["train.lr=1e-3"]` → {"train.lr": 0.001}; malformed ones are named."""
    values = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(f"{flag} {shorten(text)}: expected key=value, for example {example}")
        try:
            values[key.strip()] = parse_scalar(value)
        except UsageError as error:
            raise UsageError(f"{flag} {shorten(text)}: {short_repr(value)} is not a value: {error}") from None
    return values


def resolve(
    algo: str,
    scenario: str,
    preset: str = "nano",
    seed: int = 0,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Preset + scenario + algorithm options + overrides → one checked config."""
    seed = _check_seed(seed)
    method = _check_method(ALGORITHMS.resolve(algo, "--algo"))
    tree, origins = _put_together(scenario, preset, overrides, method.name)
    options = build_options(method, tree.pop("algo"), origins)
    is_file = algo.endswith(".py")
    algorithm = {
        "name": method.name,
        "options": plain(options),
        "source": sha256_file(Path(algo)) if is_file else None,
        "helpers": _helpers_of(algo) if is_file else {},
        "file": algo if is_file else None,
    }
    config = _check({**tree, "algorithm": algorithm, "seed": seed, "device": device}, origins)
    reason = refusal_of(method, options, config.scenario, config.federation) or _incongruent(config, method, options)
    if reason:
        raise RefusedError(f"{method.name} on {config.scenario.name}: {reason}")
    return config


def _helpers_of(algo: str) -> dict[str, str]:
    """Path from the method's folder → sha256, of the modules that the method's file has imported from there."""
    folder = Path(algo).resolve().parent
    return {file.relative_to(folder).as_posix(): sha256_file(file) for file in ALGORITHMS.helper_files()}


def resolve_without_method(
    scenario: str,
    preset: str = "nano",
    seed: int = 0,
    device: str = "cpu",
    overrides: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Preset + scenario + overrides → a checked config of no method: what any method's runs there have in common."""
    tree, origins = _put_together(scenario, preset, overrides)
    del tree["algo"]
    nobody = {"name": "", "options": {}}
    return _check({**tree, "algorithm": nobody, "seed": _check_seed(seed), "device": device}, origins)


def resolve_setting(
    scenario: str, preset: str = "nano", device: str = "cpu", overrides: Mapping[str, Any] | None = None
) -> Setting:
    """Preset + scenario + overrides → their setting, whatever method may run in it."""
    return resolve_without_method(scenario, preset, device=device, overrides=overrides).setting()


def resolve_options(algo: str, preset: str, overrides: Mapping[str, Any]) -> tuple[type[Algorithm], Any]:
    """(the method, its options as preset and overrides give them), whether or not a scenario is one for it."""
    method = _check_method(ALGORITHMS.resolve(algo, "--algo"))
    tree, origins = read_preset(preset)
    own = {key.removeprefix("algo."): plain(value) for key, value in overrides.items() if key.startswith("algo.")}
    options = _preset_options(tree.get("algorithms"), method.name, origins) | own
    return method, build_options(method, options, origins)


def _put_together(
    scenario: str, preset: str, overrides: Mapping[str, Any] | None, method: str | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """(the values of preset, scenario file and overrides, with the method's options as `algo`; where each is from)."""
    tree, origins = read_preset(preset)
    tree.pop("description", None)
    tree["preset"] = preset
    tree["algo"] = _preset_options(tree.pop("algorithms", None), method, origins)
    name, scenario_tree, scenario_origins = read_scenario(scenario)
    tree["scenario"] = {"name": name, **scenario_tree}
    origins |= {f"scenario.{k}" if k else "scenario": v for k, v in scenario_origins.items()}
    parameters = Parameters(name, tree["scenario"], origins, "scenario")
    for key, value in (overrides or {}).items():
        flag = f"--set {key}={_show(value)}"
        _check_key(key, flag)
        if parameters.take(key, plain(value), flag):
            continue
        _assign(tree, key, plain(value), flag)
        for stale in [path for path in origins if path.startswith(f"{key}.")]:
            del origins[stale]
        origins[key] = flag
        sections = key.split(".")[:-1]
        for depth in range(1, len(sections) + 1):  # sections that no file has
            origins.setdefault(".".join(sections[:depth]), flag)
    parameters.fill(tree["scenario"])
    return tree, origins


def _check(tree: Mapping[str, Any], origins: Mapping[str, str]) -> RunConfig:
    """Build the config and check all that no method decides."""
    config = build(RunConfig, tree, origins)._with_exchange()
    config = dataclasses.replace(config, model=resolved(config.model))
    check_scenario(config.scenario, origins, "scenario")
    _cross_check(config, origins)
    options = check_metric_options(config, origins)
    return dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, metric_options=options))


def _preset_options(entries: Any, name: str | None, origins: dict[str, str]) -> dict[str, Any]:
    """What a preset's `algorithms` says of the method `name`; where it says so goes to `origins`."""
    options: dict[str, Any] = {}
    for entry, given in build_mapping(entries or {}, origins, "algorithms").items():
        where = locate(f"algorithms.{entry}", origins)
        if entry not in ALGORITHMS:
            raise unknown("algorithm", entry, ALGORITHMS, f"{where}: algorithms")
        if entry == name:
            options = build_mapping(given, origins, f"algorithms.{entry}")
            origins |= {f"algo.{key}": locate(f"algorithms.{entry}.{key}", origins) for key in options}
    return options


def _incongruent(config: RunConfig, method: type[Algorithm], options: Any) -> str | None:
    """Why the method does not fit the clients' local epochs or their models."""
    specs = config.scenario.parties()
    instance = Hooks(method, options, [Party(s.index, s.id, s.dataset, s.tasks, samples=1) for s in specs])
    return _no_schedule(config, instance) or _no_whole_models(config, instance)


def _no_schedule(config: RunConfig, instance: Hooks) -> str | None:
    for dataset in dict.fromkeys(spec.dataset for spec in config.scenario.parties()):
        try:
            instance.local_schedule(config.train.local_epochs[dataset])
        except ScheduleRefused as error:
            return f"local epochs of {dataset}: {error}"
    return None


def _no_whole_models(config: RunConfig, instance: Hooks) -> str | None:
    """Why whole models cannot be exchanged: the tables' NULL. The task-conditioned network fits any clients."""
    decoders = sorted({len(spec.tasks) for spec in config.scenario.parties()})
    if config.federation.exchange == "decoders" or config.model.one_decoder or len(decoders) == 1:
        return None
    if not any("decoder" in instance.shared(index) for index in range(config.federation.rounds)):
        return None
    return (
        f"whole models of clients with {' and '.join(map(str, decoders))} tasks do not fit together (the papers' "
        f"NULL); exchange encoders only{_encoder_only(instance)}, or decoders one by one: "
        "--set federation.exchange=decoders"
    )


def _encoder_only(method: Hooks) -> str:
    names = {f.name for f in dataclasses.fields(method.Params)}
    options = {"shared": "encoder", "decoder": "none", "unify_every": "null"}
    return "".join(f" (--set algo.{name}={value})" for name, value in options.items() if name in names)


def _check_seed(seed: Any) -> int:
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise UsageError(f"--seed {shorten(seed)}: expected a whole number, 0 or more and of at most 18 digits")
    return int(seed)


def _check_method(method: Any) -> type[Algorithm]:
    """A user's class, before anything is trained with it."""
    if not (isinstance(method, type) and issubclass(method, Algorithm)):
        raise UsageError(f"--algo: {method.__qualname__} is not a subclass of fmtlbench.algorithms.Algorithm")
    check_name(
        method.name, "method", f"--algo: {method.__qualname__}.name"
    )  # it may have been changed after registering
    for name in ("title", "paper"):
        if name not in vars(method):  # inherited ones would label its rows as its parent's
            raise UsageError(f'--algo: {method.__qualname__} has no {name} of its own; add {name} = "…" to the class')
        if not isinstance(getattr(method, name), str):
            raise UsageError(f"--algo: {method.__qualname__}.{name}: expected text, got {getattr(method, name)!r:.80}")
    if not dataclasses.is_dataclass(method.Params):
        raise UsageError(f"--algo: {method.__qualname__}.Params is not a dataclass; add @dataclass(frozen=True)")
    return method


# What an override may reach, and the flag that decides what it may not.
SECTIONS = ("algo", "checkpoint_every", "data", "evaluation", "federation", "model", "scenario", "train")
ELSEWHERE = {
    "algorithm": "the method is chosen by --algo, its options are algo.<option>",
    "algorithms": "these are a preset's options of all methods; those of this run's method are algo.<option>",
    "preset": "the preset is chosen by --preset",
    "seed": "the seed is given by --seed",
    "device": "the device is chosen by --device",
    "numerics": "the version of the engine cannot be chosen",
}


def _check_key(key: str, flag: str) -> None:
    section, *rest = key.split(".")
    if section in ELSEWHERE:
        raise UsageError(f"{flag}: {ELSEWHERE[section]}")
    if section not in SECTIONS:
        raise unknown("section", section, SECTIONS, flag)
    if section == "scenario" and rest in ([], ["name"]):
        raise UsageError(f"{flag}: the scenario is chosen by --scenario and named by its file")
    if not all(rest):
        raise UsageError(f"{flag}: a name is missing between two dots")


def _assign(tree: dict, key: str, value: Any, flag: str) -> None:
    *parents, leaf = key.split(".")
    node: Any = tree
    for depth, part in enumerate(parents):
        node = node[_index(node, part, flag)] if isinstance(node, list) else node.setdefault(part, {})
        if not isinstance(node, (dict, list)):
            raise UsageError(f"{flag}: {'.'.join(parents[: depth + 1])} is a value, not a section")
    node[_index(node, leaf, flag) if isinstance(node, list) else leaf] = value


def _index(node: list, part: str, flag: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        valid = f"an index from 0 to {len(node) - 1}" if node else "nothing here, the list is empty"
        raise UsageError(f"{flag}: expected {valid}, got {part!r}")
    return int(part)


def _show(value: Any) -> str:
    return shorten(value, lambda v: v if isinstance(v, str) else json.dumps(plain(v), default=str), longest=200)


def _cross_check(config: RunConfig, origins: Mapping[str, str]) -> None:
    """Checks that need two sections at once."""

    def complain(key: str, message: str) -> RefusedError:
        return RefusedError(f"{locate(key, origins) or config.preset}: {key}: {message}")

    for key, floor in (("train.min_lr", config.train.min_lr), ("train.warmup_lr", config.train.warmup_lr)):
        if floor > config.train.lr:
            raise complain(key, f"{floor:g} is above train.lr={config.train.lr:g}, so the rate would not fall to it")
    if config.train.warmup_rounds is not None and config.train.warmup_epochs:
        raise complain(
            "train.warmup_rounds",
            "the warm-up is counted in rounds or in local epochs (train.warmup_epochs), not in both; --set "
            "train.warmup_rounds=null or train.warmup_epochs=0 too",
        )
    domains = {spec.dataset for spec in config.scenario.everybody()}
    needed = {"train.local_epochs": config.train.local_epochs, "data.size": config.data.size}
    if "rotate" in config.train.augment:
        needed["train.rotate_degrees"] = config.train.rotate_degrees
    if isinstance(config.train.warmup_epochs, dict):
        needed["train.warmup_epochs"] = config.train.warmup_epochs
    if config.data.source == "synth":
        needed |= {"data.train_samples": config.data.train_samples, "data.test_samples": config.data.test_samples}
        for name in sorted(set(config.train.augment) - {"flip"}):
            raise complain("train.augment", f"{name!r} is for real images; the embedded data take flip only")
        if config.data.resize != "none":
            raise complain("data.resize", f"{config.data.resize} is for real images; the embedded ones have data.size")
    elif config.model.init == "lecun" and config.model.backbone.startswith("swin") and not config.model.pretrained:
        # Zero padding and zero biases leave LayerNorm nothing to scale; each one multiplies the gradient by 300.
        raise complain("model.init", "lecun lets a Swin overflow where real images are padded; --set model.init=torch")
    for key, mapping in needed.items():
        for domain in sorted(set(mapping or {}) - set(DOMAINS)):
            raise complain(f"{key}.{domain}", f"no dataset {domain!r}; {nearest(domain, DOMAINS)}")
        for domain in sorted(domains - set(mapping or {})):
            raise complain(key, f"no entry for {domain!r}, which the scenario uses")
    maps = MAPS[config.model.architecture]
    if reason := misfit(config.model.backbone, maps):
        raise complain("model.backbone", reason)
    for domain in sorted(domains):
        if any(edge % STRIDES[maps] for edge in config.data.size[domain]):
            size = list(config.data.size[domain])
            raise complain(f"data.size.{domain}", f"expected multiples of {STRIDES[maps]} here, got {size}")
    check_config_memory(config, complain)
    images = {domain: config.data.train_images(domain) for domain in domains}
    check_images(config.scenario, images, config.data.train_samples is not None, origins, "scenario")
    for key, mapping in (
        ("train.loss_weights", config.train.loss_weights),
        ("evaluation.metrics", config.evaluation.metrics),
    ):
        for task in sorted(set(mapping or {}) - set(TASKS)):
            raise complain(f"{key}.{task}", f"no task {task!r}; {nearest(task, TASKS)}")
    for key in ("edge_weight", "scales", "rotate_degrees"):
        for domain in sorted(set(getattr(config.train, key) or {}) - set(DOMAINS)):
            raise complain(f"train.{key}.{domain}", f"no dataset {domain!r}; {nearest(domain, DOMAINS)}")
    for domain, scales in (config.train.scales or {}).items():
        if not scales or (len(scales) == 2 and scales[0] > scales[1]):
            expected = "the lowest and the highest, or numbers to choose from"
            raise complain(f"train.scales.{domain}", f"expected {expected}, got {list(scales)}")
    if config.data.resize == "fixed" and "crop" in config.train.augment:
        raise complain("train.augment", "nothing is left to crop where data.resize=fixed fits all of an image in")
    for task, name in (config.evaluation.metrics or {}).items():
        fitting = [metric for metric in METRICS if task in METRICS[metric].tasks]
        if name not in fitting:
            raise complain(f"evaluation.metrics.{task}", f"no metric {name!r} of {task}; {nearest(name, fitting)}")
    if config.model.architecture != "tc" and "train.tc" in origins and origins["train.tc"].startswith("--set"):
        raise complain("train.tc", "is for model.architecture=tc; the other networks learn all tasks at once")
    if config.train.tc == "public" and config.train.amp == "fp16":
        raise complain("train.tc", "public adds up gradients over steps, which fp16 scales differently; try bf16")
    if config.train.amsgrad and config.train.optimizer == "sgd":
        raise complain("train.amsgrad", "is for adam and adamw, not for sgd")
