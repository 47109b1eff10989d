"""Cuts what a server sends into single objects, each as its own bytes.

A list page becomes its items, a watch stream its lines, a line its type and object.  Of an object
nothing is decoded but its metadata, into a small struct; the rest stays bytes until somebody reads it.
Of what comes after that, mostly nothing is even looked at before.
The promises:

1. The bytes of an object are exactly those that were sent, and a copy: no object pins the page or the
   chunk it arrived in.  Those of a watch are what stands in its line between its type and its end.
2. However a stream is cut into chunks, the lines are the same, and the work is linear in its bytes.
   A line over the limit is refused while it arrives, not when it has filled the memory.
3. What is not what Kubernetes sends is ``Malformed``, which says where and never shows the content: it
   may be a Secret.  Of an object from a watch that goes for its metadata; what comes after is told of when
   somebody reads it.

The items of a list of built-in kinds come without ``apiVersion`` and ``kind``; they stay so here, and
``api/forms.py`` adds them when an object is read.  Nothing here waits or knows of connections:
``client/`` feeds it, and maps ``Malformed`` to its own errors.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from setpoint.api.names import Key

LINE_LIMIT = (
    32 * 1024 * 1024
)  # etcd keeps at most 1.5 MB an object unless told otherwise; aggregated servers may not
INITIAL_EVENTS_END = "k8s.io/initial-events-end"  # the annotation of the bookmark that closes an initial list


# Not JSON or not this shape; not UTF-8; brackets nested without end.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Malformed(ValueError):
    """Bytes that are no list, no watch event, no object, or no end of a line."""


class Owner(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An owner reference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is known of an object without reading it; None and "" stand for what it does not say.

    ``gc=False``: it holds text and containers of text, so it can be part of no cycle, and a cache of
    many thousands costs the garbage collector nothing.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] | None = None  # not to be changed: a cache shares equal ones between objects
    annotations: Mapping[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def controller(self) -> Owner | None:
        """The owner that manages this object; there is at most one."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """One object as it was at one version: its metadata, and its bytes.  What a cache holds."""

    metadata: Metadata
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Snapshot:
        return cls(read_metadata(data), data)

    @property
    def key(self) -> Key:
        return self.metadata.key


def read_metadata(data: bytes) -> Metadata:
    """The metadata of an object, and nothing else."""
    try:
        return _metadata_in(data)
    except _UNREADABLE as error:
        raise Malformed(f"no Kubernetes object in these {len(data)} bytes: {error}") from None


def _metadata_in(data: bytes) -> Metadata:
    """As little is read as will do: to pass over managedFields, a spec and a status costs several times what
    the rest of the metadata does.
    """
    end, closing = _unneeded_from(data)
    if end > 0 and data.endswith(b"}"):
        try:
            return _beginnings.decode(data[:end] + closing).metadata
        except _UNREADABLE:
            pass  # it stands deeper than it seemed
    return _objects.decode(data).metadata


def _unneeded_from(data: bytes) -> tuple[int, bytes]:
    """Where the metadata seems to be over, and what closes the object there; 0 where that is not seen.

    In built-in kinds managedFields are the last of the metadata; custom resources have them in between, and
    mostly a spec behind.  What is looked for can stand in no text, whose quotes are escaped; and if what is
    before it is an object with metadata, once it is closed, it stands where it seems to.
    """
    if data.find(_NAMED, 0, _LONGEST_START) >= 0:  # custom resources have their annotations first
        managed = data.find(_MANAGED_FIELDS, 0, _FAR)
        last = data.find(b"]", managed) - 1
        if (
            managed > 0
            and data.startswith(_LAST_OF_ALL, last)
            and data[last + 5 : last + 6].isalpha()
            and data.find(b"[", managed + len(_MANAGED_FIELDS), last)
            < 0  # else it is the end of another list
        ):
            return managed, b"}}"
    return data.find(_SPEC, 0, _FAR) + 1, b"}"


def told_apart(data: bytes) -> tuple[bytes, bytes]:
    """What an apply looks at: all of an object but its status and its version; and its managers.

    As bytes that are the same where the object is: a server writes it in one way.
    """
    whole = _parts.decode(data)
    metadata = _parts.decode(whole.get("metadata", b"{}"))
    managers = map(bytes, _items.decode(metadata.get("managedFields", b"[]")) or ())
    content = {f"metadata.{name}": part for name, part in metadata.items() if name not in _MOVING}
    content |= {name: part for name, part in whole.items() if name not in _APART}
    return (
        b"".join(b"%s%s" % (name.encode(), bytes(content[name])) for name in sorted(content)),
        b"".join(each for each in managers if b'"subresource"' not in each),
    )


_MOVING = frozenset({"resourceVersion", "managedFields"})
_APART = frozenset({"apiVersion", "kind", "metadata", "status"})  # items of a list come without the first two


def strip_managed_fields(data: bytes) -> bytes:
    """The object without its managedFields, which are often a third of it; all else is as it was.

    An update with such an object leaves the server's managedFields as they are.
    """
    if _MANAGED not in data:
        return data
    try:
        whole = _parts.decode(data)
        metadata = _parts.decode(whole["metadata"])
        del metadata["managedFields"]
    except (*_UNREADABLE, KeyError):
        return data  # it only stands in some text
    written = msgspec.json.encode({**whole, "metadata": metadata})
    return bytes(memoryview(written))  # a copy of the right size: the encoder's own leaves holes in memory


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────


class Page(msgspec.Struct, frozen=True, gc=False):
    """A list, or a part of one: ``continue_token`` is "" on the last page."""

    items: list[bytes]
    resource_version: str = ""
    continue_token: str = ""
    remaining: int | None = None  # how many are on later pages, where the server knows
    api_version: str = ""
    kind: str = ""


def split_page(data: bytes) -> Page:
    """A list answer, cut into its items."""
    try:
        page = _pages.decode(data)
    except _UNREADABLE as error:
        raise Malformed(f"no Kubernetes list in these {len(data)} bytes: {error}") from None
    if page.items is msgspec.UNSET:
        raise Malformed(
            f"no Kubernetes list in these {len(data)} bytes: a {page.kind or 'value'} without items"
        )
    return Page(
        [bytes(item) for item in page.items or ()],
        page.metadata.resource_version,
        page.metadata.continue_,
        page.metadata.remaining_item_count,
        page.api_version,
        page.kind,
    )


# ── Watches ─────────────────────────────────────────────────────────────────────────────────────────


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object it is about."""

    type: str
    object: bytes
    metadata: Metadata

    @property
    def ends_initial_events(self) -> bool:
        """Whether this bookmark says that every object there was has been sent, where that was asked for."""
        return (self.metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


def read_frame(line: bytes) -> Frame:
    """One line of a watch.

    Every server writes type before object, without spaces.  The object is then what stands between: one pass
    instead of two.
    """
    at = line.find(_OBJECT, 0, _LONGEST_HEAD)
    kind = _HEADS.get(line[:at])
    if kind is not None and line.endswith(b"}"):
        data = line[at + len(_OBJECT) : -1]
        try:
            return Frame(kind, data, _metadata_in(data))
        except _UNREADABLE:
            pass  # the long way says what is wrong with the line as a whole
    try:
        frame = _frames.decode(line)
        data = bytes(frame.object)
        return Frame(frame.type, data, _objects.decode(data).metadata)
    except _UNREADABLE as error:
        raise Malformed(f"no watch event in this line of {len(line)} bytes: {error}") from None


class LineSplitter:
    """Chunks in, lines out, without their line ends; what has no end yet is kept as ``rest``."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._rest = (
            bytearray()
        )  # grows in place: a long line in many small chunks is copied once, not each time

    def __repr__(self) -> str:
        return f"<LineSplitter {len(self._rest)} bytes waiting for their line end>"

    @property
    def rest(self) -> bytes:
        """The line that has begun and not ended; at the end of a stream: what was cut off."""
        return bytes(self._rest)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk."""
        lines, begin = list[bytes](), 0
        while (end := chunk.find(b"\n", begin)) >= 0:  # bytes.split looks at one byte at a time
            line = chunk[begin:end]
            if self._rest:
                self._rest += line
                line, self._rest = bytes(self._rest), bytearray()
            self._check(line)
            lines.append(line)
            begin = end + 1
        self._rest += chunk[begin:]
        self._check(self._rest)
        return lines

    def _check(self, line: bytes | bytearray) -> None:
        if len(line) > self._limit:
            raise Malformed(f"a line has no end after {self._limit} bytes, the most that is read")


# ── What the decoders see ───────────────────────────────────────────────────────────────────────────


class _Object(msgspec.Struct, gc=False):
    metadata: Metadata = Metadata()


class _Beginning(msgspec.Struct, gc=False):
    metadata: Metadata


class _ListMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, gc=False, rename="camel"):
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET  # Go writes an empty list as null
    metadata: _ListMetadata = _ListMetadata()
    api_version: str = ""
    kind: str = ""


class _Frame(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_objects = msgspec.json.Decoder(_Object)
_beginnings = msgspec.json.Decoder(_Beginning)
_NAMED = b'"metadata":{"name":"'
_MANAGED_FIELDS = b',"managedFields":['
_LAST_OF_ALL = b'}]},"'  # the last manager, all of them, the metadata, and a name begins
_SPEC = b'},"spec":{'
_LONGEST_START = 256  # bytes in which kind and apiVersion have room
_FAR = 16 * 2**10  # bytes in which metadata mostly end: to look on costs more than it saves
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw] | None)
_MANAGED = b'"managedFields"'
_pages = msgspec.json.Decoder(_List)
_frames = msgspec.json.Decoder(_Frame)

_OBJECT = b',"object":'
_HEADS = {
    f'{{"type":"{kind}"'.encode(): kind for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}
_LONGEST_HEAD = max(map(len, _HEADS)) + len(_OBJECT)
