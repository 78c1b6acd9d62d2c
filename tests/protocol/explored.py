"""Explorations that several tests use, each done once."""

from __future__ import annotations

import functools

from tests.protocol import configurations, explorer, mutants
from tests.protocol.explorer import Report

CONFIGURATIONS = {rules.name: rules for rules in configurations.SMALL}
MUTANTS = {mutant.name: mutant for mutant in mutants.MUTANTS}


@functools.cache
def configuration(name: str) -> Report:
    return explorer.explore(CONFIGURATIONS[name])


@functools.cache
def mutant(name: str) -> Report:
    return explorer.explore(MUTANTS[name].rules)
