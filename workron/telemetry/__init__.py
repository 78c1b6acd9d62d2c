"""Logging, health checks and metrics, shared by all long-running commands."""
