"""Who is let in, and to what: the two things that the registry has to ask about users.

Put together by ``server.py``; used by the registry for reviews, for tokens, and for who may write which role.
"""

from __future__ import annotations

from typing import NamedTuple

from setpoint.server.authentication.tokens import BearerTokens
from setpoint.server.authorization.authorizer import AlwaysAllow, Authorizer


class Access(NamedTuple):
    """Without anything said, everybody may do everything, and there are no tokens."""

    authorizer: Authorizer = AlwaysAllow()
    tokens: BearerTokens = BearerTokens()
