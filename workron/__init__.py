"""Workron runs command-line jobs and DAGs of them.

This is the curated surface: what stands in `__all__` is public and kept stable; every other
module is reached by its full name and may change with any release.
"""

__version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    # On use: reading it from what is installed costs more than starting Python itself.
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata  # noqa: PLC0415

    return metadata.version(__name__)
