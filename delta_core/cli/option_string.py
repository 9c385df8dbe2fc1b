"""Storage options as users hand them to a program: pairs in the environment, or a file."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from delta_core.errors import ConfigurationError

ENVIRONMENT_VARIABLE = "DELTAWARD_STORAGE_OPTIONS"
"""Pairs `name=value` with blanks between them, or a JSON object, or the path of a file with one."""


def options_from_text(text: str) -> dict[str, str]:
    """The options of `name=value name=value`, quoted as in a shell, of a JSON object, or of a file with one.

    Raises:
        ConfigurationError: it is none of these. No part of the text that may be a value is repeated.
    """
    stripped = text.strip()
    if not stripped:
        return {}
    if stripped.startswith("{"):
        return _options_of_json(
            stripped.encode(errors="surrogatepass"), "The storage options are no JSON object of texts."
        )
    # A pair may end in .json, too: the path of a key file.
    if "=" not in stripped or (stripped.endswith(".json") and os.path.isfile(stripped)):
        return options_from_file(Path(stripped))
    try:
        words = shlex.split(stripped)
    except ValueError as error:
        raise ConfigurationError("The storage options end inside a quotation.", fix=_FIX) from error
    pairs = [word.partition("=") for word in words]
    if any(not name or not sign for name, sign, _ in pairs):
        raise ConfigurationError("A storage option has no name or no value.", fix=_FIX)
    return {name: value for name, _, value in pairs}


def options_from_file(path: Path) -> dict[str, str]:
    """The options of a file with one JSON object of texts.

    Raises:
        ConfigurationError: there is no such file, or it holds something else. No value is repeated.
    """
    try:
        document = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            "The file with storage options cannot be read.", cause=error.strerror or "", fix=_FIX
        ) from error
    return _options_of_json(document, "The file with storage options holds no JSON object of texts.")


def _options_of_json(document: bytes, problem: str) -> dict[str, str]:
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ConfigurationError(problem, fix='Write, for example, {"AWS_REGION": "eu-central-1"}.')
    return found


_FIX = "Write name=value pairs with blanks between them, a JSON object, or the path of a JSON file."
