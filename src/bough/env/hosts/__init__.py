"""Hosts of environments: in this process and in workers."""
