"""In which form an answer is sent: read from ``Accept``, as Kubernetes reads it.

We write JSON and YAML; an object may also be asked for as a Table or as its metadata alone.  The first
clause that can be met, by weight and then in the order given, decides.  Protobuf is understood in requests
and never written: who takes nothing else gets 406.

Pure, and asked for every request: answers are kept by the text that led to them.  Used by ``app.py``.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from setpoint.server.statuses import StatusError, not_acceptable

As = Literal["object", "table", "partial", "partial list", "discovery"]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_KINDS: Final[dict[str, As]] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial list",
}
_VERSIONS: Final = ("v1", "v1beta1")
_AVAILABLE: Final = (JSON, YAML)
_STREAMED: Final = (f"{JSON};stream=watch",)
_WEIGHT: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?")
_MOST_KEPT: Final = 1000
_LONGEST_KEPT: Final = 1000  # characters


class Form(NamedTuple):
    """How to write an answer."""

    media: str = JSON
    kind: As = "object"
    version: str = "v1"  # of meta.k8s.io, for a Table or metadata
    is_pretty: bool = False


class _Clause(NamedTuple):
    media: str
    parameters: dict[str, str]
    weight: float


class Negotiator:
    """Reads ``Accept``; keeps what it read."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bool, bool], Form | StatusError] = {}

    def form(self, accept: str, *, is_custom: bool, is_many: bool = False) -> Form:
        """Of an object, or of a list or watch of them.  Raises 406."""
        if not accept:
            return Form()
        found = self._kept.get((accept, is_custom, is_many))
        if found is None:
            found = _form(accept, is_custom=is_custom, is_many=is_many)
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()  # a client that never says the same twice: rare, and not worth more
            if len(accept) <= _LONGEST_KEPT:
                self._kept[accept, is_custom, is_many] = found
        if isinstance(found, StatusError):
            raise StatusError(found.code, found.reason, found.message, details=found.details)
        return found


def _form(accept: str, *, is_custom: bool, is_many: bool) -> Form | StatusError:
    clauses = _clauses(accept)
    if not is_custom and not any(one.media in (*_AVAILABLE, _PROTOBUF, "*/*") for one in clauses):
        shown = (*_AVAILABLE, *_STREAMED) if is_many else _AVAILABLE  # a list may become a watch
        return _none_of(*shown)
    for one in clauses:
        media, kind = _media(one.media), _kind(one.parameters)
        if media and kind:
            version = one.parameters.get("v", "v1") if kind != "object" else "v1"
            return Form(media, kind, version, is_pretty=one.parameters.get("pretty") in ("1", "true"))
    return not_acceptable(*_AVAILABLE)


def _none_of(*available: str) -> StatusError:
    """How a route refuses that knows beforehand what it has."""
    told = f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}"
    return StatusError(406, "NotAcceptable", told, details={})


def check_accepted(accept: str, media: str) -> None:
    """Of a document that there is in one form alone.  Raises 406."""
    if accept and not any(one.media in (media, "*/*") for one in _clauses(accept)):
        raise _none_of(media)


def of_discovery(accept: str, root: str) -> Form:
    """Of ``/api`` and ``/apis``: groups with all that is in them, where that is asked for.  Raises 406."""
    if not accept:
        return Form()
    for one in _clauses(accept):
        media = _media(one.media)
        named = tuple(one.parameters.get(name, "") for name in ("as", "g", "v"))
        if media and named == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"):
            return Form(media, "discovery", "v2")
        if media and not named[0]:
            return Form(media)
    raise _none_of(*_AVAILABLE) if root == "api" else not_acceptable(*_AVAILABLE)


def of_stream(form: Form) -> Form:
    """A watch is written in JSON."""
    if form.media != JSON:
        raise not_acceptable(*_STREAMED)
    return form


def of_refusal(accept: str) -> Form:
    """A Status is sent whatever was asked for; to who asked for nothing that we have, for eyes to read."""
    if not accept:
        return Form()
    for one in _clauses(accept):
        media = _media(one.media)
        if media and "as" not in one.parameters:
            return Form(media)
    return Form(is_pretty=True)


def _clauses(accept: str) -> list[_Clause]:
    """By weight, the named before the wild, else as they came."""
    found = []
    for text in accept.split(","):
        media, *rest = (part.strip() for part in text.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        said = parameters.get("q", "1")
        weight = float(said) if _WEIGHT.fullmatch(said) else 1.0
        if media:
            found.append(_Clause(media.lower(), parameters, weight))
    return sorted(found, key=lambda one: (-one.weight, one.media == "*/*", one.media.endswith("/*")))


def _media(media: str) -> str:
    if media in ("*/*", "application/*"):
        return JSON
    return media if media in (JSON, YAML) else ""


def _kind(parameters: dict[str, str]) -> As | None:
    asked = parameters.get("as", "")
    if not asked:
        return "object"
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in _VERSIONS:
        return None
    return _KINDS.get(asked)
