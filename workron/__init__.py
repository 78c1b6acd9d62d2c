"""Workron runs command-line jobs and DAGs of them.

This is the curated surface: what stands in `__all__` is public and kept stable; every other
module is reached by its full name and may change with any release.
"""

from importlib import metadata

__version__ = metadata.version("workron")

__all__ = ["__version__"]
