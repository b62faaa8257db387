"""Recipes: a method on a world as tuned and measured in docs/results.md, one a file."""
