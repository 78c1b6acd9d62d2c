"""The Kubernetes API as the controller uses it: authentication, requests, errors and elections.

Nothing here knows what the controller wants from the cluster. Kopf does the watching.
"""
