"""Reading manifests: from the bytes of files to models, or to one error with every problem.

YAML and JSON mean what they mean to `kubectl apply`, and a file cannot exhaust its reader. Every
problem has its file, line and field. `load.load` is the entry point.
"""
