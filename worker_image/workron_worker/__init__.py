"""The agent: claims jobs of one pool, has a runner start their commands, and reports their ends.

It also sends heartbeats, streams output and drains. SQL is in `workron.store`; whether a job may
run is decided in `workron.scheduling`; processes are the runner's (`workron_runner`).
"""
