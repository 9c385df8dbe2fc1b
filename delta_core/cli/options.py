"""Arguments and options that several commands share, and opening the table of a command."""

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
Apply = Annotated[bool, typer.Option("--apply/--dry-run", help="Apply the changes, or only show them.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
OptionFile = Annotated[
    Path | None,
    typer.Option(
        "--options",
        metavar="FILE",
        help="JSON file with storage options, which may hold secrets. By default the variable "
        f"{ENVIRONMENT_VARIABLE}, as NAME=VALUE pairs separated by blanks.",
    ),
]


def storage_options(url: str, file: Path | None) -> dict[str, str]:
    """The storage options for a URL: those of a file, or else of the environment.

    Options of the environment apply to remote tables only. A local table takes no options.

    Raises:
        ConfigurationError: the options cannot be read, or the file is given for a local table. The error
            contains no value.
    """
    if file is not None:
        options = options_from_file(file)
        if uri_scheme(url) in (None, "file"):
            # Jobs pass no options to a local table, so a file of options for it is an error: this call raises
            # it.
            open_store(url, storage_options=options)
        return options
    if uri_scheme(url) in (None, "file"):
        return {}
    return options_from_text(os.environ.get(ENVIRONMENT_VARIABLE, ""))


def open_table(url: str, file: Path | None) -> LogStore:
    """Open the store of a table with the options of a file, or else of the environment. No request.

    Raises:
        InvalidUriError: no store serves the URI.
        ConfigurationError: an option is not known, or the options cannot be read.
    """
    return open_store(url, storage_options=storage_options(url, file))
