"""Worlds, a folder each: an environment, its parts and data, and a policy with tuned settings in `preset.py`."""
