"""Documents as programs: their Python blocks, run from top to bottom as a reader would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.repository import ROOT, CodeBlock, code_blocks

EXAMPLES = "docs/examples"


def example_blocks(document: str, *, tag: str | None = None) -> list[CodeBlock]:
    """The document's Python blocks without a tag, or those with one (what they need besides)."""
    blocks = [block for block in code_blocks(document) if block.language == "python"]
    return [block for block in blocks if (tag in block.tags if tag else not block.tags)]


def run_blocks(document: str, data: Path, *, tag: str | None = None, **names: Any) -> dict[str, Any]:
    """Run blocks in one namespace, with `/data` moved to `data`.

    Returns:
        What the blocks defined.
    """
    namespace: dict[str, Any] = {"__name__": "example", **names}
    blocks = example_blocks(document, tag=tag)
    assert blocks, f"{document} has no such blocks"
    for block in blocks:
        # Blank lines before it give a traceback the document's own line numbers.
        text = "\n" * block.line + block.body.replace('"/data/', f'"{data}/')
        exec(compile(text, str(ROOT / document), "exec"), namespace)
    return namespace
