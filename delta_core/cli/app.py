"""The program `deltaward`.

Exit codes: 0 done; 1 failed; 2 the input is not valid; 3 it is unknown whether a commit landed; 4 a store
    could not be checked.
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
    help="Maintain Delta Lake tables: inspect them, optimize them, restore earlier versions.",
)


def _print_version(requested: bool) -> None:
    if requested:
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
