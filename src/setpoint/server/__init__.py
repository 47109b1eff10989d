"""A Kubernetes API server: ``ApiServer`` in ``server.py`` puts storage, registry and http together.

It imports nothing of the client: they meet only as bytes.
"""
