"""The FMTL-Bench decoders, step by step as the paper's code computes them, and what makes TC networks congruent."""

from __future__ import annotations

import pytest
import torch
from nets import NYUD, SMALL, network
from torch import nn
from torch.nn import functional as F

from fmtlbench.config.run_config import ModelConfig
from fmtlbench.engine.client_models import build_model
from fmtlbench.networks.backbones import Encoder
from fmtlbench.networks.fmtl_tc import ConditionedBlock, TaskEmbedding, TCNet, pooled, task_codes

IMAGE = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
BACKBONES = ["swin_nano", "resnet_nano"]


def plain_blocks(decoder, maps, run, levels):
    """The definition, with every step spelt out."""
    up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    skips = [run(getattr(decoder, f"skip{i}"), m) for i, m in enumerate(maps)]
    x = skips[-1]
    for i in range(levels - 1, 0, -1):
        x = run(getattr(decoder, f"up{i}"), torch.cat([up(x), skips[i - 1]], 1))
    x = run(decoder.up0, up(x))
    return up(x) if levels == 4 else x


@pytest.mark.parametrize("backbone", BACKBONES)
def test_md_is_its_definition(backbone):
    model = network("md", backbone).eval()
    with torch.no_grad():
        maps, raw = model.encoder(IMAGE), model(IMAGE)
        for task in SMALL:
            x = plain_blocks(model.decoders[task], maps, lambda b, x: b.norm(b.conv(x)).relu(), len(maps))
            z = model.heads[task](x)
            expected = z / z.norm(dim=1, keepdim=True) if task == "normals" else z
            assert torch.allclose(raw[task], expected, atol=1e-4)  # instance norm of a few positions amplifies rounding


@pytest.mark.parametrize("backbone", BACKBONES)
def test_tc_is_its_definition(backbone):
    model = network("tc", backbone).eval()
    decoder = model.decoder
    with torch.no_grad():
        maps, raw = model.encoder(IMAGE), model(IMAGE)
        for row, task in enumerate(SMALL):
            w = task_codes(3)[row]
            w = w / torch.sqrt((w**2).mean() + 1e-8)
            for layer in list(decoder.embedding)[::2]:
                w = F.leaky_relu(layer(w), 0.2)

            def run(block, x, w=w):
                x = F.instance_norm(block.conv(x))
                return F.leaky_relu(block.gamma(w)[:, None, None] * x + block.beta(w)[:, None, None])

            z = decoder.last(plain_blocks(decoder, maps, run, len(maps)))
            z = F.adaptive_avg_pool3d(z, (SMALL[task], None, None))
            expected = z / z.norm(dim=1, keepdim=True) if task == "normals" else z
            assert torch.allclose(raw[task], expected, atol=1e-4)  # instance norm of a few positions amplifies rounding


@pytest.mark.parametrize("tasks", range(1, 7))
def test_codes_are_blocks(tasks):
    codes, block = task_codes(tasks), 120 // tasks
    assert codes.shape == (tasks, 120) and codes.sum(0).eq(1).all()
    for task in range(tasks):
        assert codes[task].nonzero().flatten().tolist() == list(range(task * block, (task + 1) * block))


def test_a_number_of_tasks_that_does_not_divide_120_leaves_a_rest():
    codes = task_codes(7)
    assert codes.sum(1).eq(17).all() and codes[:, 119].eq(0).all()


def test_a_code_means_the_same_on_every_client():
    everybody = ("semseg", "normals", "edge", "depth")
    torch.manual_seed(0)
    one = TCNet(Encoder("resnet_nano", (64, 64), maps="all"), {"depth": 1}, everybody, 40)
    two = TCNet(Encoder("resnet_nano", (32, 64), maps="all"), {"semseg": 40, "depth": 1}, everybody, 40)
    shapes = lambda model: [(name, p.shape) for name, p in model.named_parameters()]
    assert shapes(one) == shapes(two)
    two.load_state_dict(one.state_dict())
    with torch.no_grad():
        assert torch.equal(one.eval()(IMAGE)["depth"], two.eval()(IMAGE)["depth"])
    assert [row.nonzero()[0].item() for row in one.decoder.codes] == [0, 30, 60, 90]


def test_codes_are_no_part_of_the_state():
    model = network("tc", "resnet_nano")
    assert "decoder.codes" not in model.state_dict() and "decoder.codes" in dict(model.named_buffers())


@pytest.mark.parametrize("init", ["torch", "lecun"])
def test_scale_and_shift_start_at_one_and_zero_whatever_the_initialisation(init):
    built = build_model(ModelConfig("tc", "resnet_nano", False, init=init), (64, 64), dict(SMALL), seed=0)
    for model in (network("tc", "resnet_nano"), built):
        blocks = [m for m in model.modules() if isinstance(m, ConditionedBlock)]
        assert len(blocks) == 10
        for block in blocks:
            assert block.gamma.bias.eq(1).all() and block.beta.bias.eq(0).all()
            assert 0 < block.gamma.weight.std() < 0.2 and 0 < block.beta.weight.std() < 0.2


def test_embedding_depends_on_the_code_not_on_its_length():
    torch.manual_seed(0)
    embedding, code = TaskEmbedding(), task_codes(4)[1]
    assert sum(isinstance(m, nn.Linear) for m in embedding) == 8
    assert {m.negative_slope for m in embedding if isinstance(m, nn.LeakyReLU)} == {0.2}
    assert torch.allclose(embedding(code), embedding(3 * code), atol=1e-6)
    assert not torch.allclose(embedding(code), embedding(task_codes(4)[2]), atol=1e-6)


@pytest.mark.parametrize("outputs", [1, 2, 3, 7, 21, 40])
def test_pooled_filters_give_pooled_channels(outputs):
    torch.manual_seed(0)
    conv, x = nn.Conv2d(16, 40, 1), torch.randn(2, 16, 5, 6)
    expected = F.adaptive_avg_pool3d(conv(x), (outputs, None, None))
    assert torch.allclose(F.conv2d(x, *pooled(conv, outputs)), expected, atol=1e-6)


def test_one_output_is_the_mean_of_all_channels():
    conv = nn.Conv2d(2, 40, 1)
    weight, bias = pooled(conv, 1)
    assert torch.allclose(weight[0], conv.weight.mean(0)) and torch.allclose(bias[0], conv.bias.mean())


@pytest.mark.parametrize("backbone", BACKBONES)
def test_task_by_task_gradients_add_up_to_the_joint_one(backbone):
    model = network("tc", backbone, outputs=NYUD).train()
    target = {task: torch.randn(2, n, 64, 64) for task, n in NYUD.items()}
    loss = lambda raw: sum((z - target[task]).square().mean() for task, z in raw.items())

    def gradient(run):
        model.zero_grad()
        run()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    joint = gradient(lambda: loss(model(IMAGE)).backward())
    in_turn = gradient(lambda: [loss(model(IMAGE, (task,))).backward() for task in NYUD])
    assert (joint - in_turn).norm() < 1e-5 * joint.norm()


def test_impossible_outputs_are_refused():
    encoder = Encoder("resnet_nano", (64, 64), maps="all")
    with pytest.raises(ValueError, match=r"without a code: \['sal'\]"):
        TCNet(encoder, {"sal": 2}, ("edge",), 2)
    with pytest.raises(ValueError, match="21 outputs do not fit into a last convolution of 7"):
        TCNet(encoder, {"semseg": 21}, ("semseg",), 7)
