"""Environments of other libraries and protocols."""
