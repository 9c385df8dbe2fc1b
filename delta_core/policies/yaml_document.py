"""YAML files that people write: read with a limit, and refused with file, line, cause and fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from delta_core.errors import ConfigurationError

MAX_BYTES = 4 << 20


def read_file(path: Path | str, *, what: str) -> bytes:
    """The bytes of a file, at most one more than `MAX_BYTES`.

    Raises:
        ConfigurationError: it cannot be read; `what` is what the message calls the file.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"the {what} {str(path)!r} cannot be read", cause=str(error), fix="check the path"
        ) from error


def parse_mapping(text: str | bytes, *, source: str, what: str, keys: str, when_large: str) -> dict[str, Any]:
    """The mapping that a YAML text holds; an empty text is an empty mapping.

    Args:
        text: the document.
        source: what messages call it.
        what: the sort of file, for messages.
        keys: what its top level has, for messages.
        when_large: what to do about a text above `MAX_BYTES`.

    Raises:
        ConfigurationError: too large, not YAML, or not a mapping.
    """
    if len(text) > MAX_BYTES:
        raise ConfigurationError(f"the {what} {source!r} is larger than {MAX_BYTES} bytes", fix=when_large)
    try:
        document = _Loader(text).get_single_data()
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(
            f"the {what} {source!r}{where} is not YAML",
            cause=str(getattr(error, "problem", None) or error),
            fix="check the indentation and the quotes",
        ) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"the {what} {source!r} is not a mapping", fix=f"its top level has the keys {keys}"
        )
    return document


def validation_problems(error: ValidationError) -> list[tuple[str, str]]:
    """(key, what is wrong with it) for everything that a model refused."""
    return [
        (
            ".".join(str(part) for part in item["loc"]),
            "this key is not known here" if item["type"] == "extra_forbidden" else str(item["msg"]),
        )
        for item in error.errors(include_url=False)
    ]


class _Loader(yaml.SafeLoader):
    """Plain YAML in which a key may stand once; a second one would win in silence.

    Aliases are refused: nested ones make a small file huge.
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
