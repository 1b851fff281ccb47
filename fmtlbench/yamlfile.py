"""YAML with memory: plain data plus the line every value stood on, so that errors can point."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from .errors import UsageError


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads `1e-4` as a number, as people mean it (YAML 1.1 wants `1.0e-4`)."""


_Loader.yaml_implicit_resolvers = {
    key: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:float"]
    for key, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_FLOAT = r"^[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.inf|\.nan)$"
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(_FLOAT), list("-+0123456789."))


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes what `_Loader` would take for a number, such as the text "1e-4"."""


_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


def dump_yaml(value: Any) -> str:
    """Plain data as text that `load_yaml` reads back unchanged."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def parse_scalar(text: str) -> Any:
    """The value of a command-line override: YAML rules, so `true`, `1e-4`, `[64, 64]` and words all work."""
    return yaml.load(text, _Loader)


def load_yaml(path: Path) -> tuple[Any, dict[str, str]]:
    """(data, origins): origins maps a dotted path such as `clients.0.tasks` to `file.yml:12`."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a UTF-8 text file") from None
    origins: dict[str, str] = {}
    try:
        node = yaml.compose(text, _Loader)
        if node is None:
            return {}, {"": str(path)}
        _walk(node, "", path, origins)
        return yaml.load(text, _Loader), origins
    except RecursionError:
        raise UsageError(f"{path}: not valid YAML here: nested too deeply, or an alias inside its own anchor") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-01
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(f"{path}{line}: not valid YAML: {problem}") from None


def _walk(node: yaml.Node, prefix: str, path: Path, origins: dict[str, str]) -> None:
    origins.setdefault(prefix, f"{path}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"{path}:{key.start_mark.line + 1}: a key must be a word, not a list or mapping")
            if key.value in seen:
                raise UsageError(f"{path}:{key.start_mark.line + 1}: {key.value!r} is given twice")
            seen.add(key.value)
            inner = f"{prefix}.{key.value}" if prefix else str(key.value)
            origins[inner] = f"{path}:{key.start_mark.line + 1}"
            _walk(value, inner, path, origins)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            _walk(value, f"{prefix}.{i}" if prefix else str(i), path, origins)
