"""``authentication/tokens.py``: tokens that are given beforehand, and their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from setpoint.clock import ManualClock
from setpoint.net.tls import SigningKey
from setpoint.server.authentication.accounts import ISSUER, Accounts
from setpoint.server.authentication.tokens import BearerTokens, Unknown, read_token_file
from setpoint.server.registry.requests import User
from setpoint.server.storage.memory import MemoryStore

BOB = User("bob")
ACCOUNTS = Accounts(MemoryStore(), SigningKey.create, clock=ManualClock(), jti=lambda: "")


def test_a_given_token_is_good_for_the_servers_own_audience_alone() -> None:
    tokens = BearerTokens({"psst": BOB}, lambda: ACCOUNTS)
    assert tokens.user("psst") == BOB
    assert tokens.review("psst", ()) == (BOB, [ISSUER])
    assert tokens.review("psst", ["else", ISSUER]) == (BOB, [ISSUER])
    with pytest.raises(Unknown, match="invalid bearer token"):
        tokens.review("psst", ["else"])


@pytest.mark.parametrize("token", ["", "pss", "psst ", "PSST", "p\u00fcsst", "a.b.c"])
def test_any_other_token_is_nobodys(token: str) -> None:
    for accounts in (None, lambda: ACCOUNTS):
        with pytest.raises(Unknown) as unknown:
            BearerTokens({"psst": BOB}, accounts).user(token)
        assert str(unknown.value) == "invalid bearer token"


def test_a_token_file_is_read_as_kube_apiserver_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('t1,one,1\n\nt2,two,2,"a, b"\nt3,three,3,c,more\n')
    everybody = "system:authenticated"
    assert read_token_file(file) == {
        "t1": User("one", (everybody,), "1"),
        "t2": User("two", ("a", "b", everybody), "2"),
        "t3": User("three", ("c", everybody), "3"),
    }


@pytest.mark.parametrize("line", ["hush,one", ",one,1", "hush"])
def test_a_line_that_is_none_is_named_and_not_shown(line: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text(f"a,b,c\n{line}\n")
    with pytest.raises(ValueError, match="line 2 is not token,user,uid") as wrong:
        read_token_file(file)
    assert "hush" not in str(wrong.value)
