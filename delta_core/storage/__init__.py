"""Bytes and names in a store; nothing here knows about Delta."""
