"""Properties of pure rules: many examples, and no example is timed."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("core", deadline=None)
settings.load_profile("core")
