"""Metrics for dense prediction that add up batches and can be merged. Each metric is one file.

from fmtlbench.metrics import MeanIoU
meter = MeanIoU(num_classes=40)
meter.update(prediction, target)   # [B, H, W] each
meter.compute().value
"""

from __future__ import annotations

import importlib
from typing import Any

from ._base import IGNORE, METRICS, Metric, MetricError, MetricResult

_LAZY = {
    "MeanIoU": "miou",
    "MaxF": "maxf",
    "MeanAngle": "merr",
    "RMSE": "rmse",
    "OdsF": "odsf",
    "EdgeLoss": "edge_loss",
    "EdgeLossPublic": "edge_loss_public",
    "delta_m": "_delta_m",
}

__all__ = ["IGNORE", "METRICS", "Metric", "MetricError", "MetricResult", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
