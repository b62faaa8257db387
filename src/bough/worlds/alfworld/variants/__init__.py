"""Variants of the world alfworld, one a file. A file defines a function of its name."""
