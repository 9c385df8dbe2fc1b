"""Arguments and options that several commands share, and how a command reaches a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from delta_core.cli.option_string import ENVIRONMENT_VARIABLE, options_from_file, options_from_text
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.storage.uri import uri_scheme

Uri = Annotated[str, typer.Argument(metavar="TABLE", help="Path or URI of the table.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Apply = Annotated[bool, typer.Option("--apply/--dry-run", help="Do it, or only show what would be done.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
OptionFile = Annotated[
    Path | None,
    typer.Option(
        "--options",
        metavar="FILE",
        help="JSON file with storage options, which may hold secrets; by default "
        f"{ENVIRONMENT_VARIABLE}, as NAME=VALUE pairs with blanks between them.",
    ),
]


def storage_options(url: str, file: Path | None) -> dict[str, str]:
    """The storage options for a URL: those of a file, else of the environment.

    Those of the environment are for whatever is remote; a local table takes none.

    Raises:
        ConfigurationError: they cannot be read, or a file's are for a local table. No value is repeated.
    """
    if file is not None:
        found = options_from_file(file)
        if uri_scheme(url) in (None, "file"):
            # Jobs give a local table none; naming a file for it is an error.
            open_store(url, storage_options=found)
        return found
    if uri_scheme(url) in (None, "file"):
        return {}
    return options_from_text(os.environ.get(ENVIRONMENT_VARIABLE, ""))


def open_table(url: str, file: Path | None) -> LogStore:
    """The store of a table with the options of a file, else of the environment. Makes no request.

    Raises:
        InvalidUriError: no store serves the URI.
        ConfigurationError: an option is not known, or they cannot be read.
    """
    return open_store(url, storage_options=storage_options(url, file))
