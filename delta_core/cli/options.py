"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Uri = Annotated[str, typer.Argument(metavar="TABLE", help="Path or URI of the table.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Apply = Annotated[bool, typer.Option("--apply/--dry-run", help="Do it, or only show what would be done.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
