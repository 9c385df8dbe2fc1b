"""The job kind `load`: load files or rows of a table into a table, validated by a contract."""
