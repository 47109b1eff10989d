"""Answers, in bytes: an object, a list, a Status, each in the form that was agreed on, with the headers it
needs.

Bytes that came from the store go out as they are: a GET is not decoded, and a list is cut and joined.

Pure.  Used by ``app.py``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from setpoint.net.listen import Answer
from setpoint.server.http.negotiate import JSON, YAML, Form
from setpoint.server.registry.requests import Listed
from setpoint.server.registry.resources import Resource
from setpoint.server.statuses import StatusError

_LARGE: Final = 128 * 2**10  # bytes; what is smaller is not worth packing
_GZIP: Final = 31  # to zlib: the largest window, with gzip's head and end
_TOGETHER: Final = 64  # objects of a list in one piece
_MOST_WARNINGS: Final = 4096  # bytes of all together
_MOST_WARNING: Final = 256  # characters of one, once they are too many
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FOR_EYES: Final = ("curl", "Wget", "Mozilla/5.0")
_PRIVATE: Final = "no-cache, private"

_encode = msgspec.json.encode


def is_pretty(form: Form, query: Mapping[str, str], agent: str) -> bool:
    """Asked for in so many words, or by a program that people look at."""
    if form.is_pretty:
        return True
    if "pretty" in query:
        return query["pretty"].lower() in ("1", "t", "true")
    return agent.startswith(_FOR_EYES)


def written(data: bytes, media: str, *, pretty: bool) -> bytes:
    """JSON bytes in the wanted form."""
    if media == YAML:
        from setpoint.api.yaml import dump  # noqa: PLC0415 - large, and rarely asked for

        return dump(_sorted(msgspec.json.decode(data))).encode()
    if pretty:
        return msgspec.json.format(data, indent=2)
    return data + b"\n"


def _sorted(value: Any) -> Any:
    """YAML is written by key, as Kubernetes does."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def answered(
    code: int,
    body: bytes | Iterable[bytes],
    media: str = JSON,
    *,
    warnings: Iterable[str] = (),
    encodings: str = "",
) -> Answer:
    """An answer with its headers; packed if it is large and the client takes that.

    Of a body in pieces no more than one is there at a time where it is packed: the whole would be new memory
    with each answer, and a third of its cost.
    """
    headers = {"Cache-Control": _PRIVATE, "Content-Type": media}
    if said := warning_header(warnings):
        headers["Warning"] = said
    rest = iter((body,) if isinstance(body, bytes) else body)
    begun, size = [], 0
    if "gzip" in encodings:
        for piece in rest:
            begun.append(piece)
            size += len(piece)
            if size > _LARGE:
                headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
                return Answer(code, headers, _packed(b"".join(begun), rest))
    return Answer(code, headers, b"".join([*begun, *rest]))


def _packed(begun: bytes, rest: Iterable[bytes]) -> bytes:
    packing = zlib.compressobj(1, wbits=_GZIP)
    packed = [packing.compress(begun), *map(packing.compress, rest), packing.flush()]
    return b"".join(packed)


def refused(error: StatusError, form: Form, *, pretty: bool) -> Answer:
    body = written(_encode(error.status), form.media, pretty=pretty or form.is_pretty)
    answer = answered(error.code, body, form.media, warnings=error.warnings)
    return Answer(answer.status, {**answer.headers, **error.headers}, body)


def page_not_found() -> Answer:
    return plain(404, "404 page not found\n")


def plain(code: int, text: str) -> Answer:
    headers = {
        "Cache-Control": _PRIVATE,
        "Content-Type": "text/plain; charset=utf-8",
        "X-Content-Type-Options": "nosniff",
    }
    return Answer(code, headers, text.encode())


# ── Warnings ────────────────────────────────────────────────────────────────────────────────────────


def warning_header(warnings: Iterable[str]) -> str:
    """Each once, on lines of their own; where they are too much together each is cut, and the rest left.

    One with a control character in it is left out, as in Kubernetes.
    """
    once = [one for one in dict.fromkeys(warnings) if one and not _CONTROL.search(one)]
    if sum(len(one.encode()) for one in once) > _MOST_WARNINGS:
        once = [one[:_MOST_WARNING] for one in once]
    found, size = [], 0
    for one in once:
        size += len(one.encode())
        if size > _MOST_WARNINGS:
            break
        found.append(f'299 - "{_quoted(one)}"')
    return "\n".join(found)


def _quoted(text: str) -> str:
    readable = "".join(character for character in text if character.isprintable())
    return readable.replace("\\", "\\\\").replace('"', '\\"')


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────


def list_metadata(listed: Listed, *, is_custom: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(listed.revision)}
    if listed.continue_token or is_custom:
        metadata["continue"] = listed.continue_token
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    return _encode(metadata)


def list_pieces(listed: Listed, resource: Resource) -> Iterator[bytes]:
    """A list as it is sent.  Items of built-in kinds do not say their kind: the list does."""
    kind = resource.list_kind or f"{resource.kind}List"
    yield f'{{"kind":"{kind}","apiVersion":"{resource.api_version}","metadata":'.encode()
    yield list_metadata(listed, is_custom=resource.is_custom)
    yield b',"items":['
    cut = len(f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",')
    for at in range(0, len(listed.records), _TOGETHER):
        if at:
            yield b","
        together = [record.data for record in listed.records[at : at + _TOGETHER]]
        yield b",".join(together if resource.is_custom else [b"{" + data[cut:] for data in together])
    yield b"]}\n"
