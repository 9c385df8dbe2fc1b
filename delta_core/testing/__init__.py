"""Test suites for extensions of deltaward, such as stores of other packages."""
