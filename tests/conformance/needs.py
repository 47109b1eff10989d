"""What tests need that only the real control plane has, and which tests take their time.

A test is named by its file, or by its file and name.  Read by ``conftest.py``, which marks them: ``needs``
are left out unless with ``--server kube``, and who is in a hurry says ``-m "not slow"``.
"""

from __future__ import annotations

from typing import Final

KUBECTL: Final = "kubectl, which `make kube` builds"
REAL: Final = "the real server, which is what our functions are held against here"
PROGRAMS: Final = "the control plane's programs, which are what the test is about"

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    KUBECTL: ("test_docs.py::test_kubectl_takes_what_the_example_of_a_kind_prints",),
    REAL: (
        "test_builtin_cluster.py",
        "test_builtin_lifecycle.py",
        "test_builtin_workloads.py",
        "test_managed_fields.py",
        "test_models.py::test_the_data_of_the_tests_is_what_the_server_says",
        "test_models.py::test_the_models_are_what_the_server_gives",
    ),
    PROGRAMS: ("test_control_plane.py", "test_restored_etcd.py"),
}


# Left out with ``--server memory``, where no socket lies between.
NEEDS_SOCKET: Final = (
    "test_cache.py::test_reads_never_go_behind_our_own_writes",  # there, nothing is ever behind
    "test_crd_server.py",  # these ask by a connection of their own, whatever the client's way is
    "test_openapi_v2.py",
    "test_proof.py",
    "test_server_differences.py",
    "test_watch_websocket.py",
)

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
    "test_proof.py",
    "test_restored_etcd.py",
    "test_scale.py",
)


def is_slow(file: str, test: str) -> bool:
    return file in SLOW or f"{file}::{test}" in SLOW


def needs_socket(file: str, test: str) -> bool:
    return file in NEEDS_SOCKET or f"{file}::{test}" in NEEDS_SOCKET


def need_of(file: str, test: str) -> str | None:
    """What a test needs; None where it can run against either server."""
    for need, tests in NEEDS.items():
        if file in tests or f"{file}::{test}" in tests:
            return need
    return None
