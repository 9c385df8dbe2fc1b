"""The program `deltaward`.

Exit codes: 0 done; 1 failed; 2 the input is not valid; 3 whether a commit landed could not be told;
4 a store could not be checked.
"""

from __future__ import annotations

import typer

from delta_core.cli.command_group import CommandGroup
from delta_core.version import VERSION

app = typer.Typer(
    name="deltaward",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Look after Delta Lake tables: see what they are, keep them fast, undo what went wrong.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deltaward {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Run the program with the process's arguments."""
    app()
