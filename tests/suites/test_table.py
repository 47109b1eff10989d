"""A test that ends otherwise on our server needs a reason, and a reason needs such a test."""

from __future__ import annotations

from tests.suites.controller_runtime import Outcomes
from tests.suites.table import Compared, Reason, Results, judged, odd, page

_FINE: Outcomes = {"a": ("passed", "at another try"), "b": ("skipped", "")}
_WORSE: Outcomes = {"a": ("failed", "it said no"), "b": ("skipped", "")}


def results(kube: Outcomes, ours: Outcomes) -> Results:
    return {("envtest", "client", "setpoint"): ours, ("envtest", "client", "kube"): kube}


def test_what_is_the_same_is_not_odd() -> None:
    assert not list(odd(results(_FINE, _FINE)))


def test_a_difference_without_a_reason_is_wrong() -> None:
    explained, wrong = judged(results(_FINE, _WORSE), [], is_whole=True)
    assert not explained
    assert wrong == ["envtest client: a: passed on kube-apiserver, failed on setpoint: it said no"]


def test_what_fails_on_both_needs_a_reason_too() -> None:
    _, wrong = judged(results(_WORSE, _WORSE), [], is_whole=True)
    assert len(wrong) == 1


def test_a_test_that_did_not_run_is_odd() -> None:
    (found,) = odd(results(_FINE, {"b": ("skipped", "")}))
    assert (found.test, found.ours) == ("a", "not run")


def test_a_reason_that_explains_nothing_is_wrong_when_all_was_run() -> None:
    reason = Reason("*", "client", "a", "for no reason")
    assert judged(results(_FINE, _WORSE), [reason], is_whole=True)[1] == []
    assert len(judged(results(_FINE, _FINE), [reason], is_whole=True)[1]) == 1
    assert judged(results(_FINE, _FINE), [reason], is_whole=False)[1] == []


def test_the_page_keeps_what_was_written_by_hand() -> None:
    found = results(_FINE, _WORSE)
    explained, _ = judged(found, [Reason("*", "client", "*", "because")], is_whole=True)
    compared = [Compared("helm list", is_same=True)]
    versions = {"controller-runtime": "v1"}
    once = page("# By hand\n", found, explained, compared, versions=versions, minutes=3)
    again = page(once, found, explained, compared, versions=versions, minutes=3)
    assert once == again
    assert once.startswith("# By hand\n")
    assert "| client | 2 | 1 | 0 | 1 | 0 | 1 | 1 |" in once
    assert "- client, 1 test (passed on kube-apiserver, failed on setpoint): because" in once
    assert "second or third try, of all these: 1 on kube-apiserver, 0 on setpoint." in once
    assert "| `helm list` | the same |" in once
