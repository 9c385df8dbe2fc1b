"""Saved plans: the JSON format, which has a version, and the check that a plan is for a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_core.errors import MaintenanceError
from delta_core.snapshot.snapshot import Snapshot

PLAN_FORMAT_VERSION = 1
"""The format that this release writes, and the newest format that it reads."""


def plan_header(kind: str) -> dict[str, Any]:
    """The first fields of every saved plan."""
    return {"plan": kind, "format_version": PLAN_FORMAT_VERSION}


def check_plan_header(document: Mapping[str, Any], kind: str) -> None:
    """Check that a document is a plan of the kind `kind` in a supported format.

    Raises:
        MaintenanceError: the document is not such a plan.
    """
    if document.get("plan") != kind:
        raise MaintenanceError(
            f"The document is not a {kind} plan.",
            cause=f"Its field 'plan' is {document.get('plan')!r}.",
            fix=f"Pass the result of to_json of a {kind} plan.",
        )
    version = document.get("format_version")
    if not isinstance(version, int) or version > PLAN_FORMAT_VERSION:
        raise MaintenanceError(
            f"The format {version!r} of the {kind} plan is not supported.",
            cause=f"This release of deltaward reads formats up to {PLAN_FORMAT_VERSION}.",
            fix="Make a new plan with this release, or upgrade deltaward.",
        )


def malformed_plan(kind: str, error: Exception) -> MaintenanceError:
    """The error for a plan with missing fields or fields of a wrong type."""
    return MaintenanceError(
        f"The {kind} plan is malformed.",
        cause=f"{type(error).__name__}: {error}.",
        fix="Make a new plan, and do not edit it.",
    )


def require_same_table(latest: Snapshot, table_id: str) -> None:
    """Check that a plan is for this table.

    Raises:
        MaintenanceError: the plan is for another table.
    """
    if latest.metadata.id != table_id:
        raise MaintenanceError(
            "The plan is for another table.",
            cause=f"The plan has the table id {table_id}, but the table has {latest.metadata.id}.",
            fix="Make a new plan for this table.",
        )
