"""Clones that keep the source's history: its versions, their commits, and the files that they refer to."""

from delta_core.maintenance.clone.history.apply import clone_history

__all__ = ["clone_history"]
