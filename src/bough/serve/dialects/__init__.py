"""Dialects: each translates requests, answers and streams of an API, and nothing else."""
