"""YAML configuration files: read with a size limit. Errors name the file, the line, the cause and the fix."""

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
        ConfigurationError: the file cannot be read. `what` names the kind of file in the message.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"The {what} {str(path)!r} cannot be read.", cause=f"{error}.", fix="Check the path."
        ) from error


def parse_mapping(text: str | bytes, *, source: str, what: str, keys: str, when_large: str) -> dict[str, Any]:
    """Parse a YAML document that is a mapping. An empty document is an empty mapping.

    Args:
        text: the document.
        source: the origin of the document, for messages.
        what: the kind of file, for messages.
        keys: the keys of the top level, for messages.
        when_large: the fix for a document larger than `MAX_BYTES`.

    Raises:
        ConfigurationError: the document is too large, not YAML, or not a mapping.
    """
    if len(text) > MAX_BYTES:
        raise ConfigurationError(f"The {what} {source!r} is larger than {MAX_BYTES} bytes.", fix=when_large)
    try:
        document = _Loader(text).get_single_data()
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(
            f"The {what} {source!r}{where} is not valid YAML.",
            cause=f"{getattr(error, 'problem', None) or error}.",
            fix="Check the indentation and the quotes.",
        ) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"The {what} {source!r} is not a mapping.", fix=f"Write a mapping with the keys {keys}."
        )
    return document


def validation_problems(error: ValidationError) -> list[tuple[str, str]]:
    """The problems that a model found, as pairs of a key and the problem."""
    return [
        (
            ".".join(str(part) for part in item["loc"]),
            "this key is unknown" if item["type"] == "extra_forbidden" else str(item["msg"]),
        )
        for item in error.errors(include_url=False)
    ]


# libyaml parses a large file several times as fast as the parser in Python.
_PARSERS: tuple[type[Any], ...] = (
    (getattr(yaml.cyaml, "CParser"),)  # noqa: B009 - the type stubs do not export it
    if yaml.__with_libyaml__
    else (yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser)
)


class _Loader(
    yaml.composer.Composer,
    *_PARSERS,  # type: ignore[misc]
    yaml.constructor.SafeConstructor,
    yaml.resolver.Resolver,
):
    """A loader of plain YAML that refuses duplicate keys, because the second would silently win.

    It also refuses aliases, because nested aliases make a small file huge.
    """

    def __init__(self, stream: str | bytes) -> None:
        for base in _PARSERS:
            base.__init__(self, *((stream,) if base is _PARSERS[0] else ()))
        yaml.composer.Composer.__init__(self)
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, "Aliases are not allowed", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"The key {key!r} is not a string", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"The key {key!r} is used twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
