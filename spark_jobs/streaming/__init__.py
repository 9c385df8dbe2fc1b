"""Streams from and into tables."""
