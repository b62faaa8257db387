"""Recipes: one method on one environment, each a short file with a function `run` that returns a `Run`."""
