"""What tests need that only the real control plane has, and which tests take their time.

A test is named by its file, or by its file and name.  Read by ``conftest.py``, which marks them: ``needs``
are left out with ``--server setpoint``, and who is in a hurry says ``-m "not slow"``.
"""

from __future__ import annotations

from typing import Final

CONTROLLERS: Final = "kube-controller-manager: controllers of built-in kinds, and the garbage collector"
USERS: Final = "users beside the administrator: client certificates, tokens, impersonation, RBAC"
KUBECTL: Final = "kubectl, which `make kube` builds"
REAL: Final = "the real server, which is what our functions are held against here"
PROGRAMS: Final = "the control plane's programs, which are what the test is about"

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    CONTROLLERS: (
        "test_database_deletion.py",
        "test_examples.py",
        "test_node.py",
    ),
    USERS: (
        "test_cache.py::test_a_missing_permission_is_named_and_its_grant_is_noticed",
        "test_cache.py::test_list_without_watch_is_named_too",
        "test_client.py::test_a_rotated_token_is_read_anew",
        "test_client.py::test_a_service_account_is_given_a_token",
        "test_client.py::test_an_exec_plugin_is_asked_anew_after_a_401",
        "test_client.py::test_impersonation_is_who_the_server_sees",
        "test_contract.py::test_a_missing_permission_stops_only_the_controller_that_needs_it_until_it_is_given",
        "test_controller.py::test_a_missing_permission_stops_only_the_controller_that_needs_it_until_it_is_granted",
    ),
    KUBECTL: ("test_docs.py::test_kubectl_takes_what_the_example_of_a_kind_prints",),
    REAL: (
        "test_builtin_cluster.py",
        "test_builtin_workloads.py",
        "test_managed_fields.py",
        "test_models.py::test_the_data_of_the_tests_is_what_the_server_says",
        "test_models.py::test_the_models_are_what_the_server_gives",
    ),
    PROGRAMS: ("test_control_plane.py",),
}


# They wait for leases to run out, or do much.
SLOW: Final = (
    "test_contract.py::test_a_leader_that_is_killed_or_paused_is_followed_by_another_and_writes_no_more",
    "test_contract.py::test_whatever_becomes_of_its_requests_a_reconciler_ends_where_it_should_and_stays_there",
    "test_contract_faults.py",
    "test_controller.py::test_no_child_is_made_twice_while_the_cache_has_not_seen_the_first",
    "test_controller.py::test_what_went_with_its_last_finalizer_is_not_read_any_more",
    "test_manager.py::test_a_leader_that_is_cut_off_ends_before_another_leads",
    "test_manager.py::test_a_leader_that_was_paused_writes_nothing_when_it_goes_on",
    "test_manager.py::test_a_second_signal_ends_the_process_at_once_even_if_the_loop_is_stuck",
    "test_manager.py::test_when_the_leader_is_killed_the_other_leads_after_the_lease_has_run_out",
    "test_scale.py",
)


def is_slow(file: str, test: str) -> bool:
    return file in SLOW or f"{file}::{test}" in SLOW


def need_of(file: str, test: str) -> str | None:
    """What a test needs; None where it can run against either server."""
    for need, tests in NEEDS.items():
        if file in tests or f"{file}::{test}" in tests:
            return need
    return None
