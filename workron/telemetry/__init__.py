"""Logging, health checks and metrics, shared by all long-running commands.

Each part is imported only by the commands that use it, so that short commands start fast.
"""
