"""Conditions on one table that sensors and triggers wait for. Each is opened once and checked repeatedly."""
