"""Several networks of one client that answer as one: each for its own tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from torch import Tensor, nn

OWN = "networks."  # begins the names of its tensors


class SplitNetwork(nn.Module):
    """Networks by the tasks that each is scored for. The names of their tensors tell whose they are."""

    def __init__(self, networks: Mapping[Sequence[str], nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleDict({"+".join(tasks): network for tasks, network in networks.items()})

    def forward(self, image: Tensor, tasks: Iterable[str] | None = None) -> dict[str, Tensor]:
        """Return raw outputs by task, by default of all tasks."""
        found: dict[str, Tensor] = {}
        for names, network in self.networks.items():
            own = tuple(task for task in names.split("+") if tasks is None or task in tasks)
            if own:
                found |= network(image, own)
        return found


def load_network(build: Callable[[], nn.Module], state: Mapping[str, Tensor]) -> nn.Module:
    """Build a network, or several, as the names of stored tensors tell, and fill them."""
    if not any(name.startswith(OWN) for name in state):
        network = build()
    else:
        groups = dict.fromkeys(name.removeprefix(OWN).partition(".")[0] for name in state)
        network = SplitNetwork({tuple(names.split("+")): build() for names in groups})
    network.load_state_dict(dict(state))
    return network
