"""A system outside of the cluster, in memory: what an operator makes there can be lost, doubled and leaked.

    cloud = Cloud("dns")

    async def reconcile(site: Site, ctx: Context) -> None:
        if await cloud.get(site.metadata.uid) is None:
            await cloud.create(site.metadata.uid, name=site.spec.host)

In a proof every call passes the same seam as requests do: it can be refused, its reply can be lost, the
process can die before or after it or be paused, and what was made may not be found for a while: by the
world's time, whatever the clocks of who asks say.  What only reads (``get dns ID``, ``list dns``) changes
nothing, and is no effect: a sweep only has it refused, a few times.  Elsewhere it just works.

Faults know a call by what its thing is ``called``: an id with a uid in it is another in each run, and a plan
must find its place in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from setpoint.errors import SetpointError
from setpoint.testing.proof.pace import world_time

T = TypeVar("T")


class CloudError(SetpointError):
    """The system outside did not do it, or did and did not say so (``code`` 504, or 0)."""

    def __init__(self, doing: str, code: int) -> None:
        super().__init__(doing, f"answered {code}" if code else "no answer")
        self.code = code


class Way(Protocol):
    """How a call reaches the outside."""

    async def external(
        self, what: str, do: Callable[[], T], fail: Callable[[int], Exception], *, is_read: bool = False
    ) -> T: ...


way: ContextVar[Way | None] = ContextVar("setpoint_proof_way", default=None)


class Cloud:
    """Things with an id, outside of the cluster."""

    def __init__(self, name: str = "cloud") -> None:
        self.name = name
        self.things: dict[str, dict[str, Any]] = {}
        self._hidden: dict[str, float] = {}
        self.tell: Callable[[str, str, Mapping[str, Any]], None] = lambda _type, _id, _data: None
        self.called: Callable[[str], str] = str  # what the thing of an id is called in every run

    def __repr__(self) -> str:
        return f"<Cloud {self.name}: {len(self.things)} things>"

    def reset(self) -> None:
        self.things.clear()
        self._hidden.clear()
        self.called = str

    async def create(self, id: str, /, **data: Any) -> dict[str, Any]:  # noqa: A002 - what it is called
        """Make a thing.  CloudError 409 if there is one of this id."""

        def do() -> dict[str, Any]:
            if id in self.things:
                raise CloudError(f"{self.name}: create {id}", 409)
            self.things[id] = data
            self.tell("ADDED", id, data)
            return dict(data)

        return await self._call(f"create {self.name}", id, do)

    async def update(self, id: str, /, **data: Any) -> None:  # noqa: A002
        """Change a thing.  CloudError 404 if there is none."""

        def do() -> None:
            if id not in self.things:
                raise CloudError(f"{self.name}: update {id}", 404)
            if any(self.things[id].get(key) != value for key, value in data.items()):
                self.things[id] |= data
                self.tell("MODIFIED", id, self.things[id])

        await self._call(f"update {self.name}", id, do)

    async def delete(self, id: str, /) -> bool:  # noqa: A002
        """Take a thing away; whether it was there."""

        def do() -> bool:
            found = self.things.pop(id, None)
            if found is not None:
                self.tell("DELETED", id, found)
            return found is not None

        return await self._call(f"delete {self.name}", id, do)

    async def get(self, id: str, /) -> dict[str, Any] | None:  # noqa: A002
        """A thing; None if there is none, or none is found yet."""

        def do() -> dict[str, Any] | None:
            found = self.things.get(id)
            return None if found is None or self._is_hidden(id) else dict(found)

        return await self._call(f"get {self.name}", id, do, is_read=True)

    async def list(self, **tags: Any) -> dict[str, dict[str, Any]]:
        """Those with these tags, by id."""

        def do() -> dict[str, dict[str, Any]]:
            return {
                id_: dict(data)
                for id_, data in self.things.items()
                if not self._is_hidden(id_) and all(data.get(key) == value for key, value in tags.items())
            }

        return await self._call(f"list {self.name}", "", do, is_read=True)

    def hide(self, called: str, seconds: float) -> bool:
        """Have the youngest thing that is called so not be found for a while; whether there is one."""
        found = next((id_ for id_ in reversed(self.things) if self.called(id_) == called), None)
        if found is not None:
            self._hidden[found] = world_time() + seconds
        return found is not None

    def _is_hidden(self, id_: str) -> bool:
        return world_time() < self._hidden.get(id_, 0.0)

    async def _call(self, what: str, id_: str, do: Callable[[], T], *, is_read: bool = False) -> T:
        path = way.get()
        if path is None:
            return do()
        return await path.external(
            f"{what} {self.called(id_)}".rstrip(),
            do,
            lambda code: CloudError(f"{what} {id_}".rstrip(), code),
            is_read=is_read,
        )
