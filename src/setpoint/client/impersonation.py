"""Decides which headers ask the server to treat us as someone else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# What may stand in a header's name (RFC 9110, 5.6.2), but for %, which begins an escape.
_LETTERS = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom we act as, where we may."""

    user: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        """The headers that ask for it.  Several lines in one value stand for a header sent several times."""
        said = {
            "Impersonate-User": (self.user,),
            "Impersonate-Uid": (self.uid,) if self.uid else (),
            "Impersonate-Group": self.groups,
            **{f"Impersonate-Extra-{_escaped(key)}": values for key, values in self.extra.items()},
        }
        return {name: "\n".join(values) for name, values in said.items() if values}

    def is_sendable(self) -> bool:
        """Whether every name is one line of text, and so can be the value of a header."""
        names = [
            self.user,
            self.uid,
            *self.groups,
            *(each for values in self.extra.values() for each in values),
        ]
        return all(is_header_value(name) for name in names)


def is_header_value(text: str) -> bool:
    """Whether a header can carry this text: nothing in it may end the line."""
    return all(letter >= " " and letter != "\x7f" for letter in text)


def _escaped(key: str) -> str:
    return "".join(chr(byte) if byte in _LETTERS else f"%{byte:02X}" for byte in key.encode())
