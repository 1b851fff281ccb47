"""Split nested state into a flat dict of tensors and a JSON skeleton, and join them again: no pickle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

_MARK = "__tensor__"


def split_tree(tree: Any, prefix: str = "") -> tuple[dict[str, Tensor], Any]:
    """Return (tensors by path, skeleton): the skeleton is the tree with each tensor replaced by its path."""
    if isinstance(tree, Tensor):
        return {prefix: tree.detach().cpu().contiguous()}, {_MARK: prefix}
    if isinstance(tree, dict):
        pairs = {}
        for key, value in tree.items():
            if not isinstance(key, str):
                raise TypeError(f"state key {key!r} at {prefix or 'the top'} is not text, so JSON would change it")
            if key == _MARK:
                raise ValueError(f"state key {key!r} at {prefix or 'the top'} is reserved")
            pairs[key] = split_tree(value, f"{prefix}/{key}" if prefix else key)
        return _collect(pairs.values()), {key: skeleton for key, (_, skeleton) in pairs.items()}
    if isinstance(tree, (list, tuple)):
        branches = [split_tree(value, f"{prefix}/{i}") for i, value in enumerate(tree)]
        return _collect(branches), [skeleton for _, skeleton in branches]
    if tree is None or isinstance(tree, (bool, int, float, str)):
        return {}, tree
    raise TypeError(f"cannot save {type(tree).__name__} at {prefix or 'the top'}: state is tensors and JSON values")


def join_tree(tensors: dict[str, Tensor], skeleton: Any) -> Any:
    """Undo `split_tree`, except that tuples come back as lists."""
    if isinstance(skeleton, dict):
        if set(skeleton) == {_MARK}:
            return tensors[skeleton[_MARK]]
        return {key: join_tree(tensors, value) for key, value in skeleton.items()}
    if isinstance(skeleton, list):
        return [join_tree(tensors, value) for value in skeleton]
    return skeleton


def _collect(branches: Iterable[tuple[dict[str, Tensor], Any]]) -> dict[str, Tensor]:
    """Merge the tensors of several branches; no two may have one name."""
    merged: dict[str, Tensor] = {}
    for tensors, _ in branches:
        if both := merged.keys() & tensors.keys():
            raise ValueError(f"two tensors of the state are called {min(both)!r}: a key has a slash in it")
        merged.update(tensors)
    return merged


def to_device(tree: Any, device: torch.device) -> Any:
    """Return the same tree with every tensor on `device`."""
    return map_leaves(tree, Tensor, lambda tensor: tensor.to(device))


def list_leaves(tree: Any, kind: type) -> list[Any]:
    """Return every value of a kind in a tree, as `map_leaves` finds them."""
    found: list[Any] = []
    map_leaves(tree, kind, found.append)
    return found


def map_leaves(tree: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Return the tree with every value of a kind changed; it may hold dicts, lists, tuples and dataclasses."""
    if isinstance(tree, kind):
        return change(tree)
    if isinstance(tree, dict):
        return {key: map_leaves(value, kind, change) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        values = [map_leaves(value, kind, change) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)  # named tuples take them singly
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = {f.name: map_leaves(getattr(tree, f.name), kind, change) for f in dataclasses.fields(tree)}
        return dataclasses.replace(tree, **fields)
    return tree
