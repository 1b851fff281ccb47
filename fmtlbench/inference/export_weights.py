"""Write the networks of a stored run for other programs: safetensors, a model card, and the config as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from ..base.errors import FmtlbenchError, UsageError
from ..base.files import check_folder, refuse_strangers, replace_folder, write_json, write_text
from ..base.schema import plain
from ..base.words import say_count
from ..data.tensors import MEAN, STD
from ..engine.checkpoint import save_file
from ..engine.client_models import task_outputs
from ..exchange import Party
from ..networks.backbones import body_options
from ..networks.catalog import find_backbone
from ..networks.network import network_of
from ..runs.records import Score
from ..tasks import TASKS
from .stored_run import StoredRun, choose_clients

CONFIG, CARD, MODEL, ENCODER = "config.json", "README.md", "model.safetensors", "encoder.safetensors"
BODY = "encoder.body."  # what timm's names are preceded by in a whole network


def check_export_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier export, so that no other files are deleted."""
    if not folder.is_dir():
        check_folder(folder)
    elif any(folder.iterdir()) and not _is_export(folder):
        raise UsageError(f"-o {folder}: holds other files than an earlier export; choose an empty or a new folder")
    else:
        refuse_strangers(folder, _is_exported, "the export")


def _is_exported(name: str) -> bool:
    """Say whether a file, by its path from the folder, is one that an export consists of."""
    return name in (CONFIG, CARD) or (name.count("/") == 1 and name.rpartition("/")[2] in (MODEL, ENCODER))


def _is_export(folder: Path) -> bool:
    try:
        return "fmtlbench_export" in json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False


def export_weights(run: StoredRun, folder: Path, clients: Sequence[str] | None = None) -> list[Path]:
    """Write the networks of these clients (by default all), which replace an earlier export in `folder` as a whole."""
    chosen = choose_clients(run.members, clients, "--client")
    check_export_folder(folder)
    with _replacing(folder) as partial:
        for party in chosen:
            (partial / party.id).mkdir()
            with run.network(party) as model:
                _write_network(model, partial / party.id)
        about = _describe(run, chosen)
        write_json(partial / CONFIG, about)
        write_text(partial / CARD, _write_card(run, chosen, about))
    return [folder / party.id / MODEL for party in chosen]


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    try:
        with replace_folder(folder) as partial:
            yield partial
    except OSError as error:
        raise FmtlbenchError(f"-o {folder}: could not be written: {error.strerror or error}") from None


def _write_network(model: nn.Module, folder: Path) -> None:
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / MODEL)
    body = {name.removeprefix(BODY): tensor for name, tensor in tensors.items() if name.startswith(BODY)}
    save_file(body, folder / ENCODER)


def _describe(run: StoredRun, members: Sequence[Party]) -> dict[str, Any]:
    """Return what a program needs to build and feed the networks, and the run's whole config."""
    return {
        "fmtlbench_export": 1,
        "run": run.name,
        "round": run.done,
        "normalisation": {"mean": list(MEAN), "std": list(STD), "of": "RGB from 0 to 1"},
        "clients": {party.id: _describe_client(run, party) for party in members},
        "config": plain(run.files.run_config()),
    }


def _describe_client(run: StoredRun, party: Party) -> dict[str, Any]:
    config = run.config
    info, backbone, size = config.data.dataset(party.dataset), config.model.backbone, config.data.size[party.dataset]
    outputs = task_outputs(config, party.dataset, party.tasks)
    options = body_options(backbone, size, config.model.drop_path, network_of(config.model).maps)
    return {
        "dataset": info.name,
        "size": list(size),
        "timm": {"name": find_backbone(backbone).timm, "options": plain(options)},
        "tasks": {
            task: {"channels": outputs[task], "classes": list(info.class_names.get(task, ())) or None}
            for task in party.tasks
        },
    }


# -- the model card ----------------------------------------------------------------------------------------------------


def _write_card(run: StoredRun, members: Sequence[Party], about: dict[str, Any]) -> str:
    config = run.files.run_config()
    titles = sorted({config.data.dataset(party.dataset).title for party in members})
    done = f"{run.done} of {run.rounds} rounds" if run.done < run.rounds else f"{run.rounds} rounds"
    parts = [
        f"# {run.title} on {config.scenario.name}",
        f"Networks of {say_count(len(members), 'client')} of a hetero-client federated multi-task learning run: an "
        f"encoder ({config.model.backbone}) and, for each task, what decodes its maps "
        f"({config.model.architecture}). Made by fmtlbench.",
        "\n".join(
            (
                f"- method: {run.title} (`{config.algorithm.name}`)",
                f"- scenario: `{config.scenario.name}`: {config.scenario.description}",
                f"- data: {', '.join(titles)} ({config.data.source})",
                f"- training: preset `{config.preset}`, seed {config.seed}, {done}",
                f"- licence: {_licence(run, titles)}",
            )
        ),
        "## Clients\n\n" + "\n".join(_table(run, members, about)),
        "## Input and output\n\n"
        f"RGB images as numbers from 0 to 1, minus {list(MEAN)}, divided by {list(STD)}, channels first. Images are "
        f"{_say_resize(config.data.resize)} (`size` in {CONFIG}: height, width). Outputs are raw, at the image's size; "
        f"{_say_outputs(members)}.",
        "## Loading the encoder without fmtlbench\n\n" + _load_encoder(members[0], about),
        "## Loading a whole network\n\n" + _load_whole(members[0]),
    ]
    return "\n\n".join(parts) + "\n"


def _licence(run: StoredRun, titles: list[str]) -> str:
    """Return the line about what may be done with the weights."""
    config = run.files.run_config()
    bound = [f"the terms of {', '.join(titles)}"] * config.reads_files
    if config.model.pretrained and not find_backbone(config.model.backbone).shipped:
        bound.append("those of the pretrained weights that the encoder started from")
    extra = f"; {' and '.join(bound)} apply too" if bound else ""
    return f"fmtlbench is MIT-licensed and claims nothing more for the weights{extra}"


def _table(run: StoredRun, members: Sequence[Party], about: dict[str, Any]) -> Iterator[str]:
    scores: list[Score] = run.summary["scores"] if run.summary else []
    yield "| client | task | channels | classes | split | metric | score |"
    yield "|---|---|---|---|---|---|---|"
    for party in members:
        for task, told in about["clients"][party.id]["tasks"].items():
            classes = ", ".join(told["classes"] or ()) or "–"
            own = [s for s in scores if (s["client"], s["task"]) == (party.id, task) and s["primary"]]
            told_scores = [(score["split"], score["metric"], _say_score(score)) for score in own]
            for values in told_scores or [("–", "–", "–")]:
                yield "| " + " | ".join((party.id, task, str(told["channels"]), classes, *values)) + " |"


def _say_score(score: Score) -> str:
    unit = score.get("unit")
    return "–" if score["value"] is None else f"{score['value']:.4g}{f' {unit}' if unit else ''}"


def _say_resize(resize: str) -> str:
    if resize == "fixed":
        return "stretched to the network's size"
    return "padded to the network's size with the mean colour, so with zeros after the normalisation, or cropped to it"


def _say_outputs(members: Sequence[Party]) -> str:
    tasks = dict.fromkeys(task for party in members for task in party.tasks)
    return "; ".join(f"{task}: {TASKS[task].kind.raw_meaning}" for task in tasks)


def _load_encoder(party: Party, about: dict[str, Any]) -> str:
    timm = about["clients"][party.id]["timm"]
    height, width = about["clients"][party.id]["size"]
    options = "".join(f", {name}={_as_python(value)}" for name, value in timm["options"].items())
    backbone = about["config"]["model"]["backbone"]
    spec = find_backbone(backbone)
    own_size = f"`{backbone}` is a size of fmtlbench's own of this timm model." if spec.shipped else ""
    norms = ", and below `encoder.norms` a LayerNorm for each of these maps, over their last axis"
    return "\n".join(
        (
            "```python",
            "import timm",
            "import torch",
            "from safetensors.torch import load_file",
            "",
            f'encoder = timm.create_model("{timm["name"]}", features_only=True{options})',
            f'encoder.load_state_dict(load_file("{party.id}/{ENCODER}"), strict=True)',
            "encoder.eval()",
            f"image = torch.rand(1, 3, {height}, {width})  # normalised as above",
            "maps = encoder(image)  # one per scale, largest first",
            "```",
            "",
            f"`{MODEL}` has the same tensors below `{BODY}`{norms * spec.norms}. {own_size}".rstrip(),
        )
    )


def _as_python(value: Any) -> str:
    return repr(tuple(value)) if isinstance(value, list) else repr(value)


def _load_whole(party: Party) -> str:
    return "\n".join(
        (
            "The decoders are classes of fmtlbench (`fmtlbench.networks`). With the run's folder at hand:",
            "",
            "```python",
            "import fmtlbench",
            "",
            'run = fmtlbench.load("RUN")',
            f'network = run.clients["{party.id}"].model  # a torch module',
            f'answers = run.predict("{party.id}", image)  # uint8 [H, W, 3] → task → array',
            "```",
        )
    )
