"""The table features and table properties, and how this library supports each of them."""
