"""From the bytes of files to models, with every problem named by file, line and path.

Belongs here: YAML and JSON as Kubernetes reads them, limits on what a text may do to its reader,
and the wording of what the models refuse.
Does not belong here: opening files (the command line does), the models, the graph.
Called by: `workron.cli`, with bytes; it calls `read.read` and gets manifests, or one ManifestError.
"""
