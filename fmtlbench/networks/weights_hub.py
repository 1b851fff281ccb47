"""Get timm's pretrained weights from the hub's cache on disk or over the network."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from ..base.errors import FmtlbenchError, first_line

FILE = "model.safetensors"  # the name of the weights file in timm's repositories on the hub


def fetch(name: str) -> tuple[Path, str]:
    """Return the file with the weights of timm's network `name`, and their full name, such as resnet18.a1_in1k."""
    import timm
    from huggingface_hub import hf_hub_download

    config = timm.get_pretrained_cfg(name)
    if config is None or not config.hf_hub_id:
        raise FmtlbenchError(
            f"timm has no pretrained weights for {name}; --set model.pretrained=false trains from scratch"
        )
    full = f"{config.architecture}.{config.tag}" if config.tag else config.architecture
    repository = config.hf_hub_id + full if config.hf_hub_id.endswith("/") else config.hf_hub_id
    reachable = online()
    try:
        # Offline, the download would be retried for a minute before the cache is used.
        return Path(hf_hub_download(repository, FILE, local_files_only=not reachable)), full
    except Exception as error:
        unreachable = f"{hub()} cannot be reached, and its cache on this machine has none"
        reason = first_line(error).rstrip(".") if reachable else unreachable
        raise FmtlbenchError(
            f"no pretrained weights {full}: {reason}. Give a file with --set model.weights=FILE, "
            "or train from scratch with --set model.pretrained=false"
        ) from None


def hub() -> str:
    from huggingface_hub.constants import ENDPOINT

    return ENDPOINT


def online() -> bool:
    """Return whether the hub's name can be resolved; behind a proxy, which resolves names itself, True."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    if "https" in getproxies() or "all" in getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(hub()).hostname, 443)
    except OSError:
        return False
    return True
