"""Errors for unknown keywords: they name the class or function, and the closest keyword that exists.

LampSpec has no field 'color'; did you mean 'colour'?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def check_keywords(where: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse keywords that are not known."""
    for name in given:
        if name not in known:
            raise TypeError(f"{where} has no option {name!r}{suggestion(name, known)}")


def suggestion(name: str, known: Iterable[str]) -> str:
    """The closest of the known names, as the end of a sentence; where none is close, all of them."""
    import difflib  # noqa: PLC0415 - only errors need it, and it takes longer to import than the client

    plain = {_plain(each): each for each in sorted(known)}
    close = difflib.get_close_matches(_plain(name), plain, n=1)
    if close:
        return f"; did you mean {plain[close[0]]!r}?"
    return f"; there are {', '.join(plain.values())}" if plain else ""


def _plain(name: str) -> str:
    """Without case and underscores: ``apiVersion`` is as close to ``api_version`` as can be."""
    return name.replace("_", "").lower()
