"""The promises of docs/explanation/promises.md, tested on a real cluster: one file for each.

Each file has its own namespace, so most files run side by side. Tests that disrupt the cluster are
marked `alone` and run afterwards, one at a time.
"""
