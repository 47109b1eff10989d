"""A local, current copy of what is watched: declared, read, and followed by listeners.

``Cache`` is where to begin; ``CachedReader`` reads from one without going behind one's own writes.
"""

from setpoint.cache.cache import Cache
from setpoint.cache.consistency import CachedReader
from setpoint.cache.declaration import Declaration
from setpoint.cache.index import FromMetadata
from setpoint.cache.informer import Listener, Stats
from setpoint.cache.scope import Problem, Scope
from setpoint.cache.store import Seen
from setpoint.cache.watch_state import Timing

__all__ = [
    "Cache",
    "CachedReader",
    "Declaration",
    "FromMetadata",
    "Listener",
    "Problem",
    "Scope",
    "Seen",
    "Stats",
    "Timing",
]
