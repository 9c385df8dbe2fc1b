"""Maintenance: one folder per verb, each a pure plan and its application."""
