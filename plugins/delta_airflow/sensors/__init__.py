"""Sensors over Delta tables."""
