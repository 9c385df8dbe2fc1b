"""The job kind `load`: load files or another table into a table, validated by a contract."""
