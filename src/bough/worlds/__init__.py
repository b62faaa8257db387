"""Worlds: an environment and a policy with tuned settings, one a file. A file defines a function of its name."""
