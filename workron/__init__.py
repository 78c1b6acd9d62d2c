"""Workron runs command-line jobs and DAGs of them.

Names in `__all__` are public and stable. Other modules may change with any release.
"""

__version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    # Read on first use: finding the installed metadata takes longer than starting Python.
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata  # noqa: PLC0415

    return metadata.version(__name__)
