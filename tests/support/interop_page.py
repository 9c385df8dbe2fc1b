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
"""The names of features in the results for tables of delta-spark, where they differ."""

_SHOWN = {
    "vectors": "deletion-vectors",
    "delete by vectors": "delete with deletion vectors",
    "number the rows": "enable row tracking",
}
"""The page's words for features and steps of the results, where they differ."""

_INTRODUCTION = """\
# Interoperability with other engines

This page shows which engines read the tables of Deltaward, and which tables of other engines Deltaward reads.
`python -m tests.support.interop_page` generates it from the results in `benchmarks/results/` of these soaks:
`make soak-written-tables` (`soak-written-tables.json`), `make soak-read-features` (`soak-read-features.json`)
and `make soak-maintained-tables` (`soak-maintained-tables.json`).

**Deltaward wrote {tables} tables** with {operations} random operations in {versions} versions. There is one
table for each feature alone, and tables with sets of features, which cover {pairs} of {possible} possible
pairs. Each version that a peer read was compared with the rows of a model that does not use Delta. The number
of tables with wrong rows: {failed}. The change feed was compared with delta-spark's over {changes} versions.

Then each peer got a copy of the table with a checkpoint of Deltaward and without older commits. It appended
rows and deleted some. Deltaward read the result, and unchanged rows had to keep their row ids.

"""

_LEGEND = """
The numbers count tables, with the feature alone or in a set. **12** means all of the 12 tables with the
feature. 8 / 12 means 8 of them: each of the others also has a feature that the peer does not support. A dash
means no table.

- *Read*: the peer read every version of the table.
- *Alone*: the peer's result for the table that has only this feature. The numbers in parentheses refer to the
  peer's error messages below.
- *Changes*: the change feed was compared.
- *Appended*: the peer appended and deleted rows.
- *Deltaward reads tables of delta-spark*: the number of tables that delta-spark wrote with the feature.
"""


_MAINTAINED = """
## Maintained by peers

For {tables} tables of Deltaward, with each feature alone and with sets of four, each peer got a copy and ran
these steps, one after another. After each step Deltaward read the table, and rows and row ids had to be those
of the model. At the end Deltaward appended, compacted and wrote a checkpoint. The number of tables with wrong
rows: {failed}.

The numbers count tables. 3 / 12 means that the peer ran the step on 3 tables. On the other 9 tables it
reported an unsupported feature, or failed because of a known bug (deltalake cannot write a negative decimal
as a partition value). A step that is not possible for a table, such as an update of an append-only table, is
not counted.

## Partition directories with other letters than ASCII

Deltaward names partition directories in printable ASCII for all values (`p=%C3%BC`). The reason is that peers
compare paths as strings, and each peer escapes other letters in its own way. Tables of other writers and
converted tables may have directories with such letters. For these tables:

- A rewrite by deltalake (`delete`, `update`, `merge`, compaction or overwriting) leaves the old rows in the
  table beside the new rows, for every reader except Deltaward. Write a checkpoint with `create_checkpoint()`
  to repair this, and run vacuum only afterwards.
- delta-spark's VACUUM deletes live files that deltalake wrote.
- Neither peer can rewrite a partition whose directory name would be longer than 255 bytes.

deltalake reads no change data of partitions whose directories contain a `%`, also in its own tables.

## Steps of peers

"""


def page(written: Mapping[str, Any], read: Mapping[str, Any], maintained: Mapping[str, Any]) -> str:
    """The page for the three results."""
    good = [table for table in written["tables"] if "error" not in table]
    words = _Words()
    text = _INTRODUCTION.format(
        tables=len(good),
        operations=f"{sum(written['operations'].values()):,}",
        versions=f"{written['versions']:,}",
        pairs=written["pairs_covered"],
        possible=written["pairs_possible"],
        failed=written["failed"],
        changes=f"{written['change_versions_equal']:,}",
    )
    if "note" in written:
        text += f"Of {written['planned']} planned tables: {written['note']}.\n\n"
    heads = [f"{peer}: {what}" for peer in _READERS for what in ("read", "alone")]
    heads.append("delta-spark: changes")
    heads += [f"{peer}: appended" for peer in _WRITERS]
    heads.append("Deltaward reads tables of delta-spark")
    text += _row(["feature", *heads]) + _row(["---"] * (len(heads) + 1))
    for feature in sorted({name for table in good for name in table["features"]}):
        having = [table for table in good if feature in table["features"]]
        (alone,) = [table for table in having if table["features"] == [feature]] or [None]
        cells = [_SHOWN.get(feature, feature)]
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
        text += "\n## Features that the Arrow writer does not write\n\n"
        text += "".join(f"- {name}: {why}\n" for name, why in sorted(closed.items()))
    return text


def _maintained(found: Mapping[str, Any]) -> str:
    text = _MAINTAINED.format(tables=found["tables_maintained"], failed=found["failed"])
    text += _row(["peer", "step", "tables"]) + _row(["---"] * 3)
    for peer in sorted(found["steps_done"]):
        done, refused = found["steps_done"][peer], found["steps_refused"][peer]
        for step in dict.fromkeys([*done, *refused]):
            some = done.get(step, 0)
            text += _row([peer, _SHOWN.get(step, step), _share(some, some + refused.get(step, 0))])
    return text


class _Words:
    """The peers' error messages, each with a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, words: str) -> int:
        return self._numbers.setdefault(words, len(self._numbers) + 1)

    def listed(self) -> str:
        if not self._numbers:
            return ""
        lines = (f"{number}. {words}\n" for words, number in self._numbers.items())
        return "\n## Error messages of peers\n\n" + "".join(lines)


def _alone(table: Mapping[str, Any] | None, peer: str, words: _Words) -> str:
    if table is None or peer not in table["reads"]:
        return "-"
    found = table["reads"][peer]
    if not found["refused"]:
        return "yes"
    # DuckDB's kind of error does not show which feature it lacks.
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
