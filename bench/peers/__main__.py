"""`make bench-peers`: install what ours is held against, each into a folder of its own."""

from __future__ import annotations

import argparse

from bench import config
from bench.peers import roster


def main() -> None:
    """Install all, or those that are named."""
    kits = [*roster.EVERY, *roster.OTHERS]
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*(one.name for one in kits), []])
    names = parser.parse_args().names
    versions = config.read().peers
    for one in kits:
        if not names or one.name in names:
            print(f"{one.name} {versions[one.name]}", flush=True)
            one.install(versions[one.name])


main()
