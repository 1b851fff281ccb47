"""Connect to a Ray cluster: a running one, or one of this machine that ends with the command. Imports no torch."""

from __future__ import annotations

import os
import socket
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from ...base.errors import FmtlbenchError, UsageError, one_line
from ...runs.code_identity import SOURCES
from ...runs.session import versions

REACHABLE = 5.0  # seconds in which a running cluster must take a connection


def import_ray() -> Any:
    """Import Ray; if it is not installed, say what to install."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--executor ray: {one_line(error)}; pip install 'fmtlbench[ray]'") from None
    return ray


@contextmanager
def connected(address: str | None = None, object_store_gb: float | None = None) -> Iterator[Any]:
    """Give the module `ray`, connected to the cluster at `address`; without one, to a cluster that ends with the block.

    A connection that this process already has is used as it is.

    Raises:
        FmtlbenchError: There is no cluster, or it does not answer.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or None
    _check_address(address)
    quiet = {"logging_level": "ERROR", "log_to_driver": False, "configure_logging": False}
    size = {} if object_store_gb is None else {"object_store_memory": int(object_store_gb * 1e9)}
    try:
        with warnings.catch_warnings():  # Ray's own, about changes in later versions
            warnings.simplefilter("ignore")
            if address is None:
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it reports usage to its developers
                os.environ.setdefault("RAY_worker_niceness", "0")  # its processes do the training
                ray.init(address="local", include_dashboard=False, **size, **quiet)
            else:
                ray.init(address=address, **quiet)
    except Exception as error:
        where = "no cluster could be started here" if address is None else f"--ray-address {address}: no connection"
        raise FmtlbenchError(f"{where}: {type(error).__name__}: {one_line(error)[:300]}") from None
    try:
        with redirect_stdout(sys.stderr):  # Ray prints there about lost processes, whatever its log level
            yield ray
    finally:
        ray.shutdown()


def cluster_versions() -> dict[str, str]:
    """Return what must be the same on all machines of a cluster: the versions of packages, and the code of this one."""
    return {**versions(), "the code of fmtlbench": SOURCES.identify_package()[:12]}


def check_versions(theirs: Mapping[str, str]) -> None:
    """Refuse a machine of a cluster whose packages have other versions than those of the command's machine.

    Raises:
        UsageError: It has others.
    """
    mine = cluster_versions()
    if different := [
        f"{name} {mine.get(name)} for {theirs[name]}" for name in theirs if mine.get(name) != theirs[name]
    ]:
        raise UsageError(
            f"a machine of the cluster has {', '.join(different)} that the command's has; numbers would not be the "
            "same: install the same versions everywhere"
        )


def read_token(file: str) -> str | None:
    """Return the text of a file, None if it cannot be read: so machines find out whether they share a folder."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError:
        return None


def _check_address(address: str | None) -> None:
    """Refuse an address at which nothing answers; Ray itself would try for minutes."""
    if address is None or address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if "://" in address or not colon or not port.isdecimal():
        raise UsageError(
            f"--ray-address {address}: expected host:port of a cluster's head, such as 127.0.0.1:6379, or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACHABLE).close()
    except (OSError, OverflowError) as error:
        raise FmtlbenchError(
            f"--ray-address {address}: nobody answers there ({one_line(error)}); `ray start --head` on that machine "
            "starts a cluster, and without --ray-address one is started here"
        ) from None
