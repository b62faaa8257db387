"""Variants of the world search, one a file. A file defines a function of its name."""
