"""Skipping against brute force: pairs of a random table and a random predicate."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.columns import walk
from delta_core.expressions.evaluate import matches
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate
from delta_core.scan.data_skipping import files_may_match, prune_by_partitions, prune_by_statistics
from delta_core.scan.partition_pruning import split_by_partition_columns
from tests.support.reference_predicates import reference
from tests.support.skipping_predicates import random_predicate
from tests.support.skipping_tables import Table, random_table

PREDICATES_PER_TABLE = 25


class SkippedTooMuchError(AssertionError):
    """A file with a matching row was skipped, or a row was taken for what it is not."""


@dataclass
class Counts:
    """What was tried, and how often it had the chance to go wrong."""

    tables: int = 0
    pairs: int = 0
    pairs_that_skipped: int = 0
    pairs_that_could_skip: int = 0
    pairs_with_matches: int = 0
    files: int = 0
    files_skipped: int = 0
    files_without_match: int = 0
    failing_predicates: int = 0
    pairs_by_trait: Counter[str] = field(default_factory=Counter)
    pairs_that_skipped_by_trait: Counter[str] = field(default_factory=Counter)
    pairs_by_node: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Count what another has counted, too."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def check_pairs(seed: str, pairs: int, counts: Counts | None = None) -> Counts:
    """Draw tables and predicates until so many pairs have been compared.

    Raises:
        SkippedTooMuchError: names the table's seed and the predicate.
    """
    counts = counts or Counts()
    wanted = counts.pairs + pairs
    number = 0
    while counts.pairs < wanted:
        check_table(f"{seed}:{number}", counts, limit=wanted - counts.pairs)
        number += 1
    return counts


def check_table(seed: str, counts: Counts, *, limit: int = PREDICATES_PER_TABLE) -> None:
    """One table with several predicates."""
    rng = random.Random(seed)
    table = random_table(rng)
    listing = table.listing()
    arrow_rows = table.arrow_rows()
    counts.tables += 1
    for _ in range(min(limit, PREDICATES_PER_TABLE)):
        predicate = random_predicate(rng, table)
        try:
            expected = [[reference(predicate, row) is True for row in file.live] for file in table.files]
        except (ArithmeticError, ValueError):
            # An engine fails at such a row, wherever it meets it.
            counts.failing_predicates += 1
            continue
        try:
            _check(table, listing, arrow_rows, predicate, expected, counts, as_string=rng.random() < 0.1)
        except Exception as error:
            text = to_spark_sql(predicate)
            raise SkippedTooMuchError(f"table {seed!r}: {text}: {type(error).__name__}: {error}") from error


def _check(
    table: Table,
    listing: Any,
    arrow_rows: Any,
    predicate: Expression,
    expected: list[list[bool]],
    counts: Counts,
    *,
    as_string: bool,
) -> None:
    resolved = resolve_predicate(predicate, table.schema)
    if as_string:
        resolved = parse_predicate(to_spark_sql(resolved), table.schema)
    names, mapping = table.partition_columns, table.mapping
    pruned, exact = prune_by_partitions(
        listing, resolved, table.schema, names, mapping=mapping, generation_enforced=True
    )
    if exact and split_by_partition_columns(resolved, names)[1] == TRUE:
        # Their rows are not looked at any more.
        paths = pruned.to_table(["path"]).column("path").to_pylist()
        for at in {int(path.removeprefix("file-")) for path in paths}:
            if not all(value is True for value in expected[at]):
                raise SkippedTooMuchError(f"{table.files[at]} is kept whole, and not all of its rows match")
    pruned = prune_by_statistics(pruned, resolved, table.schema, names, mapping=mapping)
    kept = {int(path.removeprefix("file-")) for path in pruned.to_table(["path"]).column("path").to_pylist()}
    found = {"a scan": kept}
    if as_string:
        facts = listing.to_table(["partition_values", "stats"])
        mask = files_may_match(facts, resolved, table.schema, names, mapping=mapping)
        found["files_may_match"] = set(np.flatnonzero(mask).tolist())
    needed = {at for at, rows in enumerate(expected) if any(rows)}
    for how, files in found.items():
        if lost := needed - files:
            raise SkippedTooMuchError(
                f"{how} skips {table.files[min(lost)]} of {table.schema!r} by {table.partition_columns}"
            )
    wanted = [value for rows in expected for value in rows]
    try:
        taken = matches(resolved, arrow_rows).to_pylist()
    except ExpressionError as error:
        raise SkippedTooMuchError(f"fails where it has a value: {error}") from error
    if taken != wanted:
        at = next(i for i, (a, b) in enumerate(zip(taken, wanted, strict=True)) if a != b)
        raise SkippedTooMuchError(f"is {taken[at]} for {arrow_rows.slice(at, 1).to_pylist()}")
    _count(counts, table, predicate, kept, needed)


def _count(counts: Counts, table: Table, predicate: Expression, kept: set[int], needed: set[int]) -> None:
    total = len(table.files)
    counts.pairs += 1
    counts.pairs_that_skipped += len(kept) < total
    counts.pairs_that_could_skip += len(needed) < total
    counts.pairs_with_matches += bool(needed)
    counts.files += total
    counts.files_skipped += total - len(kept)
    counts.files_without_match += total - len(needed)
    counts.pairs_by_trait.update(table.traits)
    if len(kept) < total:
        counts.pairs_that_skipped_by_trait.update(table.traits)
    counts.pairs_by_node.update(
        {getattr(node, "name", None) or type(node).__name__ for node in walk(predicate)}
    )
