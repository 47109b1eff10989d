"""What claims are filled from, and since when volumes are as they are.

A claim names what it is filled from in two fields, of which the older has room for less: who sets one of them
is given both.  Pure; in place.  Used by ``beginnings.py``, ``builtins.py`` and ``flow.py``.
"""

from __future__ import annotations

from typing import Any, Final

from setpoint.server.registry.resources import Object

# What the older field may name; anything else has always been dropped from it.
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_OLD, _NEW = "dataSource", "dataSourceRef"

Json = dict[str, Any]


def fill_sources(spec: Object, before: Object | None = None) -> None:
    """``before`` is the spec that there was, of a claim that is changed."""
    was: Json = before or {}
    if (spec.get(_NEW) or {}).get("namespace") and was.get(_NEW) is None:
        del spec[_NEW]  # from other namespaces only where that is turned on, which it is not
    is_filled = was.get(_OLD) is not None or was.get(_NEW) is not None
    if spec.get(_NEW) is None and not is_filled and not _is_known(spec.get(_OLD)):
        spec.pop(_OLD, None)
    source, reference = spec.get(_OLD), spec.get(_NEW)
    if source is not None and reference is None:
        spec[_NEW] = _named(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec[_OLD] = _named(reference)


def _is_known(source: Json | None) -> bool:
    return source is not None and (source.get("apiGroup") or "", source.get("kind")) in _SOURCES


def _named(reference: Json) -> Json:
    return {name: reference[name] for name in ("apiGroup", "kind", "name") if reference.get(name) is not None}


def settle_phase(new: Object, old: Object, now: str) -> None:
    """Of a volume: who says what it is need not say since when."""
    status, before = new.get("status") or {}, old.get("status") or {}
    said, then = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase", "") != before.get("phase", ""):
        since = now if said in (None, then) else said
    else:
        since = said or then
    if since is not None:
        new["status"] = {**status, "lastPhaseTransitionTime": since}
