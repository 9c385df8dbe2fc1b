"""The `deltaward` command."""
