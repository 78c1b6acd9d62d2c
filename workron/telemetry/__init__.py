"""Logging of every process, and the health and metrics endpoint of long-running commands."""
