"""The promises of ``authentication/accounts.py``: tokens that are made, and known again."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clock import ManualClock
from setpoint.net.tls import SigningKey
from setpoint.server.authentication.accounts import ISSUER, Accounts, BadToken, Bound
from setpoint.server.storage.memory import MemoryStore
from setpoint.server.storage.protocol import Place

KEY = SigningKey.create()
ROBOT = {"name": "robot", "namespace": "shop", "uid": "u-robot"}


class World:
    """A store with a service account, and its server's accounts."""

    def __init__(self, key: SigningKey = KEY) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock()
        self.accounts = Accounts(self.store, lambda: key, clock=self.clock, jti=lambda: "j1")

    async def put(self, plural: str, namespace: str, name: str, uid: str, **more: Any) -> Place:
        place = Place(plural, namespace, name)
        data = msgspec.json.encode({"metadata": {"name": name, "uid": uid, **more}})
        known = self.store.get(place)
        if known is None:
            await self.store.create(place, lambda _: data)
        else:
            await self.store.update(place, lambda _: data, known.revision)
        return place

    async def remove(self, place: Place) -> None:
        known = self.store.get(place)
        assert known is not None
        await self.store.delete(place, lambda _: known.data, known.revision)

    def token(self, *bound: Bound, seconds: int = 600, audiences: tuple[str, ...] = (ISSUER,)) -> str:
        return self.accounts.issue(ROBOT, audiences=audiences, seconds=seconds, bound=bound)


async def world() -> World:
    made = World()
    await made.put("serviceaccounts", "shop", "robot", "u-robot")
    return made


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return found


def forged(token: str, part: int, **changes: Any) -> str:
    """With one part changed, and the signature as it was."""
    parts = token.split(".")
    said = msgspec.json.decode(base64.urlsafe_b64decode(parts[part] + "=="))
    parts[part] = base64.urlsafe_b64encode(msgspec.json.encode({**said, **changes})).rstrip(b"=").decode()
    return ".".join(parts)


async def test_a_token_is_its_account() -> None:
    here = await world()
    found = here.accounts.read(here.token())
    assert found.user.name == "system:serviceaccount:shop:robot"
    assert found.user.uid == "u-robot"
    assert found.user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:shop",
        "system:authenticated",
    )
    assert found.user.extra == {"authentication.kubernetes.io/credential-id": ("JTI=j1",)}
    assert found.audiences == [ISSUER]


async def test_it_ends_when_it_said_it_would_give_or_take_a_minute() -> None:
    here = await world()
    token = here.token(seconds=600)
    here.clock.turn(659)
    assert here.accounts.read(token)
    here.clock.turn(2)
    with pytest.raises(BadToken, match="expired"):
        here.accounts.read(token)


async def test_it_is_good_for_its_audiences_alone() -> None:
    here = await world()
    both, vault = here.token(audiences=(ISSUER, "vault")), here.token(audiences=("vault",))
    assert here.accounts.read(both).audiences == [ISSUER]
    assert here.accounts.read(both, ["vault", "else"]).audiences == ["vault"]
    assert here.accounts.read(vault, ["vault"])
    with pytest.raises(BadToken, match="is invalid for the target audiences"):
        here.accounts.read(vault)


async def test_the_account_must_be_the_one_it_was_made_for() -> None:
    here = await world()
    token = here.token()
    assert here.accounts.read(token)
    place = await here.put("serviceaccounts", "shop", "robot", "u-other")
    with pytest.raises(BadToken, match="does not match claim"):
        here.accounts.read(token)
    await here.remove(place)
    with pytest.raises(BadToken, match="not found"):
        here.accounts.read(token)
    await here.put("serviceaccounts", "shop", "robot", "u-robot")
    assert here.accounts.read(token), "the same again"


@pytest.mark.parametrize("kind", ["pod", "secret", "node"])
async def test_what_it_is_bound_to_must_be_there_and_the_same(kind: str) -> None:
    here = await world()
    namespace = "" if kind == "node" else "shop"
    token = here.token(Bound(kind, "x", "u-x"))
    with pytest.raises(BadToken, match="invalidated"):
        here.accounts.read(token)
    place = await here.put(f"{kind}s", namespace, "x", "u-x")
    assert here.accounts.read(token)
    await here.put(f"{kind}s", namespace, "x", "u-y")
    with pytest.raises(BadToken, match="does not match service account"):
        here.accounts.read(token)
    await here.put(f"{kind}s", namespace, "x", "u-x")
    assert here.accounts.read(token)
    await here.remove(place)
    with pytest.raises(BadToken, match="invalidated"):
        here.accounts.read(token)


async def test_what_is_being_deleted_counts_for_a_minute_after_its_time() -> None:
    here = await world()
    when = here.clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
    await here.put("pods", "shop", "x", "u-x", deletionTimestamp=when)
    token = here.token(Bound("pod", "x", "u-x"))
    here.clock.turn(59)
    assert here.accounts.read(token)
    here.clock.turn(3)
    with pytest.raises(BadToken, match="invalidated"):
        here.accounts.read(token)


async def test_a_pods_token_tells_its_node_and_does_not_depend_on_it() -> None:
    here = await world()
    await here.put("pods", "shop", "x", "u-x")
    found = here.accounts.read(here.token(Bound("pod", "x", "u-x"), Bound("node", "n", "u-n")))
    assert {key.rpartition("/")[2]: value for key, value in found.user.extra.items()} == {
        "credential-id": ("JTI=j1",),
        "node-name": ("n",),
        "node-uid": ("u-n",),
        "pod-name": ("x",),
        "pod-uid": ("u-x",),
    }


async def test_what_we_did_not_sign_is_nobodys() -> None:
    here = await world()
    good = here.token()
    head, claims, signature = good.split(".")
    stranger = World(SigningKey.create()).token()
    bad = [
        "",
        "a",
        "a.b",
        "a.b.c",
        f"{head}.{claims}.",
        f"{head}.{claims}",
        f"{head}.{claims}.{signature}.",
        f"{head}.{claims}.{signature}=",
        f"{head}.{claims}.{signature[:-4]}AAAA",
        f"{head}.{claims}.{'A' * 86}",
        f"{claims}.{head}.{signature}",
        forged(good, 1, sub="system:serviceaccount:kube-system:admin"),
        forged(good, 1, exp=claims_of(good)["exp"] + 1),
        forged(good, 0, alg="none"),
        forged(good, 0, alg="HS256"),
        forged(good, 0, kid="other"),
        stranger,
        "x" * 100_000,
        "\u00fc.\u00fc.\u00fc",
        "W10.W10.W10",
        ".".join(3 * [base64.urlsafe_b64encode(b"[" * 15_000).decode().rstrip("=")]),
    ]
    for token in bad:
        with pytest.raises(BadToken):
            here.accounts.read(token)
    assert here.accounts.read(good)


SAID = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["iss", "kid", "alg", "x"]), inner)
        ),
        max_leaves=8,
    ).map(msgspec.json.encode),
    st.just(msgspec.json.encode({"iss": ISSUER})),
)


@given(st.one_of(st.text(), st.lists(SAID, min_size=1, max_size=4)))
def test_no_rubbish_is_anything_but_no_good(said: str | list[bytes]) -> None:
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in said if isinstance(part, bytes)]
    with pytest.raises(BadToken):
        World().accounts.read(said if isinstance(said, str) else ".".join(parts))


async def test_no_token_is_kept_or_shown() -> None:
    here = await world()
    token = here.token()
    here.accounts.read(token)
    assert token.rpartition(".")[2] not in repr(vars(here.accounts))
