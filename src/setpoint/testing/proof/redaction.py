"""Keeps values of Secrets out of what is printed and kept: reports, stories, plan files, golden files.

1. In a Secret, the values of ``data`` and ``stringData`` and the annotation of ``kubectl apply`` are replaced
   wherever an object, a patch or a difference is shown: names and keys stay.
2. What a run has stored in Secrets is searched for in all other text (an error of the operator's, a ConfigMap
   with a copy) and replaced there too, unless it is short or is the name of something.
3. In a plan that is kept, each value becomes another one, the same for the same value: the plan runs as it
   did, unless the operator reads the value itself.

Oracles compare the values as they are: only what leaves the process is changed.  Pure.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import msgspec

from setpoint.testing.proof.kept import Kept
from setpoint.testing.proof.plans import REDACTED, SECRET_FIELDS, redacted_patch
from setpoint.testing.proof.trace import Run, State

_SECRETS: Final = "secrets"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MIN_LENGTH: Final = 6  # of a value that is searched for: shorter ones are in too many words


def redacted_object(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as it may be shown."""
    if obj.get("kind") != "Secret" or obj.get("apiVersion", "v1") != "v1":
        return obj
    shown = redacted_patch("Secret", obj)
    metadata = shown.get("metadata")
    if isinstance(metadata, dict) and _LAST_APPLIED in (metadata.get("annotations") or {}):
        annotations = {**metadata["annotations"], _LAST_APPLIED: REDACTED}
        shown = {**shown, "metadata": {**metadata, "annotations": annotations}}
    return shown


def redacted_state(state: State) -> State:
    """The objects of a cluster as they may be shown."""
    return {
        called: redacted_object({"kind": "Secret", **obj}) if called.startswith(f"{_SECRETS} ") else obj
        for called, obj in state.items()
    }


class Redactor:
    """What was stored in the Secrets of some runs, to be taken out of any text."""

    def __init__(self, *runs: Run | None) -> None:
        known, values = set[str](), set[str]()
        for run in runs:
            for write in () if run is None else run.writes:
                known.update((write.resource, write.namespace, write.name))
                if write.resource == _SECRETS:
                    for data in filter(None, (write.data, write.before)):
                        values.update(_forms(msgspec.json.decode(data)))
        self._values = sorted(
            (each for each in values - known if len(each) >= _MIN_LENGTH), key=len, reverse=True
        )

    def __repr__(self) -> str:
        return f"<Redactor of {len(self._values)} values>"

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, REDACTED)
        return text

    def texts(self, texts: Iterable[str]) -> list[str]:
        return [self.text(each) for each in texts]

    def run(self, run: Run) -> Run:
        """A run whose story may be told."""
        lines = [line._replace(what=self.text(line.what)) for line in run.lines]
        return replace(run, lines=lines) if self._values else run


def _forms(secret: dict[str, Any]) -> Iterator[str]:
    """Its values, as they are stored, as text, and as that stands in JSON and in a repr."""
    for field in SECRET_FIELDS:
        for value in (secret.get(field) or {}).values():
            if not isinstance(value, str):
                continue
            yield value
            try:
                text = b64decode(value, validate=True).decode()
            except (NotBase64, ValueError):
                continue
            yield text
            yield msgspec.json.encode(text).decode()[1:-1]
            yield repr(text)[1:-1]


def redacted_kept(kept: Kept) -> Kept:
    """A plan as it may be kept: with other values in its Secrets."""
    places: dict[str, str] = {}

    def other(value: str) -> str:
        return places.setdefault(value, f"redacted-{len(places) + 1}")

    built = msgspec.to_builtins(kept)
    _replace_secrets(built, other)
    return msgspec.convert(built, Kept) if places else kept


def _replace_secrets(value: Any, other: Callable[[str], str]) -> None:
    """Change, in place, whatever is a Secret or a change of one."""
    if isinstance(value, list | tuple):
        for each in value:
            _replace_secrets(each, other)
    elif isinstance(value, dict):
        if value.get("kind") == "Secret":
            secret = value.get("patch") if value.get("type") == "Change" else value
            _replace_values(secret if isinstance(secret, dict) else {}, other)
            return
        for each in value.values():
            _replace_secrets(each, other)


def _replace_values(secret: dict[str, Any], other: Callable[[str], str]) -> None:
    for field in SECRET_FIELDS:
        for key, value in (secret.get(field) or {}).items():
            if isinstance(value, str):
                secret[field][key] = _like(field, value, other)
    annotations = (secret.get("metadata") or {}).get("annotations") or {}
    if _LAST_APPLIED in annotations:
        annotations[_LAST_APPLIED] = other(annotations[_LAST_APPLIED])


def _like(field: str, value: str, other: Callable[[str], str]) -> str:
    """Another value in the same form; what is the same in ``data`` and ``stringData`` stays the same."""
    if field != "data":
        return other(value)
    try:
        text = b64decode(value, validate=True).decode()
    except (NotBase64, ValueError):
        text = value
    return b64encode(other(text).encode()).decode()
