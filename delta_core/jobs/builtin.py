"""The registry with the built-in job kinds."""

from __future__ import annotations

from functools import cache

from delta_core.jobs.kinds import BUILTIN_KINDS
from delta_core.jobs.registry import JobRegistry


@cache
def default_registry() -> JobRegistry:
    """The process's registry: the built-in job kinds, and on demand those of installed extensions."""
    registry = JobRegistry()
    for kind in BUILTIN_KINDS:
        registry.register(kind)
    return registry
