"""What Workron promises on a cluster, proven on a real one: a file for each promise.

Each file has a namespace of its own, so that they may run side by side; what disrupts the cluster
itself is marked `alone` and runs after them, one at a time. The cluster, the images and the release
are made once, by `e2e.harness`.
"""
