"""Operations on runs: submit, wait, cancel, explain, show, maintain.

It applies the rules of `workron.core` through the interfaces of `workron.store`, and knows neither
SQL nor terminals nor Kubernetes. The worker does not use it.
"""
