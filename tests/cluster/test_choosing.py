"""Which controllers run, in kube-controller-manager's words."""

from __future__ import annotations

import pytest

from setpoint.cluster.choosing import chosen

THERE = ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("*", ["a", "b", "c"]),
        ("b", ["b"]),
        ("c,a", ["a", "c"]),
        ("*,-b", ["a", "c"]),
        ("-b", ["a", "c"]),
        ("a,b,-b", ["a"]),
        (" a , b ", ["a", "b"]),
        ("none", []),
        ("", []),
    ],
)
def test_controllers_are_chosen_and_left_out_by_name(text: str, names: list[str]) -> None:
    assert chosen(text, THERE) == names


@pytest.mark.parametrize("text", ["d", "*,d", "-d", "none,a"])
def test_a_name_that_is_nobodys_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(ValueError, match=r"there is no controller (d|none): choose among \*, none, a, b, c"):
        chosen(text, THERE)
