"""One convolution on the deepest map for every task."""

from fmtlbench.networks.architectures import ARCHITECTURES, Architecture


@ARCHITECTURES.register("one_layer")
class OneLayer(Architecture):
    title = "One layer"
    description = "a convolution of the deepest map"
    paper = "nobody's"

    def build(self, encoder, outputs, federation_outputs):
        from torch import nn

        from fmtlbench.networks.net import PerTaskNet

        class Deepest(nn.Conv2d):
            def forward(self, maps):
                return super().forward(maps[-1])

        decoders = {task: Deepest(encoder.channels[-1], 8, 1) for task in outputs}
        return PerTaskNet(encoder, decoders, {task: nn.Conv2d(8, n, 1) for task, n in outputs.items()})
