"""Reads counters of `prometheus_client`."""

from prometheus_client import Counter


def value(counter: Counter) -> float:
    """Return the sum over all labels."""
    return sum(by_labels(counter).values())


def by_labels(counter: Counter) -> dict[tuple[str, ...], float]:
    """Return the value for each combination of label values."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in counter.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }
