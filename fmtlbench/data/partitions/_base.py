"""What a partition rule is, and the arithmetic that rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...base.errors import FmtlbenchError, describe_error
from ...base.registry import Registry

if TYPE_CHECKING:
    from ..datasets import Reader


class PartitionRule:
    """Deals the images of a dataset to clients: disjoint, complete, seeded, nobody empty-handed."""

    name: ClassVar[str] = ""  # set by the registry
    description: ClassVar[str] = ""
    takes_alpha: ClassVar[bool] = (
        False  # it has a parameter `alpha`, and the seed decides how many images a client gets
    )
    reads_classes: ClassVar[bool] = False  # it goes by what the images show, so semantic labels must be there

    def deal(
        self, dataset: Reader, clients: int, rng: np.random.Generator, least: int, alpha: float | None
    ) -> list[np.ndarray]:
        """Return the image numbers of every client.

        Args:
            dataset: whose images.
            clients: among how many.
            rng: decides everything random.
            least: images every client gets at least; `least * clients` does not exceed the length.
            alpha: of rules that take it.
        """
        raise NotImplementedError

    def sizes(self, count: int, clients: int, least: int) -> list[int] | None:
        """Return how many of `count` images each client gets; None: only the seed, or the images, can tell."""
        return None


def _find_problem(rule: Any) -> str | None:
    """Return why a user's file does not bring a partition as it should be; None if it does."""
    fits = isinstance(rule, type) and issubclass(rule, PartitionRule)
    return None if fits else "is not a subclass of fmtlbench.data.partitions.PartitionRule"


PARTITIONS: Registry[type[PartitionRule]] = Registry("partition", "fmtlbench.data.partitions", _find_problem)


def deal(
    kind: str, dataset: Reader, clients: int, rng: np.random.Generator, least: int = 1, alpha: float | None = None
) -> list[np.ndarray]:
    """Return the sorted image numbers of every client by the rule `kind`; a rule that cheats is told so."""
    try:
        parts = [np.sort(part) for part in PARTITIONS[kind]().deal(dataset, clients, rng, least, alpha)]
    except FmtlbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise FmtlbenchError(f"partition {kind!r}: deal failed: {describe_error(error)}") from error
    dealt = np.sort(np.concatenate(parts)) if parts else np.array([], int)
    if len(parts) != clients or not np.array_equal(dealt, np.arange(len(dataset))):
        raise FmtlbenchError(
            f"partition {kind!r} dealt {len(dealt)} of {len(dataset)} images to {len(parts)} of {clients} clients; "
            "expected every image exactly once"
        )
    return parts


def linear_sizes(count: int, clients: int, least: int = 1) -> list[int]:
    """Return shares in the proportion 1 : 2 : … : clients, rounded by largest remainder, none below `least`."""
    sizes = round_shares(count, np.arange(1, clients + 1))
    while sizes.min() < least:  # only where there are hardly more images than clients
        sizes[sizes.argmin()] += 1
        sizes[sizes.argmax()] -= 1
    return sizes.tolist()


def round_shares(count: int, weights: np.ndarray) -> np.ndarray:
    """Split `count` in the proportion of the weights, in whole numbers by largest remainder."""
    exact = count * weights / weights.sum()
    sizes = np.floor(exact).astype(int)
    by_remainder = np.argsort(sizes - exact, kind="stable")
    sizes[by_remainder[: count - sizes.sum()]] += 1
    return sizes


def equal_sizes(count: int, clients: int) -> list[int]:
    """Return sizes that differ by one at most."""
    return [count // clients + (i < count % clients) for i in range(clients)]
