"""Storage options as users pass them to a program: pairs in the environment, or a file."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from delta_core.errors import ConfigurationError

ENVIRONMENT_VARIABLE = "DELTAWARD_STORAGE_OPTIONS"
"""The variable holds pairs `name=value` separated by blanks, a JSON object, or the path of a JSON file."""


def options_from_text(text: str) -> dict[str, str]:
    """Parse the variable: pairs `name=value` quoted as in a shell, a JSON object, or the path of a JSON file.

    Raises:
        ConfigurationError: the variable has none of these forms. The error contains no part that may be a
            value.
    """
    stripped = text.strip()
    if not stripped:
        return {}
    if stripped.startswith("{"):
        return _options_of_json(
            stripped.encode(errors="surrogatepass"),
            "The storage options are not a JSON object with string values.",
        )
    # A pair may also end in .json: its value is the path of a key file.
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
    """Read the options from a file with one JSON object of strings.

    Raises:
        ConfigurationError: the file is missing or has other content. The error contains no value.
    """
    try:
        document = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            "The file with storage options cannot be read.",
            cause=f"{error.strerror}." if error.strerror else "",
            fix=_FIX,
        ) from error
    return _options_of_json(
        document, "The file with storage options does not contain a JSON object with string values."
    )


def _options_of_json(document: bytes, problem: str) -> dict[str, str]:
    try:
        options = json.loads(document)
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
        raise ConfigurationError(problem, fix='Write, for example, {"AWS_REGION": "eu-central-1"}.')
    return options


_FIX = "Write name=value pairs separated by blanks, a JSON object, or the path of a JSON file."
