"""The job kind `load`: files from elsewhere into a table, under a contract."""
