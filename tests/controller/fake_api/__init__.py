"""An API server of Kubernetes for tests: real HTTP on loopback, objects in memory, and faults.

It does what a real server does as far as the controller can see the difference. It has no
schemas, no admission and no garbage collection: the end-to-end tests cover what needs those.
`fake.FakeApi` is the entry point:

    api.add, edit, remove, find         change objects as kubectl does, past the log and the faults
    api.requests.matching(verb="patch") the requests that came; `wait_for` waits for them
    api.faults.refuse(429, retry_after=3, verb="list", times=2, after=1)
    api.faults.leave_unanswered, hold   no answer, or none until an event is set
    api.faults.disconnect               no answer to a request that was carried out, or was not
    api.faults.run_before               a change in a gap, as between a list and a watch
    api.watches.wait_until_open         wait for a watch
    api.watches.pause, resume           no events, or late ones
    api.watches.drop, duplicate         events that are never sent, or twice
    api.watches.cut, end, fail          the ways in which a watch ends
    api.storage.compact                 drop the history: 410 for older lists and watches
    api.served.remove(kind)             a missing definition
"""
