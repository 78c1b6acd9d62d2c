"""One of several operators leads: for work that two may do at once, but should not.

Belongs here: the Lease object, and who may believe that it leads.
Does not belong here: what a leader does; the election of a maintainer, which is the store's.
Called by: whoever writes statuses and scales pools.
"""
