"""The other end of the Ray executor: a process with some of the clients in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import torch

from ...base.errors import FmtlbenchError, UsageError, describe_error, one_line
from ...cost.energy import EnergyChoice, EnergyMeter, Reading
from ...cost.memory import peak_memory, reset_peak
from ...cost.processes import ProcessUse
from ...cost.tracker import PARTS, Tracker, gpus_of
from ..client import Client
from ..factory import ClientFactory
from ..messages import ClientFacts, Message
from ..packing import pack, unpack
from ..process_settings import process_settings
from .cluster import check_versions, read_token


@dataclass(frozen=True)
class Failure:
    """Why a client gave no reply: the run's own error, told where the run is."""

    text: str
    wrong_usage: bool = False

    def error(self) -> FmtlbenchError:
        """Return the error that the run ends with."""
        return (UsageError if self.wrong_usage else FmtlbenchError)(self.text)


@dataclass(frozen=True)
class Home:
    """What a process with clients must know of the server's."""

    process: int  # its number, on its machine
    node: str
    threads: int  # of torch where the config leaves it open: bits depend on it
    versions: dict[str, str]
    energy: EnergyChoice


class Worker:
    """Some clients, one at work at a time. Whatever goes wrong in them comes back as a `Failure`."""

    def __init__(self, factory: ClientFactory, home: Home, node: str, fetch: Callable[[Any], np.ndarray]) -> None:
        self.factory, self.home, self.node, self.fetch = factory, home, node, fetch
        self.clients: dict[int, Client] = {}
        self.energy: EnergyMeter | None = None
        self.settings = ExitStack()

    def open(self) -> Failure | None:
        """Make this process calculate as the server's would, and see that it can."""
        return self._guarded(self._open)

    def _open(self) -> None:
        check_versions(self.home.versions)
        config = self.factory.config
        for key, ref in (("--algo", config.algorithm.ref), ("model.architecture", config.model.ref)):
            if not ref.is_unchanged():
                what = "not there" if ref.is_missing() else "not as it was when the run began"
                raise UsageError(
                    f"{key} {ref.path}: {what} on a machine of the cluster; keep it in a folder that all machines have"
                )
        torch.set_num_threads(self.home.threads)
        device = torch.device(self.factory.device)
        self.settings.enter_context(process_settings(self.factory.config.train, device))
        reset_peak(device)
        # A process that the server's started is counted with it, but for the GPU, which only this one uses.
        self.unseen_parts = ("gpu",) if self._counted_at_home() else PARTS
        if self.home.energy.off is None and (self.unseen_parts == PARTS or device.type == "cuda"):
            self.energy = EnergyMeter(lambda: Tracker(self.home.energy.place, gpus_of(device)))
            self.energy.start()

    def _counted_at_home(self) -> bool:
        above = [process.pid for process in psutil.Process().parents()]
        return self.node == self.home.node and self.home.process in above

    def make(self, index: int) -> ClientFacts | Failure:
        """Make a client as it is at the start of a run."""
        return self._guarded(self._make, index)

    def _make(self, index: int) -> ClientFacts:
        self.clients[index] = self.factory.make(index)
        self.clients[index].rest()
        return self.clients[index].facts()

    def answer(self, index: int, message: Message) -> Any:
        """Pass a packed message on to a client; return its reply, packed, or a Failure."""
        return self._guarded(lambda: pack(self.clients[index].answer(unpack(message, self.fetch))))

    def read_token(self, file: str) -> str | None:
        """Return what a file says, if this process sees it."""
        return read_token(file)

    def use(self) -> ProcessUse:
        """Tell what this process has used."""
        device = torch.device(self.factory.device)
        node = "" if self.node == self.home.node else self.node
        memory, threads, gpus = peak_memory(device), torch.get_num_threads(), tuple(gpus_of(device))
        if self.energy is None:
            return ProcessUse(node, memory, threads, devices=gpus, counted=True)
        reading, sources = self.energy.read(), dict(self.energy.sources)
        if reading is not None:
            seen = {part: kwh for part, kwh in reading.parts.items() if part in self.unseen_parts}
            reading = Reading(seen, reading.seconds)
        return ProcessUse(node, memory, threads, reading, self.energy.reason, sources, gpus)

    def whereabouts(self) -> tuple[str, int]:
        """Return the machine and the number of this process."""
        return self.node, os.getpid()

    def _guarded(self, do: Callable[..., Any], *given: Any) -> Any:
        try:
            return do(*given)
        except FmtlbenchError as error:
            return Failure(str(error), isinstance(error, UsageError))
        except (MemoryError, torch.cuda.OutOfMemoryError) as error:
            return Failure(
                f"out of memory in a process with clients ({one_line(error)[:200] or 'no reason'}); fewer of them at "
                "once (--set ray.workers=…) or parked ones (--set federation.park=disk) need less"
            )
        except (Exception, SystemExit) as error:
            return Failure(f"in a process with clients: {describe_error(error)}")
