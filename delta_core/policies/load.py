"""Reading a policy file. Errors name the file, the key, the cause and the fix."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from delta_core.errors import ConfigurationError
from delta_core.policies.model import PolicyFile
from delta_core.policies.yaml_document import parse_mapping, read_file, validation_problems

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WHAT = "policy file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """A validated policy file.

    Attributes:
        source: the origin of the document, for messages.
        document: the content with variables replaced and without defaults.
        model: the content as a typed model.
    """

    source: str
    document: Mapping[str, Any] = field(hash=False, repr=False)
    model: PolicyFile

    @property
    def table_names(self) -> tuple[str, ...]:
        """The tables that have an entry, in the file's order."""
        return tuple(self.model.tables)


def load_policies(path: Path | str, *, environment: Mapping[str, str] | None = None) -> Policies:
    """Read and check a policy file.

    Args:
        path: the YAML file.
        environment: values for `${NAME}` in strings; the process's environment when None.

    Raises:
        ConfigurationError: the file is unreadable or not YAML, a key is unknown, a value is not valid, or a
            variable is not set.
    """
    data = read_file(path, what=_WHAT)
    return parse_policies(data, source=str(path), environment=environment)


def parse_policies(
    text: str | bytes, *, source: str = "<text>", environment: Mapping[str, str] | None = None
) -> Policies:
    """`load_policies` for YAML text; `source` names its origin in messages."""
    document = parse_mapping(
        text,
        source=source,
        what=_WHAT,
        keys="defaults, patterns, tables and fleet",
        when_large="Use patterns.",
    )
    values = os.environ if environment is None else environment
    expanded = _expanded(document, values, source, "")
    try:
        model = PolicyFile.model_validate(_tuples(expanded))
    except ValidationError as error:
        problems = validation_problems(error)
        raise ConfigurationError(
            f"The policy file {source!r} is not valid at {problems[0][0]}.",
            cause="; ".join(f"{key}: {cause}" for key, cause in problems),
            fix="Compare the file with dags/config/tables.yaml, which uses every key.",
        ) from error
    return Policies(source=source, document=expanded, model=model)


def _expanded(value: Any, environment: Mapping[str, str], source: str, at: str) -> Any:
    """The value with every `${NAME}` in its strings replaced; `at` is its key, for messages."""
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
                f"The policy file {source!r} is not valid at {at}.",
                cause=f"The environment variable {name} is not set.",
                fix=f"Set {name}, or write the value into the file.",
            )
        return environment[name]

    return _VARIABLE.sub(lookup, value)


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with tuples for lists, as the strict model needs, and without empty sections."""
    sections = {key: value for key, value in document.items() if value is not None}
    if isinstance(sections.get("patterns"), list):
        sections["patterns"] = tuple(sections["patterns"])
    return sections
