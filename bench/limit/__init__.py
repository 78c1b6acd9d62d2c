"""Measures what this machine can do without Workron: the limits that Workron is compared with."""
