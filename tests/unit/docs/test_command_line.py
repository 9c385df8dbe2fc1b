from __future__ import annotations

import os
from pathlib import Path

from scripts.docs.command_line import reference_page

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_page_says_what_the_commands_say() -> None:
    page = reference_page()
    if os.environ.get("UPDATE"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "UPDATE=1 writes docs/cli.md again"


def test_every_command_and_its_dangerous_options_are_there() -> None:
    page = reference_page()
    for command in [
        "describe",
        "history",
        "plan",
        "optimize",
        "vacuum",
        "checkpoint",
        "restore",
        "repair",
        "audit",
        "run",
    ]:
        assert f"## deltaward {command}\n" in page
    assert (
        "| `--apply`, `--dry-run` | Apply the changes, or only show them. By default `--dry-run`. |" in page
    )
