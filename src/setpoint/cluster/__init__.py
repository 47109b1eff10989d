"""A cluster in one process: the API server, the controllers that every cluster has, and a node.

``Cluster`` runs them; ``chosen`` reads which of the controllers somebody wants.
"""

from setpoint.cluster.choosing import chosen
from setpoint.cluster.cluster import Cluster

__all__ = ["Cluster", "chosen"]
