"""Installs the systems that Workron is compared with, each in its own folder."""

from __future__ import annotations

import argparse

from bench import config
from bench.peers import registry


def main() -> None:
    """Install all systems, or the named ones."""
    kits = [*registry.EVERY, *registry.OTHERS]
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*(one.name for one in kits), []])
    names = parser.parse_args().names
    versions = config.read().peers
    for one in kits:
        if not names or one.name in names:
            print(f"{one.name} {versions[one.name]}", flush=True)
            one.install(versions[one.name])


main()
