"""Triggers: asynchronous polls for deferred tasks."""
