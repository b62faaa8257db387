"""Variants of the world games, one a file. A file defines a function of its name."""
