"""Which controllers somebody wants, in kube-controller-manager's words.

``*`` is all of them, ``name`` that one, ``-name`` all but that one, ``none`` none; several are separated by
commas.  Unlike there, a list that only leaves some out begins with all, as whoever writes it means.
"""

from __future__ import annotations

from collections.abc import Sequence


def chosen(text: str, there: Sequence[str]) -> list[str]:
    """The names of ``there`` that ``text`` chooses, in their order; ValueError if one is not there."""
    words = [word for word in (each.strip() for each in text.split(",")) if word]
    if words in ([], ["none"]):
        return []
    left_out = {word[1:] for word in words if word.startswith("-")}
    named = {word for word in words if not word.startswith("-")}
    if unknown := sorted((left_out | named - {"*"}) - set(there)):
        raise ValueError(
            f"there is no controller {', '.join(unknown)}: choose among *, none, {', '.join(there)}"
        )
    wanted = set(there) if "*" in named or not named else named
    return [name for name in there if name in wanted - left_out]
