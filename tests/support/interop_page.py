"""Makes docs/interop.md of what the soaks found: `python -m tests.support.interop_page`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.repository import ROOT

PAGE = ROOT / "docs" / "interop.md"
WRITTEN = ROOT / "benchmarks" / "results" / "soak-written-tables.json"
READ = ROOT / "benchmarks" / "results" / "soak-read-features.json"
MAINTAINED = ROOT / "benchmarks" / "results" / "soak-maintained-tables.json"

_READERS = ("delta-spark", "deltalake", "duckdb")
_WRITERS = ("delta-spark", "deltalake")
_NAMES_THERE = {
    "commit-times": "in-commit-timestamps",
    "domains": "domain-metadata",
    "iceberg-v2": "iceberg-compat",
    "materialized-partitions": "materialized-partitions",
    "types": "",
    "vectors": "deletion-vectors",
    "widening": "type-widening",
}
"""What a feature of the tables that we write is called among those that delta-spark wrote, if otherwise."""

_INTRODUCTION = """\
# Which engines read our tables, and whose we read

Made by `python -m tests.support.interop_page` of what was measured: `make soak-written-tables`
(`benchmarks/results/soak-written-tables.json`), `make soak-read-features` (`soak-read-features.json`) and
`make soak-maintained-tables` (`soak-maintained-tables.json`).

**{tables} tables that we wrote**, {operations} random operations in all, {versions} versions: each feature
alone, and sets of features in which {pairs} of {possible} possible pairs come up. A peer that reads a version
has to give the rows of a model that knows nothing of Delta; {failed} tables were read otherwise by anybody.
The change feed is compared with delta-spark's, over {changes} versions. To go on, a peer got a copy with a
checkpoint of ours and no commit before it, appended rows and deleted some, and we read what it left; the rows
that it had not touched still had their row ids.

"""

_LEGEND = """
A number is of tables, alone and in sets: **12** is all of the 12 that have the feature; 8 / 12 is 8 of them,
and the rest have some other feature, too, that the peer says it does not do. A dash is none. *Read* is every
version of the table. *Alone* is what the peer did with the table that has nothing but this feature; its
words, where it refused, are below. *We read its own* is of the tables that delta-spark wrote.
"""


_MAINTAINED = """
## Maintained by peers

Of {tables} tables that we wrote, each feature alone and sets of four, each peer got a copy and did these
steps to it, one after another. After each we read the rows of the model, with the row ids that they had, and
at the end we appended, compacted and wrote a checkpoint; {failed} tables were read otherwise. A number is of
tables: 3 / 12 is 3 where the peer did it, and 9 where it said that it does not do a feature of the table or
failed by a known fault of its own (deltalake cannot write a negative decimal of a partition). A step that
makes no sense (an update of an append-only table) is not counted.

Directories of partitions have names in printable ASCII, whatever the values (`p=%C3%BC`): peers compare texts
of paths, and spell other letters each in its own way. Tables may have such letters in their directories
already, written by others or converted where they lay. There whatever deltalake rewrites, by `delete`,
`update`, `merge`, compaction or overwriting, stays beside the new rows for every reader but us, until a
checkpoint of ours: `create_checkpoint()`, and only then a vacuum. delta-spark's VACUUM takes live files of
those that deltalake wrote. Neither can rewrite a partition whose directory would have a name of more than 255
bytes. deltalake reads no change data of partitions whose directories have a `%`, in its own tables, too.

"""


def page(written: Mapping[str, Any], read: Mapping[str, Any], maintained: Mapping[str, Any]) -> str:
    """The page, of the three results."""
    good = [table for table in written["tables"] if "error" not in table]
    words = _Words()
    text = _INTRODUCTION.format(
        tables=len(good),
        operations=f"{sum(written['operations'].values()):,}",
        versions=f"{written['versions']:,}",
        pairs=written["pairs_covered"],
        possible=written["pairs_possible"],
        failed=written["failed"] or "no",
        changes=f"{written['change_versions_equal']:,}",
    )
    if "note" in written:
        text += f"Of {written['planned']} planned tables: {written['note']}.\n\n"
    heads = [f"{peer}: {what}" for peer in _READERS for what in ("read", "alone")]
    heads.append("delta-spark: changes")
    heads += [f"{peer}: went on" for peer in _WRITERS]
    heads.append("we read delta-spark's own")
    text += _row(["feature", *heads]) + _row(["---"] * (len(heads) + 1))
    for feature in sorted({name for table in good for name in table["features"]}):
        having = [table for table in good if feature in table["features"]]
        (alone,) = [table for table in having if table["features"] == [feature]] or [None]
        cells = [feature]
        for peer in _READERS:
            whole = [table for table in having if _reads_all(table, peer)]
            cells += [_share(len(whole), len(having)), _alone(alone, peer, words)]
        compared = [table for table in having if table.get("changes", {}).get("versions")]
        cells.append(str(len(compared)) if compared else "-")
        for peer in _WRITERS:
            went = [table for table in having if table["goes_on"].get(peer, {}).get("appended")]
            cells.append(_share(len(went), len(having)))
        cells.append(_own(feature, read))
        text += _row(cells)
    text += _LEGEND + words.listed() + _maintained(maintained)
    closed = written["not_written"]
    if closed:
        text += "\n## Not written by the Arrow writer\n\n"
        text += "".join(f"- {name}: {why}\n" for name, why in sorted(closed.items()))
    return text


def _maintained(found: Mapping[str, Any]) -> str:
    text = _MAINTAINED.format(tables=found["tables_maintained"], failed=found["failed"] or "no")
    text += _row(["peer", "step", "tables"]) + _row(["---"] * 3)
    for peer in sorted(found["steps_done"]):
        done, refused = found["steps_done"][peer], found["steps_refused"][peer]
        for step in dict.fromkeys([*done, *refused]):
            some = done.get(step, 0)
            text += _row([peer, step, _share(some, some + refused.get(step, 0))])
    return text


class _Words:
    """What peers say of their limits, each with a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, words: str) -> int:
        return self._numbers.setdefault(words, len(self._numbers) + 1)

    def listed(self) -> str:
        if not self._numbers:
            return ""
        lines = (f"{number}. {words}\n" for words, number in self._numbers.items())
        return "\n## What peers say\n\n" + "".join(lines)


def _alone(table: Mapping[str, Any] | None, peer: str, words: _Words) -> str:
    if table is None or peer not in table["reads"]:
        return "-"
    found = table["reads"][peer]
    if not found["refused"]:
        return "yes"
    # What kind of error DuckDB calls it says nothing of what it lacks.
    said = sorted(f"{peer}: {re.sub('^[A-Z][a-z ]+ Error: ', '', text)}" for text in found["refused"])
    marks = ", ".join(str(words.number(text)) for text in said)
    return (
        f"{found['equal']} of {table['versions']} versions ({marks})" if found["equal"] else f"no ({marks})"
    )


def _reads_all(table: Mapping[str, Any], peer: str) -> bool:
    return bool(table["reads"].get(peer, {}).get("equal") == table["versions"])


def _share(some: int, of: int) -> str:
    return f"**{of}**" if some == of else f"{some} / {of}" if some else "-"


def _own(feature: str, read: Mapping[str, Any]) -> str:
    name = _NAMES_THERE.get(feature, feature)
    count = sum("error" not in table and name in table["features"] for table in read["tables"])
    return str(count) if count else "-"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Write the page."""
    written, read, maintained = (json.loads(path.read_text()) for path in (WRITTEN, READ, MAINTAINED))
    PAGE.write_text(page(written, read, maintained), encoding="utf-8")


if __name__ == "__main__":
    main()
