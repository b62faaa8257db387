"""Multiples of a byte."""

MIB = 2**20
GIB = 2**30
