"""Reading saved plans back: plans are JSON objects with a format version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_core.errors import MaintenanceError

PLAN_FORMAT_VERSION = 1
"""The format that this version writes, and the newest it reads."""


def plan_header(kind: str) -> dict[str, Any]:
    """The fields that every saved plan starts with."""
    return {"plan": kind, "format_version": PLAN_FORMAT_VERSION}


def check_plan_header(document: Mapping[str, Any], kind: str) -> None:
    """Check that a document is a plan of that kind in a format known here.

    Raises:
        MaintenanceError: it is not.
    """
    if document.get("plan") != kind:
        raise MaintenanceError(
            f"the document is not a {kind} plan",
            cause=f"its field 'plan' is {document.get('plan')!r}",
            fix=f"pass what the {kind} plan's to_json gave",
        )
    version = document.get("format_version")
    if not isinstance(version, int) or version > PLAN_FORMAT_VERSION:
        raise MaintenanceError(
            f"the {kind} plan has format {version!r}",
            cause=f"this version of deltaward knows formats up to {PLAN_FORMAT_VERSION}",
            fix="plan again with this version, or upgrade deltaward",
        )


def malformed_plan(kind: str, error: Exception) -> MaintenanceError:
    """The error for a plan whose fields are missing or of a wrong type."""
    return MaintenanceError(
        f"the {kind} plan is malformed",
        cause=f"{type(error).__name__}: {error}",
        fix="plan again; a plan is not meant to be edited",
    )
