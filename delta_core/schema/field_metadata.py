"""The keys that the protocol reserves in a column's metadata, and functions that change the metadata.

PROTOCOL.md, "Column Metadata": a writer preserves unknown entries of a column's metadata, so every change
here replaces or removes keys by name and preserves the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from delta_core.schema.types import StructField

COMMENT_KEY = "comment"
CURRENT_DEFAULT_KEY = "CURRENT_DEFAULT"
EXISTS_DEFAULT_KEY = "EXISTS_DEFAULT"
"""Spark's default for existing rows. Delta has no such default and never writes it."""
GENERATION_KEY = "delta.generationExpression"
INVARIANTS_KEY = "delta.invariants"
TYPE_CHANGES_KEY = "delta.typeChanges"

IDENTITY_PREFIX = "delta.identity."
IDENTITY_START_KEY = "delta.identity.start"
IDENTITY_STEP_KEY = "delta.identity.step"
IDENTITY_MARK_KEY = "delta.identity.highWaterMark"
IDENTITY_EXPLICIT_KEY = "delta.identity.allowExplicitInsert"


def is_identity(field: StructField) -> bool:
    """Whether the field has any entry of an identity column, complete or not."""
    return any(key.startswith(IDENTITY_PREFIX) for key in field.metadata)


def with_metadata(field: StructField, entries: Mapping[str, Any]) -> StructField:
    """The field with these entries set and all others kept."""
    return replace(field, metadata={**field.metadata, **entries})


def without_metadata(field: StructField, keys: Iterable[str]) -> StructField:
    """The field without these entries; the same object when it has none of them."""
    dropped = frozenset(keys)
    if dropped.isdisjoint(field.metadata):
        return field
    return replace(field, metadata={k: v for k, v in field.metadata.items() if k not in dropped})
