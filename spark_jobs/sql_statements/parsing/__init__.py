"""The parser: from SQL to values, one per statement. It needs no session."""
