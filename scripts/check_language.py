"""Checks names for things: shipped code and documents use the words of the protocol and of delta-spark.

Usage: scripts/check_language.py [FILE...] (all of the shipped code and documents by default)

Reads docstrings, comments and string literals of Python files, and Markdown outside of code. Prints
`FILE:LINE: WORD: what to write` for each finding. Exits with 1 when there is one. The glossary is
docs/glossary.md.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("delta_core", "spark_jobs", "plugins", "dags", "demo", "docs", "README.md", "CONTRIBUTING.md")
EXEMPT = ("docs/adr/",)
"""Decisions are records of their day."""

WORDS: dict[str, str] = {
    r"texts": "strings",
    r"(?:a|an|any|each|this|that|the|its|as|of|no|is) text(?!(?: |-)(?:file|editor|form))": "string",
    r"(?<!deletion )(?<!deletion-)(?<!test )(?<!writer )vectors?": "deletion vector(s)",
    r"figures?": "metrics, numbers",
    r"whoever|whichever|whatever becomes": "the caller, the writer, a reader, any",
    r"nobody|somebody|anybody|nobody's|somebody's": "no writer, another writer, a caller",
    r"(?:is|are|was|were|be) none": "is not a ...; there is no ...",
    r"(?<!there )(?:is|are|was|were) no (?!longer|more|less|later|earlier|older|newer)\w+": (
        "is not a ..., has no ..."
    ),
    r"tells?|told": "shows, records, reports, states",
    r"says?|said|saying": "states, records, names, specifies, contains",
    r"(?:goes|go|went|going|gone) on": "continues",
    r"gone|goes away|went away": "missing, deleted, removed",
    r"(?:is|are|was|were) (?:his|hers|theirs|ours)|of (?:ours|theirs)": "our own ..., the table's ...",
    r"gets? along": "is compatible with",
    r"by itself alone|as ever|by now": "leave out, or state the time",
    r"left-overs?|leftovers?": "orphan files, unreferenced files",
    r"stampers?": "rebase hook",
    r"surfaces?(?! area)": "kind of writer",
    r"come to (?:be|mean|nothing)|comes to (?:be|mean|nothing)|what becomes of|became of": "the outcome of",
    r"looks? at(?! the)|looked at(?! the)": "reads, checks, examines",
}
DOCSTRING_START = re.compile(r"""^[rRbBuU]*(?:\"\"\"|\'\'\')(What|Who|Whoever|Whose)\b""")
_PATTERN = re.compile(
    "|".join(rf"(?P<w{number}>\b(?:{pattern})\b)" for number, pattern in enumerate(WORDS)), re.IGNORECASE
)
_PROSE = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_CODE = re.compile(r"`[^`\n]*`|https?://\S+")


def findings(text: str, first_line: int) -> Iterator[tuple[int, str, str]]:
    """Line, word and advice of each finding in prose."""
    prose = _CODE.sub(lambda match: " " * len(match[0]), text)
    # A sentence may be wrapped in the middle of a phrase.
    joined = re.sub(r"\n[ \t]*(?:# )?", lambda match: " " * len(match[0]), prose)
    for match in _PATTERN.finditer(joined):
        number = int(str(match.lastgroup)[1:])
        yield first_line + text.count("\n", 0, match.start()), match[0], list(WORDS.values())[number]


def python_findings(source: str) -> Iterator[tuple[int, str, str]]:
    """Findings in docstrings, string literals and comments."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _PROSE:
            if start := DOCSTRING_START.match(token.string):
                yield token.start[0], start[1], "begin with a noun or a verb"
            if token.type == tokenize.COMMENT or re.search(r"[a-z] [a-z]", token.string):
                yield from findings(token.string, token.start[0])


def markdown_findings(source: str) -> Iterator[tuple[int, str, str]]:
    """Findings outside of code blocks."""
    kept = re.sub(r"^```.*?^```", lambda match: re.sub(r"[^\n]", " ", match[0]), source, flags=re.M | re.S)
    yield from findings(kept, 1)


def main(names: list[str]) -> int:
    """Check the files; returns the exit code."""
    if not names:
        listed = subprocess.run(
            ["git", "ls-files", *SHIPPED], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        names = [name for name in listed if not name.startswith(EXEMPT)]
    count = 0
    for name in names:
        if not name.endswith((".py", ".md")):
            continue
        source = (ROOT / name).read_text()
        check = python_findings if name.endswith(".py") else markdown_findings
        for line, word, advice in check(source):
            count += 1
            print(f"{name}:{line}: {' '.join(word.split())}: {advice}")
    if count:
        print(f"{count} findings; see docs/glossary.md for the words to use", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
