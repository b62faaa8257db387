"""Tasksets of the library verifiers as environments."""
