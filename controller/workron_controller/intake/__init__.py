"""From objects of the cluster to the store: what was seen, what it asks for, and asking for it."""
