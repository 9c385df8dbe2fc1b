"""Reading a policy file. What is wrong with it is said by file, key, cause and fix."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from delta_core.errors import ConfigurationError
from delta_core.policies.model import PolicyFile

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """A policy file that was checked.

    Attributes:
        source: where it came from, for messages.
        document: what it says, variables replaced; only what was written, no defaults.
        model: the same, typed.
    """

    source: str
    document: Mapping[str, Any] = field(hash=False, repr=False)
    model: PolicyFile

    @property
    def table_names(self) -> tuple[str, ...]:
        """The tables that have an entry, in the file's order."""
        return tuple(self.model.tables)


def load_policies(path: Path | str, *, environment: Mapping[str, str] | None = None) -> Policies:
    """Read and check a file.

    Args:
        path: the YAML file.
        environment: values for `${NAME}` in texts; the process's environment when None.

    Raises:
        ConfigurationError: unreadable, not YAML, an unknown key, a bad value, an unset variable.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"the policy file {str(path)!r} cannot be read", cause=str(error), fix="check the path"
        ) from error
    return parse_policies(data, source=str(path), environment=environment)


def parse_policies(
    text: str | bytes, *, source: str = "<text>", environment: Mapping[str, str] | None = None
) -> Policies:
    """`load_policies` for text; `source` is what messages call it."""
    if len(text) > _MAX_BYTES:
        raise ConfigurationError(
            f"the policy file {source!r} is larger than {_MAX_BYTES} bytes", fix="use patterns"
        )
    try:
        document = _Loader(text).get_single_data()
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(
            f"the policy file {source!r}{where} is not YAML",
            cause=str(getattr(error, "problem", None) or error),
            fix="check the indentation and the quotes",
        ) from error
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"the policy file {source!r} is not a mapping",
            fix="its top level has the keys defaults, patterns and tables",
        )
    values = os.environ if environment is None else environment
    expanded = _expanded(document, values, source, "")
    try:
        model = PolicyFile.model_validate(_tuples(expanded))
    except ValidationError as error:
        problems = list(_problems(error))
        raise ConfigurationError(
            f"the policy file {source!r} is not valid at {problems[0][0]}",
            cause="; ".join(f"{key}: {cause}" for key, cause in problems),
            fix="compare with dags/config/tables.yaml, which uses every key",
        ) from error
    return Policies(source=source, document=expanded, model=model)


class _Loader(yaml.SafeLoader):
    """Plain YAML in which a key may stand once; a second one would win in silence.

    Aliases are refused: nested ones make a small file huge, and patterns do their work.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed here", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is not text", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _expanded(value: Any, environment: Mapping[str, str], source: str, at: str) -> Any:
    """The value with every `${NAME}` in its texts replaced."""
    if isinstance(value, dict):
        return {
            key: _expanded(item, environment, source, f"{at}.{key}" if at else key)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_expanded(item, environment, source, f"{at}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value

    def lookup(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in environment:
            raise ConfigurationError(
                f"the policy file {source!r} is not valid at {at}",
                cause=f"the environment variable {name} is not set",
                fix=f"set {name}, or write the value into the file",
            )
        return environment[name]

    return _VARIABLE.sub(lookup, value)


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    """Lists where the strict model has tuples; None for an empty section means nothing was said."""
    said = {key: value for key, value in document.items() if value is not None}
    if isinstance(said.get("patterns"), list):
        said["patterns"] = tuple(said["patterns"])
    return said


def _problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    for item in error.errors(include_url=False):
        known = "this key is not known here" if item["type"] == "extra_forbidden" else str(item["msg"])
        yield ".".join(str(part) for part in item["loc"]), known
