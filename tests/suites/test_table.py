"""A test that ends otherwise on our server needs a reason, and a reason needs such a test."""

from __future__ import annotations

from tests.suites.controller_runtime import Outcomes
from tests.suites.table import (
    Compared,
    Reason,
    Results,
    clients,
    controller_runtime,
    helm,
    judged,
    odd,
    page,
)

_FINE: Outcomes = {"a": ("passed", "at another try"), "b": ("skipped", "")}
_WORSE: Outcomes = {"a": ("failed", "it said no"), "b": ("skipped", "")}
_BY_HAND = "# By hand\n\n<!-- from here on written by `make suites` -->\n\n### Helm\n\nof old\n"


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


def test_a_reason_about_a_suite_that_was_not_run_is_not_asked_for() -> None:
    assert not judged(results(_FINE, _FINE), [Reason("*", "kopf", "a", "because")], is_whole=True)[1]


def test_the_page_keeps_what_was_written_by_hand_and_of_other_sections() -> None:
    once = page(_BY_HAND, {"controller-runtime": ["new", "lines"]})
    assert once == page(once, {"controller-runtime": ["new", "lines"]})
    assert once == _BY_HAND + "\n### controller-runtime\n\nnew\nlines\n"
    assert page(once, {"Helm": ["of today"]}) == once.replace("of old", "of today")


def test_controller_runtimes_section_counts_and_gives_reasons() -> None:
    found = results(_FINE, _WORSE)
    explained, _ = judged(found, [Reason("*", "client", "*", "because")], is_whole=True)
    lines = list(controller_runtime(found, explained, {"Kubernetes": "v2", "controller-runtime": "v1"}))
    assert lines[0] == "With Kubernetes v2, controller-runtime v1."
    assert "| client | 2 | 1 | 0 | 1 | 0 | 1 | 1 |" in lines
    assert "- client, 1 test (passed on kube-apiserver, failed on setpoint): because" in lines
    assert any(
        "second or third try, of all these: 1 on kube-apiserver, 0 on setpoint." in one for one in lines
    )


def test_helms_section_names_every_command() -> None:
    compared = [Compared("helm list", is_same=True), Compared("! helm install", is_same=False)]
    assert list(helm(compared, {"Helm": "v4"}))[-2:] == [
        "| `helm list` | the same |",
        "| `helm install`, which is refused | something else |",
    ]


def test_the_clients_section_says_which_could_not_be_fetched() -> None:
    found: Results = {("python", "kopf", "setpoint"): _FINE, ("python", "kopf", "kube"): _FINE}
    lines = list(clients(found, [], {"kopf": "1"}, unreachable=["lightkube"]))
    assert "| kopf | 2 | 1 | 0 | 1 | 1 | 0 | 1 |" in lines
    assert "lightkube was not run: its suite cannot be fetched." in lines
    assert lines[-1] == "Nothing."
