"""Asking the API server for things: the verbs.

Each verb works on typed objects, on plain dicts and on metadata alone (``api/forms.py``), and answers in the
form it was asked in.  An object that is given is never changed; what the server made of it is returned.

Where an object lives: the namespace given, or its own, or the context's.  A list or watch without a namespace
is of all namespaces.

No retry, credential or connection here: ``sender.py`` sends what this file asks for.
"""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypedDict, TypeVar, Unpack, overload

from setpoint.api.forms import Form, form_of, form_of_object, key_of
from setpoint.api.model import Object, encode, merged
from setpoint.api.names import Key, Resource
from setpoint.api.patches import APPLY_CONTENT_TYPE, JsonPatch, MergePatch, StrategicPatch
from setpoint.api.requests import (
    JSON,
    Call,
    FieldValidation,
    Propagation,
    delete_options,
    is_secretive,
    path_of,
    query_of,
)
from setpoint.api.selectors import FieldSelection, LabelSelection, field_selection, label_selection
from setpoint.api.wire import Frame, Page, split_page
from setpoint.client import forwarding, streams
from setpoint.client.auth import Credentials
from setpoint.client.config import Config
from setpoint.client.discovery import Discovery
from setpoint.client.listing import Listing
from setpoint.client.sender import Guard, Nobody, Observer, Sender
from setpoint.client.subresources import (
    Scale,
    Token,
    eviction,
    read_scale,
    read_token,
    scale_patch,
    token_request,
)
from setpoint.client.watching import LIVENESS, Watch, frames
from setpoint.errors import BadAnswer, NotFound
from setpoint.net.transport import Response, Transport

if TYPE_CHECKING:
    from setpoint.net.http import HttpTransport

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=Object)
RawObject: TypeAlias = dict[str, Any]  # an object in wire form
Patch: TypeAlias = JsonPatch | MergePatch | StrategicPatch

PAGE_SIZE = 500  # as kubectl and client-go
TIMEOUT = 60.0
WATCH_SECONDS = (
    300,
    600,
)  # a connection ends after a random while, so that watchers do not all come back together


class WriteOptions(TypedDict, total=False):
    """What every write may be told; what is left out is as the client was made."""

    namespace: str | None
    dry_run: bool
    field_manager: str
    field_validation: FieldValidation
    timeout: float


class SelectOptions(TypedDict, total=False):
    """Which objects of a kind; all of them where nothing is said."""

    namespace: str | None
    labels: str | Mapping[str, str] | LabelSelection | None
    fields: str | Mapping[str, str] | FieldSelection | None


class DeleteOptions(TypedDict, total=False):
    """How an object goes, and the condition that it still is the one meant."""

    propagation: Propagation
    grace_period: int
    uid: str
    resource_version: str
    dry_run: bool


class ProcessOptions(TypedDict, total=False):
    """Which container (the pod's only one, unless told), and what is connected to it."""

    container: str | None
    stdin: bool
    tty: bool


class LogOptions(TypedDict, total=False):
    """Which part of which log."""

    container: str | None
    follow: bool
    previous: bool
    since_seconds: int | None
    since_time: str | None
    tail_lines: int | None
    limit_bytes: int | None
    timestamps: bool


class Client:
    """One API server, as one user.

    ``Client()`` finds the server as kubectl does, or from inside a pod; ``Client(config)`` is told.  With
    ``transport``, requests go through that function instead of the network.  ``timeout`` is the time that one
    request may take, retries included, where a call says nothing else.  ``on_warning`` is given every text
    that the server warns with, once; unless told, it is logged.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        transport: Transport | None = None,
        field_manager: str = "setpoint",
        field_validation: FieldValidation | None = None,
        timeout: float = TIMEOUT,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        if config is None:
            config = Config.load() if transport is None else Config(server="http://localhost")
        self.config = config
        self._http: HttpTransport | None = None
        self._credentials: Credentials | None = None
        who: Credentials | Nobody = Nobody()
        if transport is None:
            from setpoint.net.http import Endpoint, HttpTransport  # noqa: PLC0415 - reading it takes a while

            who = self._credentials = Credentials(config)
            transport = self._http = HttpTransport(
                Endpoint(
                    server=config.server,
                    ssl_context=who.ssl_context if config.is_tls else None,
                    server_hostname=config.tls_server_name or None,
                    proxy=config.proxy(),
                    may_pack=not config.disable_compression,
                )
            )
        self._sender = Sender(transport, who, config.headers(), timeout, on_warning)
        self._field_manager = field_manager
        self._field_validation = field_validation
        # What a write says where its call says nothing.
        self._usual_query = query_of({"fieldManager": field_manager, "fieldValidation": field_validation})
        self.discovery = Discovery(self._discover)

    def through(self, wrap: Callable[[Transport], Transport]) -> Self:
        """The same client, whose requests pass through what ``wrap`` makes of its transport: to count them,
        say.  It ends with this one.
        """
        return self._twin(self._sender.through(wrap))

    def guarded_by(self, guard: Guard) -> Self:
        """The same client, which asks the guard before each try of every write (and of every command run in a
        pod).  What the guard raises is raised to the caller, and nothing is sent.  It ends with this one.
        """
        return self._twin(self._sender.guarded_by(guard))

    def observed_by(self, observer: Observer) -> Self:
        """The same client, with an observer of every write made through it.  It ends with this one."""
        return self._twin(self._sender.observed_by(observer))

    def _twin(self, sender: Sender) -> Self:
        """A client that shares our connections and leaves closing them to us."""
        twin = copy.copy(self)
        twin._sender = sender  # noqa: SLF001 - a copy of ourselves
        twin._http = twin._credentials = None  # noqa: SLF001
        return twin

    def __repr__(self) -> str:
        return f"<Client of {self.config.server}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of every connection; watches and streams of this client end."""
        await self.discovery.close()
        if self._credentials is not None:
            await self._credentials.close()
        if self._http is not None:
            await self._http.close()

    async def get(
        self,
        kind: type[T] | Form[T],
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Read one object; ``resource_version="0"`` is content with what the server has in its cache."""
        form = form_of(kind)
        resource = form.resource or await self._find(form)
        call = _call(
            "get",
            resource,
            self._key(resource, namespace, name),
            subresource,
            query=query_of({"resourceVersion": resource_version}) if resource_version else "",
            accept=form.accept,
        )
        return form.decode((await self._sender.send(call, timeout)).body)

    def list(
        self,
        kind: type[T] | Form[T],
        *,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        page_size: int = PAGE_SIZE,
        timeout: float | None = None,
        **select: Unpack[SelectOptions],
    ) -> Listing[T]:
        """The objects of a kind: ``await`` it for all of them at once, or ``async for`` it page by page."""
        form = form_of(kind)

        async def fetch(token: str) -> Page:
            return await self.list_page(
                form,
                token,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
                page_size=page_size,
                timeout=timeout,
                **select,
            )

        return Listing(fetch, form.decode)

    async def list_page(
        self,
        kind: type[T] | Form[T],
        token: str = "",
        *,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        page_size: int = PAGE_SIZE,
        timeout: float | None = None,
        **select: Unpack[SelectOptions],
    ) -> Page:
        """One page of a list, its objects as bytes.

        With ``token``, as the page before gave it, the page after that one, of the same moment.
        """
        form = form_of(kind)
        resource = form.resource or await self._find(form)
        place = (
            {"continue": token}
            if token
            else {"resourceVersion": resource_version, "resourceVersionMatch": resource_version_match}
        )
        query = {**_selection(select), "limit": page_size or None, **place}
        key = _collection(resource, select.get("namespace"))
        call = _call("list", resource, key, query=query_of(query), accept=form.accept_list)
        body = (await self._sender.send(call, timeout)).body
        try:
            return split_page(body)
        except ValueError as error:
            raise BadAnswer(call.doing, f"the answer is no list: {error}") from error

    def watch(
        self,
        kind: type[T] | Form[T],
        *,
        resource_version: str | None = None,
        initial_events: bool = False,
        liveness: float = LIVENESS,
        **select: Unpack[SelectOptions],
    ) -> Watch[T]:
        """What happens to the objects of a kind, as it happens::

            async with client.watch(Pod, namespace="shop") as changes:
                async for change in changes:
                    print(change.type, change.object.metadata.name)

        From ``resource_version`` on, as a list gave it. Without one the server first gives every object
        there is as ADDED; with ``initial_events`` a bookmark (see ``Watch.events``) also says when that is
        done.
        """
        form = form_of(kind)
        start = _start(resource_version, initial_events=initial_events)

        async def open_from(version: str | None) -> Response:
            return await self._open_watch(form, start if version is None else _start(version), select)

        resumable = not initial_events and resource_version not in {None, "", "0"}
        return Watch(
            open_from,
            f"watch {form.gvk}",
            form.decode,
            resume_from=resource_version if resumable else None,
            liveness=liveness,
            secretive=is_secretive(form.gvk),
        )

    async def watch_once(
        self,
        kind: type[T] | Form[T],
        *,
        resource_version: str | None = None,
        initial_events: bool = False,
        patience: Callable[[], float],
        timeout: float | None = None,
        **select: Unpack[SelectOptions],
    ) -> AsyncGenerator[Sequence[Frame], None]:
        """One connection of a watch, its objects as bytes, in the batches in which they arrive.

        The first batch is empty: the server has agreed, within ``timeout``.  Then ``patience`` says, each
        time, for how many seconds nothing need arrive.  Nothing is resumed.  Close it
        (``contextlib.aclosing``) to end the connection.
        """
        form = form_of(kind)
        start = _start(resource_version, initial_events=initial_events)
        response = await self._open_watch(form, start, select, timeout)
        connection = frames(
            response, f"watch {form.gvk}", patience=patience, secretive=is_secretive(form.gvk)
        )
        async with aclosing(connection):
            yield []
            async for batch in connection:
                yield batch

    async def _open_watch(
        self,
        form: Form[Any],
        start: Mapping[str, object],
        select: SelectOptions,
        timeout: float | None = None,
    ) -> Response:
        resource = form.resource or await self._find(form)
        query = {
            "watch": True,
            "allowWatchBookmarks": True,
            **_selection(select),
            "timeoutSeconds": random.randint(*WATCH_SECONDS),  # noqa: S311 - no secret
            **start,
        }
        key = _collection(resource, select.get("namespace"))
        return await self._sender.open(
            _call("watch", resource, key, query=query_of(query), accept=form.accept), timeout
        )

    @overload
    async def create(self, obj: ModelT, **options: Unpack[WriteOptions]) -> ModelT: ...

    @overload
    async def create(self, obj: RawObject, **options: Unpack[WriteOptions]) -> RawObject: ...

    async def create(self, obj: Any, **options: Unpack[WriteOptions]) -> Any:
        """Make a new object; AlreadyExists if its name is taken.  Without one, ``generate_name`` makes it."""
        return await self._write("create", obj, _whole(obj), options)

    @overload
    async def update(
        self, obj: ModelT, *, subresource: str = "", **options: Unpack[WriteOptions]
    ) -> ModelT: ...

    @overload
    async def update(
        self, obj: RawObject, *, subresource: str = "", **options: Unpack[WriteOptions]
    ) -> RawObject: ...

    async def update(self, obj: Any, *, subresource: str = "", **options: Unpack[WriteOptions]) -> Any:
        """Replace an object by this one; Conflict if it changed since it was read.

        A typed object that was read loses nothing that its class does not know: what is sent are the bytes it
        was read from, with what was changed since.
        """
        return await self._write("update", obj, _whole(obj), options, subresource=subresource)

    @overload
    async def update_status(self, obj: ModelT, **options: Unpack[WriteOptions]) -> ModelT: ...

    @overload
    async def update_status(self, obj: RawObject, **options: Unpack[WriteOptions]) -> RawObject: ...

    async def update_status(self, obj: Any, **options: Unpack[WriteOptions]) -> Any:
        """``update`` with ``subresource="status"``: changes the status and nothing else."""
        return await self.update(obj, subresource="status", **options)

    @overload
    async def apply(
        self, obj: ModelT, *, subresource: str = "", force: bool = False, **options: Unpack[WriteOptions]
    ) -> ModelT: ...

    @overload
    async def apply(
        self, obj: RawObject, *, subresource: str = "", force: bool = False, **options: Unpack[WriteOptions]
    ) -> RawObject: ...

    async def apply(
        self, obj: Any, *, subresource: str = "", force: bool = False, **options: Unpack[WriteOptions]
    ) -> Any:
        """Say what we want of an object (server-side apply); it is made if it is not there.

        What is given is the whole of our wish: fields applied before and left out now are given up.
        ApplyConflict, which lists them, if others manage some of the fields; ``force`` takes those over.
        """
        if _was_read(obj):
            raise ValueError(
                f"apply {key_of(obj)}: this object was read from the server (it has managedFields), and "
                "applying it would claim every field; build one with only the fields you want, or use update"
            )
        return await self._write("apply", obj, encode(obj), options, subresource=subresource, force=force)

    async def apply_intent(
        self,
        kind: type[T] | Form[T],
        key: Key,
        intent: RawObject,
        *,
        force: bool = False,
        **options: Unpack[WriteOptions],
    ) -> T:
        """``apply`` of an intent in wire form, for the object in the form that is asked for."""
        form = form_of(kind)
        resource = form.resource or await self._find(form)
        return await self._send("apply", form, resource, key, encode(intent), options=options, force=force)

    @overload
    async def patch(
        self,
        kind: type[T] | Form[T],
        name: str,
        patch: Patch,
        /,
        *,
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> T: ...

    @overload
    async def patch(
        self, obj: ModelT, patch: Patch, /, *, subresource: str = "", **options: Unpack[WriteOptions]
    ) -> ModelT: ...

    @overload
    async def patch(
        self, obj: RawObject, patch: Patch, /, *, subresource: str = "", **options: Unpack[WriteOptions]
    ) -> RawObject: ...

    async def patch(self, *target: Any, subresource: str = "", **options: Unpack[WriteOptions]) -> Any:
        """Change part of an object: ``patch(Pod, "web", MergePatch({...}))``.

        An object in hand may stand for its kind and name: ``patch(pod, MergePatch({...}))``. To change it
        only if nobody else did, put the resourceVersion it was read at into the patch.
        """
        *named, patch = target
        if not isinstance(patch, JsonPatch | MergePatch | StrategicPatch):
            raise TypeError(
                f"a {type(patch).__name__} does not say what kind of patch it is: "
                "give a MergePatch, JsonPatch or StrategicPatch"
            )
        form, key = await self._target(named, options.get("namespace"))
        resource = form.resource or await self._find(form)
        call = _call(
            "patch",
            resource,
            key,
            subresource,
            query=self._write_query(options),
            accept=form.accept,
            content_type=patch.content_type,
            body=patch.encode(),
        )
        return form.decode((await self._sender.send(call, options.get("timeout"))).body)

    @overload
    async def delete(
        self,
        kind: type[Object] | Form[Any],
        name: str,
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
        **options: Unpack[DeleteOptions],
    ) -> None: ...

    @overload
    async def delete(
        self,
        obj: Object | RawObject,
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
        **options: Unpack[DeleteOptions],
    ) -> None: ...

    async def delete(
        self,
        *target: Any,
        namespace: str | None = None,
        timeout: float | None = None,
        **options: Unpack[DeleteOptions],
    ) -> None:
        """Delete an object: ``delete(Pod, "web")``, or ``delete(pod)``; NotFound if it is not there.

        With finalizers, or with a grace period, it is still there afterwards, on its way out.  With ``uid``
        or ``resource_version`` it is deleted only if it still is the one meant, else Conflict.
        """
        form, key = await self._target(target, namespace)
        resource = form.resource or await self._find(form)
        call = _call("delete", resource, key, body=delete_options(**options))
        await self._sender.send(call, timeout)

    async def delete_collection(
        self,
        kind: type[Object] | Form[Any],
        *,
        namespace: str | None = None,
        labels: str | Mapping[str, str] | LabelSelection | None = None,
        fields: str | Mapping[str, str] | FieldSelection | None = None,
        timeout: float | None = None,
        **options: Unpack[DeleteOptions],
    ) -> None:
        """Delete all objects of a kind, or those selected, in one namespace.  Not all at one moment."""
        form = form_of(kind)
        resource = form.resource or await self._find(form)
        if resource.namespaced and not namespace:
            raise ValueError(
                f"delete all {resource.kind}: say in which namespace; the server takes one at a time"
            )
        call = _call(
            "deletecollection",
            resource,
            _collection(resource, namespace),
            query=query_of(_selection({"labels": labels, "fields": fields})),
            body=delete_options(**options),
        )
        await self._sender.send(call, timeout)

    async def get_scale(
        self,
        kind: type[Object] | Form[Any],
        name: str,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Scale:
        """How many replicas an object is to have, and has."""
        resource = await self.resource_of(kind)
        call = _call("get", resource, self._key(resource, namespace, name), "scale")
        return read_scale(call.doing, (await self._sender.send(call, timeout)).body)

    async def scale(
        self,
        kind: type[Object] | Form[Any],
        name: str,
        replicas: int,
        *,
        resource_version: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> Scale:
        """Ask for so many replicas; with ``resource_version``, only if the object has not changed since."""
        resource = await self.resource_of(kind)
        patch = MergePatch(scale_patch(replicas, resource_version))
        call = _call(
            "patch",
            resource,
            self._key(resource, options.get("namespace"), name),
            "scale",
            query=self._write_query(options),
            content_type=patch.content_type,
            body=patch.encode(),
        )
        return read_scale(call.doing, (await self._sender.send(call, options.get("timeout"))).body)

    async def evict(
        self,
        pod: str,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Delete a pod if its disruption budget has room; TooManyRequests if it has none."""
        key = self._key(streams.PODS, namespace, pod)
        body = eviction(key, propagation=propagation, grace_period=grace_period, uid=uid, dry_run=dry_run)
        await self._sender.send(_call("create", streams.PODS, key, "eviction", body=body), timeout)

    async def create_token(
        self,
        service_account: str,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        seconds: int | None = None,
        bound_to: Object | RawObject | None = None,
        timeout: float | None = None,
    ) -> Token:
        """A token with which to be a service account, good for so many seconds (at least 600).

        It ends with what it is bound to: a Pod, a Secret or a Node.
        """
        key = self._key(_SERVICE_ACCOUNTS, namespace, service_account)
        body = token_request(audiences, seconds, bound_to)
        call = _call("create", _SERVICE_ACCOUNTS, key, "token", body=body)
        return read_token(call.doing, (await self._sender.send(call, timeout)).body)

    def log(
        self, pod: str, *, namespace: str | None = None, **options: Unpack[LogOptions]
    ) -> AbstractAsyncContextManager[streams.Log]:
        """What a container printed, line by line; with ``follow``, what it goes on to print::

        async with client.log("web-1", follow=True) as lines:
            async for line in lines: ...
        """
        return streams.read_log(
            self._sender.open, streams.log_call(self._key(streams.PODS, namespace, pod), **options)
        )

    def exec(
        self,
        pod: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        **options: Unpack[ProcessOptions],
    ) -> AbstractAsyncContextManager[streams.Process]:
        """Start a command in a container, and talk to it."""
        call = streams.exec_call(self._key(streams.PODS, namespace, pod), command, **options)
        return streams.start(self._sender.open, call)

    async def run(
        self,
        pod: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bytes | None = None,
    ) -> streams.Completed:
        """Run a command in a container to its end: its exit code, and what it printed."""
        key = self._key(streams.PODS, namespace, pod)
        call = streams.exec_call(key, command, container=container, stdin=stdin is not None)
        return await streams.run(self._sender.open, call, stdin=stdin)

    def attach(
        self, pod: str, *, namespace: str | None = None, **options: Unpack[ProcessOptions]
    ) -> AbstractAsyncContextManager[streams.Process]:
        """Take part in what a container's own command reads and prints."""
        call = streams.attach_call(self._key(streams.PODS, namespace, pod), **options)
        return streams.start(self._sender.open, call)

    def port_forward(
        self, pod: str, port: int, *, namespace: str | None = None
    ) -> AbstractAsyncContextManager[forwarding.Connection]:
        """One connection to a port of a pod."""
        return forwarding.port_forward(self._sender.open, self._key(streams.PODS, namespace, pod), port)

    def forward_local(
        self, pod: str, port: int, *, namespace: str | None = None, local_port: int = 0
    ) -> AbstractAsyncContextManager[int]:
        """Listen on a local port, which is given, and connect whoever comes to a port of the pod."""
        key = self._key(streams.PODS, namespace, pod)
        return forwarding.forward_local(self._sender.open, key, port, local_port=local_port)

    async def fetch(self, path: str, *, accept: str = JSON, timeout: float | None = None) -> bytes:
        """Read any path of the server, such as ``/version`` or ``/openapi/v3``."""
        if not path.startswith("/"):  # behind the server's address it could name another server
            raise ValueError(f"a path of the server begins with a slash, not as {path!r} does")
        call = Call(verb="get", method="GET", target=path, said=f"get {path}", accept=accept)
        return (await self._sender.send(call, timeout)).body

    async def resource_of(self, kind: type[T] | Form[T]) -> Resource:
        """Where the server keeps objects of this kind."""
        form = form_of(kind)
        return form.resource or await self._find(form)

    async def _write(
        self,
        verb: str,
        obj: Object | RawObject,
        body: bytes,
        options: WriteOptions,
        *,
        subresource: str = "",
        force: bool = False,
    ) -> Any:
        form = form_of_object(obj)
        resource = form.resource or await self._find(form)
        key = self._key_of(resource, obj, options.get("namespace"))
        if not key.name and verb != "create":
            raise ValueError(f"{verb} {resource.gvk}: the object has no metadata.name")
        return await self._send(
            verb, form, resource, key, body, options=options, subresource=subresource, force=force
        )

    async def _send(
        self,
        verb: str,
        form: Form[T],
        resource: Resource,
        key: Key,
        body: bytes,
        *,
        options: WriteOptions,
        subresource: str = "",
        force: bool = False,
    ) -> T:
        call = _call(
            verb,
            resource,
            key,
            subresource,
            query=self._write_query(options, force=force),
            accept=form.accept,
            content_type=APPLY_CONTENT_TYPE if verb == "apply" else JSON,
            body=body,
        )
        return form.decode((await self._sender.send(call, options.get("timeout"))).body)

    def _write_query(self, options: WriteOptions, *, force: bool = False) -> str:
        if not options and not force:
            return self._usual_query
        return _write_queries(
            options.get("field_manager", self._field_manager),
            options.get("field_validation", self._field_validation),
            dry_run=bool(options.get("dry_run")),
            force=force,
        )

    async def _target(self, target: Any, namespace: str | None) -> tuple[Form[Any], Key]:
        """An object to act on: a kind and a name, or the object itself."""
        if len(target) == 2:
            kind, name = target
            form: Form[Any] = form_of(kind)
            resource = form.resource or await self._find(form)
            return form, self._key(resource, namespace, name)
        (obj,) = target
        form = form_of_object(obj)
        resource = form.resource or await self._find(form)
        return form, self._key_of(resource, obj, namespace)

    def _key(self, resource: Resource, namespace: str | None, name: str) -> Key:
        if not name:
            raise ValueError(f"which {resource.gvk}? its name is empty")
        if resource.namespaced:
            return Key(namespace or self.config.namespace, name)
        return _collection(resource, namespace)._replace(name=name)

    def _key_of(self, resource: Resource, obj: object, namespace: str | None) -> Key:
        own = key_of(obj)
        if own.namespace and namespace and own.namespace != namespace:
            raise ValueError(
                f"{resource.gvk} {own} was to be written to namespace {namespace}: which one is meant?"
            )
        if not resource.namespaced:
            return Key("", own.name)
        return own if own.namespace else Key(namespace or self.config.namespace, own.name)

    async def _find(self, form: Form[Any]) -> Resource:
        return await self.discovery.find(form.gvk)

    async def _discover(self, path: str, accept: str) -> bytes:
        return await self.fetch(path, accept=accept)


async def ignore_not_found(asked: Awaitable[T]) -> T | None:
    """Await what was asked for, or None if the object is not there.

    As in ``pod = await ignore_not_found(client.get(Pod, "web"))``.
    """
    try:
        return await asked
    except NotFound:
        return None


_SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")

_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


@lru_cache(maxsize=100)  # a program says few of them, and says them with every write
def _write_queries(manager: str, validation: str | None, *, dry_run: bool, force: bool) -> str:
    return query_of(
        {
            "fieldManager": manager,
            "fieldValidation": validation,
            "dryRun": "All" if dry_run else None,
            "force": force or None,
        }
    )


def _call(
    verb: str,
    resource: Resource,
    key: Key,
    subresource: str = "",
    *,
    query: str = "",
    accept: str = JSON,
    content_type: str = JSON,
    body: bytes | None = None,
) -> Call:
    # A new object's name is in its body; only its parts (an eviction, a token) are made under a name.
    in_path = "" if verb == "create" and not subresource else key.name
    return Call(
        verb,
        _METHODS[verb],
        path_of(resource, key.namespace, in_path, subresource) + query,
        accept=accept,
        content_type=content_type,
        body=body,
        resource=resource,
        key=key,
        subresource=subresource,
    )


def _collection(resource: Resource, namespace: str | None) -> Key:
    if namespace and not resource.namespaced:
        raise ValueError(f"{resource.gvk} belongs to no namespace: leave namespace={namespace!r} out")
    return Key(namespace or "", "")


def _start(version: str | None, *, initial_events: bool = False) -> dict[str, object]:
    start: dict[str, object] = {"resourceVersion": version}
    if initial_events:
        start |= {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
    return start


def _selection(select: SelectOptions) -> dict[str, object]:
    labels, fields = select.get("labels"), select.get("fields")
    return {
        "labelSelector": None if labels is None else str(label_selection(labels)),
        "fieldSelector": None if fields is None else str(field_selection(fields)),
    }


def _whole(obj: Object | RawObject) -> bytes:
    return merged(obj) if isinstance(obj, Object) else encode(obj)


def _was_read(obj: Object | RawObject) -> bool:
    metadata = obj.metadata if isinstance(obj, Object) else obj.get("metadata")
    if isinstance(metadata, dict):
        return bool(metadata.get("managedFields"))
    return bool(getattr(metadata, "managed_fields", None))
