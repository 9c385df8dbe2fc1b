"""Policies: rules for many tables in one YAML file. Pure functions resolve and apply them."""
