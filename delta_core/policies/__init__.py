"""Policies: rules for many tables in one YAML file, resolved and applied by pure functions."""
