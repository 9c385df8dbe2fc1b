"""Operators over Delta tables; import each from its own module."""
