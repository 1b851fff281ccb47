"""Sizes of the published networks, number by number, against what the public code reports."""

from __future__ import annotations

import pytest
import torch
from golden_files import load
from nets import NYUD, shapes_only

from fmtlbench.networks.complexity import parameters

PASCAL = {"semseg": 21, "human_parts": 7, "normals": 3, "edge": 1, "sal": 2}
NETWORKS = {
    "MD_resnet18_nyud4": ("md", "resnet18", (448, 576), NYUD),
    "TC_resnet18_nyud4": ("tc", "resnet18", (448, 576), NYUD),
    "MD_swin-t_nyud4": ("md", "swin_tiny", (448, 576), NYUD),
    "TC_swin-t_nyud4": ("tc", "swin_tiny", (448, 576), NYUD),
    "FedHCA2_swin-t_pascalcontext5": ("fedhca2", "swin_tiny", (512, 512), PASCAL),
    "FedHCA2_swin-t_nyud4": ("fedhca2", "swin_tiny", (448, 576), NYUD),
}


def count(module):
    return sum(p.numel() for p in module.parameters())


def shapes(module):
    return sorted(list(p.shape) for p in module.parameters())


def made(name):
    """What the public code reports, our network without storage, its counts and its outputs by task."""
    recorded = load("E_models/param_counts.json")
    assert recorded.keys() == NETWORKS.keys()
    model = shapes_only(*NETWORKS[name])
    return recorded[name], model, parameters(model), NETWORKS[name][-1]


@pytest.mark.parametrize("name", NETWORKS)
def test_totals(name):
    public, model, counts, _ = made(name)
    assert count(model) == sum(counts.values()) == public["total"]
    assert counts["encoder"] == public["encoder"]
    assert counts.get("task_embedding", 0) == public.get("task_embedding", 0)
    if "head_total" in public:
        assert (counts["decoder"], counts["head"]) == (public["decoder_total"], public["head_total"])
    else:  # FMTL-Bench counts the last layers among the decoders
        assert counts["decoder"] + counts.get("head", 0) == public.get("decoder_total", public.get("decoder"))


@pytest.mark.parametrize("name", NETWORKS)
def test_every_task(name):
    public, model, _, outputs = made(name)
    if "decoder_per_task" not in public:  # one decoder for all tasks: its last layer alone is known
        assert count(model.decoder.last) == public["conv_last"]
        return
    heads = {task: count(model.heads[task]) for task in outputs}
    assert heads == public.get("head_per_task", public.get("conv_last_per_task"))
    inside = {task: 0 if "head_per_task" in public else heads[task] for task in outputs}
    assert {task: count(model.decoders[task]) + inside[task] for task in outputs} == public["decoder_per_task"]


@pytest.mark.parametrize("name", ["FedHCA2_swin-t_pascalcontext5", "FedHCA2_swin-t_nyud4"])
def test_tensors_and_outputs_of_fedhca2(name):
    public, model, _, outputs = made(name)
    expected = lambda tensors: sorted(tensor["shape"] for tensor in tensors)
    assert len(shapes(model.encoder)) == public["encoder_named_parameters_count"]
    if "encoder_tensors" in public:
        assert shapes(model.encoder) == expected(public["encoder_tensors"])
    for task in outputs:
        assert shapes(model.decoders[task]) == expected(public["decoder_tensors"])
        assert shapes(model.heads[task]) == expected(public["head_tensors"][task])
    size = NETWORKS[name][2]
    with torch.no_grad():
        result = model.eval()(torch.empty(1, 3, *size, device="meta"))
    assert {task: list(result[task].shape) for task in outputs} == public["output_shapes"]
