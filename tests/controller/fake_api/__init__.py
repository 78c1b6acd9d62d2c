"""An API server of Kubernetes for tests: real HTTP on loopback, objects in memory, faults at will.

Belongs here: what a real server was seen to do, as far as the operator can tell the difference.
Does not belong here: anything of the operator but the names of places; schemas, admission, garbage
collection: what needs those is tried on a real cluster.
Called by: every test of the operator. `fake.FakeApi` is the door; behind it

    api.add, edit, remove, find       what a person does with kubectl
    api.record.of(verb="patch")       what was asked; `writes` of it, `reached` to wait for it
    api.faults.refuse(429, retry_after=3, verb="list", times=2, after=1)
    api.faults.silence, hold          taken, and answered never, or when a gate opens
    api.faults.hang_up                a lost answer, to what was done or to what was not
    api.faults.meanwhile              something happens in a gap, as between a list and a watch
    api.streams.opened                to wait for a watch
    api.streams.hold, let_go          silence, and events that come late
    api.streams.lose, repeat          events that never come, or come twice
    api.streams.cut, end, fail        the ways in which a watch is over
    api.storage.compact               what was before is gone: 410 for lists and watches
    api.served.remove(kind)           a definition that is missing
"""
