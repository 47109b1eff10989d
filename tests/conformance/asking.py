"""Scripts of requests, and what a server answers to them, in a form in which two servers can be compared.

A script is a list of steps, each one request.  A later step may name what an earlier one was answered:
``${made.metadata.uid}`` in a path or body is that value of the answer to the step called ``made``, and
``Put("made", patch)`` is that whole object with a merge patch applied.

What two servers choose for themselves is replaced by what it is: uids, versions, generated names, allocated
addresses and ports become ``<uid 1>``, ``<version 2>`` and so on, numbered as they appear, so that equal ones
stay equal; the present time, ages and continue tokens become ``<now>``, ``<age>`` and ``<continue>``.

Driven by ``test_server_differences.py`` and ``record.py``.  HTTP is the standard library's.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

import yaml

from setpoint.api.patches import apply_merge
from setpoint.testing.embedded import EmbeddedControlPlane
from setpoint.testing.kube import ControlPlane
from tests.conformance.webhooks import webhooks

Json: TypeAlias = Any
Answer: TypeAlias = dict[str, Json]  # status, headers, body: canonical

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
YAML: Final = "application/yaml"

_DEADLINE: Final = 30.0  # seconds that something may take to come about
_HEADERS: Final = ("Content-Type", "Warning", "Retry-After", "Cache-Control", "Www-Authenticate", "Location")


@dataclass(frozen=True)
class Put:
    """The answer to an earlier step, changed by a merge patch."""

    step: str
    patch: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One request.

    ``COMPACT`` in place of a method makes the server forget the past; ``ASKED`` gives what the webhook server
    (``${hooks.url}``, ``${hooks.ca}``) was asked at a path about the script's namespace; with ``lines``, so
    many of them.

    ``lines`` ends a watch after so many events; else it lasts as long as its ``timeoutSeconds`` say.  With
    ``until`` the request is repeated until it is answered with that code, and for ``until_says`` until a
    condition is as it says (``Established=True``), for ``until_has`` until the answer has that text, for
    ``until_allowed`` until a review allows what it asks: only the last answer counts.
    """

    method: str
    path: str
    body: Json | str | bytes | Put | None = None
    content_type: str = ""
    name: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    lines: int = 0
    until: int = 0
    until_says: str = ""
    until_has: str = ""
    until_allowed: bool = False
    as_text: bool = False  # the body's very characters count
    is_anonymous: bool = False
    only: tuple[str, ...] = ()  # the top-level fields of the body that are compared; all, unless told
    shape: Callable[[Json], Json] | None = None  # what is compared instead of the body
    is_quiet: bool = False  # it prepares the next ones, and its answer is not compared


@dataclass(frozen=True)
class Script:
    """Requests in their order, by one user.  ``${namespace}`` is one of its own.

    ``is_alone``: on a server that nobody else has asked anything.
    """

    name: str
    steps: Sequence[Step]
    is_alone: bool = False


# ---- asking ----------------------------------------------------------------------------------------------


class Asker:
    """One administrator's connection to a server."""

    def __init__(self, plane: ControlPlane | EmbeddedControlPlane) -> None:
        self._plane = plane
        self._context = ssl.create_default_context(cafile=str(plane.ca_file))
        self._stranger = ssl.create_default_context(cafile=str(plane.ca_file))
        self._context.load_cert_chain(plane.admin_certificate, plane.admin_key)
        at = urlsplit(plane.url)
        self._host, self._port = at.hostname or "", at.port
        self._connection = self._connect(self._context)

    def _connect(self, context: ssl.SSLContext) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, context=context, timeout=_DEADLINE)

    def close(self) -> None:
        self._connection.close()

    def run(self, script: Script) -> list[tuple[str, Answer]]:
        """Every answer that counts, with the name of its step."""
        self._connection.close()  # opened anew: a server ends one that was idle since the last script
        namespace = re.sub(r"[^a-z0-9]+", "-", script.name.lower()).strip("-")
        known: dict[str, Json] = {"namespace": namespace}
        canonical = Canonical(script)
        if "${hooks." in repr(script):
            known["hooks"] = told = vars(webhooks())
            canonical.known = {told[name]: f"<hooks {name}>" for name in ("address", "ca", "other_ca")}
        about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        if not script.is_alone:
            self._ask(Step("POST", "/api/v1/namespaces", about), known)
        found = []
        for number, step in enumerate(script.steps):
            if step.method == "COMPACT":
                self._forget()
                continue
            if step.method == "ASKED":
                asked = webhooks().asked(step.path, namespace)[: step.lines or None]
                label = f"{number:03} {step.name or step.method + ' ' + step.path}"
                found.append((label, canonical.answer(0, http.client.HTTPMessage(), asked, step)))
                continue
            status, headers, data = self._asked(step, known)
            body = _parsed(data, step, is_yaml="yaml" in headers.get("Content-Type", ""))
            body = body if step.shape is None else step.shape(body)
            if step.name:
                known[step.name] = body
            if not step.is_quiet:
                label = f"{number:03} {step.name or step.method + ' ' + step.path}"
                found.append((label, canonical.answer(status, headers, body, step)))
            elif status >= 400 and not step.until:
                raise AssertionError(f"{script.name}: {step.method} {step.path}: {status} {body}")
        return found

    def ask(self, step: Step) -> tuple[int, bytes]:
        """One request, which names nothing that was answered before."""
        status, _, data = self._ask(step, {})
        return status, data

    def _forget(self) -> None:
        self._plane.compact()
        self._connection.close()
        self._plane.stop_api_server()  # a real one keeps much of the past in memory
        self._plane.start_api_server()

    def _asked(self, step: Step, known: dict[str, Json]) -> tuple[int, http.client.HTTPMessage, bytes]:
        deadline = time.monotonic() + _DEADLINE
        while True:
            status, headers, data = self._ask(step, known)
            if not (step.until or step.until_says or step.until_has or step.until_allowed):
                return status, headers, data
            if step.until_allowed and json.loads(data).get("status", {}).get("allowed"):
                return status, headers, data
            if step.until_has and step.until_has.encode() in data:
                return status, headers, data
            if step.until == status or (step.until_says and _says(data, step.until_says)):
                return status, headers, data
            if time.monotonic() > deadline:
                raise AssertionError(f"{step.method} {step.path}: still {status} {data[:500]!r}")
            time.sleep(0.02)

    def _ask(self, step: Step, known: dict[str, Json]) -> tuple[int, http.client.HTTPMessage, bytes]:
        body, kind = _body(step, known)
        own = {name: _filled(value, known) for name, value in step.headers.items()}
        headers = {"User-Agent": "probe/1.0", **({"Content-Type": kind} if kind else {}), **own}
        path = _filled(step.path, known, in_path=True)
        if step.is_anonymous:
            connection = self._connect(self._stranger)
        else:
            connection = self._connection
        try:
            connection.request(step.method, path, body, headers)
            response = connection.getresponse()
            if step.lines:
                return response.status, response.headers, b"".join(_read_lines(response, step.lines))
            return response.status, response.headers, response.read()
        except (http.client.RemoteDisconnected, ConnectionError):
            connection.close()
            return 0, http.client.HTTPMessage(), b""
        except (OSError, http.client.HTTPException) as broken:
            connection.close()
            raise AssertionError(f"{step.method} {path}: {broken!r}") from broken
        finally:
            if step.is_anonymous or step.lines:
                connection.close()


def _read_lines(response: http.client.HTTPResponse, count: int) -> Iterator[bytes]:
    if response.status != 200:
        yield response.read()
        return
    for _ in range(count):
        line = response.readline()
        if not line:
            yield b'"ended early"\n'
            return
        yield line


def _says(data: bytes, condition: str) -> bool:
    conditions = json.loads(data).get("status", {}).get("conditions") or []
    return any(f"{one['type']}={one['status']}" == condition for one in conditions)


def _body(step: Step, known: dict[str, Json]) -> tuple[bytes | None, str]:
    body = step.body
    if body is None:
        return None, step.content_type
    if isinstance(body, bytes):
        return body, step.content_type or JSON
    if isinstance(body, str):
        return _filled(body, known).encode(), step.content_type or JSON
    if isinstance(body, Put):
        patch = json.loads(_filled(json.dumps(body.patch), known))
        body = apply_merge(patch, known[body.step])
        return json.dumps(body).encode(), step.content_type or JSON
    return _filled(json.dumps(body, ensure_ascii=False), known).encode(), step.content_type or JSON


def _filled(text: str, known: dict[str, Json], *, in_path: bool = False) -> str:
    def value(match: re.Match[str]) -> str:
        found: Json = known
        for word in re.findall(r"[^.\[\]]+", match[1]):
            found = found[int(word)] if isinstance(found, list) else found[word]
        return quote(str(found), safe="") if in_path else str(found)

    return re.sub(r"\$\{([^}]+)\}", value, text)


def _parsed(data: bytes, step: Step, *, is_yaml: bool) -> Json:
    text = data.decode("utf-8", "replace")
    if is_yaml:
        return yaml.safe_load(text)
    if step.as_text:
        return text
    if "watch=" in step.path or step.lines:
        lines = [line for line in text.split("\n") if line]
        try:
            return [json.loads(line) for line in lines]
        except ValueError:
            return lines
    try:
        return json.loads(text)
    except ValueError:
        return text


# ---- comparing -------------------------------------------------------------------------------------------

# The first are in the order of their seconds; a real server finds the last in any order.
_UNORDERED: Final = {"managedFields", "causes", "resourceRules", "nonResourceRules"}
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE: Final = re.compile(r"\d+s|[1-9]m(\d+s)?|<invalid>")
_OLD: Final = re.compile(r"too old resource version: \d+ \(\d+\)")
_RECORD: Final = re.compile(r"in record \(\d+\)")
_META: Final = re.compile(r"(ResourceVersion in object meta: )\d+")
_PORT: Final = re.compile(r":3[0-2]\d{3}/")  # of a Service, in a table
_REVISION: Final = re.compile(r"(not decodable revision=)\d+")
_LARGE: Final = re.compile(r"(Too large resource version: \d+, current: )\d+")
_VERSION: Final = re.compile(r'("resourceVersion\\*":\s*\\*")(\d+)|(resourceVersion: ")(\d+)')
_TOKEN: Final = re.compile(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]{20,}")
_FINGERPRINT: Final = re.compile(r"X509SHA256=[0-9a-f]{64}")
_ATOMIC: Final = re.compile(r"(may not mutate atomic arrays, maps or structs: )(.+)")  # in any order
_ADDRESS: Final = re.compile(r"\b10\.0\.0\.\d{1,3}\b")


class Canonical:
    """What one run of a script says, without what the server chose for itself."""

    def __init__(self, script: Script) -> None:
        self.known: dict[str, str] = {}  # what stands for what the tests chose for themselves
        self._seen: dict[str, dict[str, str]] = {}
        self._names: dict[str, str] = {}
        self._asked = "".join(f"{step.path} {step.body!r}" for step in script.steps)

    def _is_asked(self, text: str) -> bool:
        """Whether the script itself says it, as a whole: 10.0.0.25 is not in 10.0.0.255."""
        if text not in self._asked:  # most are not, and this is 100 times as fast as the search
            return False
        return re.search(rf"(?<![0-9A-Za-z]){re.escape(text)}(?![0-9A-Za-z])", self._asked) is not None

    def answer(self, status: int, headers: http.client.HTTPMessage, body: Json, step: Step) -> Answer:
        told = {
            name: [self._text(one) for one in values]
            for name in _HEADERS
            if (values := headers.get_all(name))
        }
        if "protobuf" in headers.get("Content-Type", ""):
            body = "<protobuf>"
        if step.only and isinstance(body, dict):
            body = {name: body.get(name) for name in step.only}
        self._find_names(body)
        return {"status": status, "headers": told, "body": self._value(body)}

    def _find_names(self, value: Json) -> None:
        if isinstance(value, dict):
            prefix, name = value.get("generateName"), value.get("name")
            if isinstance(prefix, str) and isinstance(name, str) and prefix and name.startswith(prefix):
                self._names.setdefault(name, f"{prefix}<name {len(self._names) + 1}>")
            for one in value.values():
                self._find_names(one)
        elif isinstance(value, list):
            for one in value:
                self._find_names(one)

    def _value(self, value: Json, key: str = "") -> Json:
        if isinstance(value, dict):
            causes = (value.get("details") or {}).get("causes") if value.get("kind") == "Status" else None
            if causes and len(causes) > 1:  # Go's maps have no order: the causes are told all the same
                value = {**value, "message": value["message"].partition(": [")[0]}
            if _is_of_many(value):
                value = {**value, "metadata": {**value["metadata"], "resourceVersion": "<revision>"}}
            return {name: self._value(one, name) for name, one in value.items()}
        if isinstance(value, list):
            if key in _UNORDERED:
                value = sorted(value, key=_order)
            if key == "cells":
                return [_age(one) if isinstance(one, str) else one for one in self._value(value)]
            return [self._value(one, key) for one in value]
        if isinstance(value, str):
            if key == "resourceVersion" and value.isdigit() and value != "0":
                return self._number("version", value)
            if key == "continue" and value:
                return "<continue>"
            return self._text(value)
        if key == "nodePort" and isinstance(value, int) and value and not self._is_asked(str(value)):
            return self._number("port", str(value))
        return value

    def _text(self, text: str) -> str:
        for chosen, shown in self.known.items():
            text = text.replace(chosen, shown)
        for name, shown in self._names.items():
            text = text.replace(name, shown)
        text = _TOKEN.sub("<token>", text)
        text = _FINGERPRINT.sub("X509SHA256=<fingerprint>", text)
        text = _UID.sub(self._uid, text)
        text = _TIME.sub(self._time, text)
        text = _OLD.sub("too old resource version: <version> (<version>)", text)
        text = _RECORD.sub("in record (<version>)", text)
        text = _META.sub(r"\1<version>", text)
        text = _PORT.sub(":<port>/", text)
        text = _REVISION.sub(r"\1<version>", text)
        text = _LARGE.sub(r"\1<version>", text)
        text = _VERSION.sub(lambda found: f"{found[1] or found[3]}<version>", text)
        text = _ATOMIC.sub(lambda found: found[1] + ", ".join(sorted(found[2].split(", "))), text)
        return _ADDRESS.sub(self._address, text)

    def _time(self, found: re.Match[str]) -> str:
        return found[0] if self._is_asked(found[0]) else _present(found)

    def _uid(self, found: re.Match[str]) -> str:
        return found[0] if self._is_asked(found[0]) else self._number("uid", found[0])

    def _address(self, found: re.Match[str]) -> str:
        return found[0] if self._is_asked(found[0]) else self._number("address", found[0])

    def _number(self, what: str, value: str) -> str:
        seen = self._seen.setdefault(what, {})
        return seen.setdefault(value, f"<{what} {len(seen) + 1}>")


def _present(found: re.Match[str]) -> str:
    """Times of these days are the present, in their form; others were told by the script."""
    then = datetime.fromisoformat(found[0])
    if abs(then - datetime.now(UTC)) > timedelta(days=2):
        return found[0]
    return "<now, exactly>" if found[1] else "<now>"


def _is_of_many(value: dict[str, Json]) -> bool:
    """Lists, tables and bookmarks have the version of the whole store, in which others write too."""
    kind, metadata = str(value.get("kind", "")), value.get("metadata")
    is_many = kind.endswith("List") or kind == "Table" or set(value) == {"kind", "apiVersion", "metadata"}
    if not is_many or not isinstance(metadata, dict) or "uid" in metadata:
        return False
    return bool(metadata.get("resourceVersion"))


def _order(entry: Json) -> str:
    return json.dumps({name: one for name, one in entry.items() if name != "time"}, sort_keys=True)


def _age(cell: str) -> str:
    return "<age>" if _AGE.fullmatch(cell) else cell


@dataclass(frozen=True)
class Difference:
    """Where two servers differ: in the answer to one step, at one place of it."""

    script: str
    step: str
    path: str
    want: Json
    got: Json

    def __str__(self) -> str:
        told = f"want {_brief(self.want)}\n  got  {_brief(self.got)}"
        return f"{self.script}: {self.step}\n  at {self.path}\n  {told}"


ABSENT: Final = "<absent>"


def differences(
    script: str, want: Sequence[tuple[str, Answer]], got: Sequence[tuple[str, Answer]]
) -> list[Difference]:
    found = []
    for (step, wanted), (_, given) in zip(want, got, strict=True):
        if wanted["status"] != given["status"]:
            found.append(Difference(script, step, "status", _outcome(wanted), _outcome(given)))
            continue
        found += [Difference(script, step, path, a, b) for path, a, b in _compared(wanted, given, "")]
    return found


def _outcome(answer: Answer) -> str:
    body = answer["body"]
    message = body.get("message", body.get("kind")) if isinstance(body, dict) else body
    return f"{answer['status']} {message}"


def _compared(want: Json, got: Json, path: str) -> Iterator[tuple[str, Json, Json]]:
    if isinstance(want, dict) and isinstance(got, dict):
        for name in {**want, **got}:
            a, b = want.get(name, ABSENT), got.get(name, ABSENT)
            yield from _compared(a, b, f"{path}.{name}" if path else name)
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for number, (a, b) in enumerate(zip(want, got, strict=True)):
            yield from _compared(a, b, f"{path}[{number}]")
    elif want != got or type(want) is not type(got):
        yield path, want, got


def _brief(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 1500 else f"{text[:1500]}…"


def decoded(text: str) -> bytes:
    return base64.b64decode(text)
