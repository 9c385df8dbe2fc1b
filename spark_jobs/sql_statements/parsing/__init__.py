"""The parser: from SQL text to values, one per statement. It needs no session."""
