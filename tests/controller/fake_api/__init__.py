"""An API server of Kubernetes for tests: real HTTP on loopback, objects in memory, faults at will.

Belongs here: what a real server was seen to do, as far as the operator can tell the difference.
Does not belong here: anything of the operator but the names of places; schemas, admission, garbage
collection: what needs those is tried on a real cluster.
Called by: every test of the operator. `fake.FakeApi` is the door.
"""
