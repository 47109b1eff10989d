"""The rules of ``metrics.py``, one test to a promise."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, fields

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.parser import text_string_to_metric_families

from setpoint.metrics import MOST_PRIORITIES, OTHER_PRIORITIES, RESULTS, ControllerMetrics, Metrics


@dataclass
class Queue:
    """What a queue tells."""

    depth: dict[int, int] = field(default_factory=dict)
    adds: int = 0
    retries: int = 0
    unfinished_seconds: float = 0.0
    longest_running_seconds: float = 0.0


@dataclass
class Cache:
    """What a cache tells."""

    objects: int = 0
    bytes: int = 0
    last_event_age_seconds: float = 0.0


def full() -> Metrics:
    """With one of everything."""
    metrics = Metrics()
    metrics.controller("webapp", workers=4)
    metrics.queue("webapp", Queue)
    metrics.cache("apps", "v1", "Deployment", Cache)
    metrics.request(method="GET", host="10.0.0.1:443", code="200")
    metrics.leader("webapp-operator").set(0)
    return metrics


def families(metrics: Metrics) -> dict[str, Metric]:
    """What a scraper reads."""
    return {family.name: family for family in text_string_to_metric_families(metrics.exposition().decode())}


def value(metrics: Metrics, name: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


# 1. The names.

CONTROLLER = {"controller"}
QUEUE = {"name", "controller"}
KIND = {"group", "version", "kind"}
GO = {
    "controller_runtime_reconcile_total": CONTROLLER | {"result"},
    "controller_runtime_reconcile_errors_total": CONTROLLER,
    "controller_runtime_terminal_reconcile_errors_total": CONTROLLER,
    "controller_runtime_reconcile_panics_total": CONTROLLER,
    "controller_runtime_reconcile_timeouts_total": CONTROLLER,
    "controller_runtime_reconcile_time_seconds_bucket": CONTROLLER | {"le"},
    "controller_runtime_max_concurrent_reconciles": CONTROLLER,
    "controller_runtime_active_workers": CONTROLLER,
    "workqueue_depth": QUEUE | {"priority"},
    "workqueue_adds_total": QUEUE,
    "workqueue_retries_total": QUEUE,
    "workqueue_unfinished_work_seconds": QUEUE,
    "workqueue_longest_running_processor_seconds": QUEUE,
    "workqueue_queue_duration_seconds_bucket": QUEUE | {"le"},
    "workqueue_work_duration_seconds_bucket": QUEUE | {"le"},
    "rest_client_requests_total": {"code", "method", "host"},
    "leader_election_master_status": {"name"},
}
OURS = {
    "setpoint_cache_objects": KIND,
    "setpoint_cache_bytes": KIND,
    "setpoint_cache_last_event_age_seconds": KIND,
    "setpoint_cache_relists_total": KIND,
    "setpoint_cache_callback_errors_total": KIND,
    "setpoint_cache_lag_seconds_bucket": KIND | {"le"},
    "setpoint_cache_wait_seconds_bucket": CONTROLLER | {"le"},
    "setpoint_cache_wait_timeouts_total": CONTROLLER,
    "setpoint_hot_loops_total": CONTROLLER,
    "setpoint_callback_errors_total": CONTROLLER,
    "setpoint_worker_restarts_total": CONTROLLER,
}


def test_names_and_labels_are_those_of_controller_runtime_and_what_they_lack_starts_with_setpoint() -> None:
    shown = {
        sample.name: set(sample.labels)
        for family in families(full()).values()
        for sample in family.samples
        if not sample.name.startswith(("process_", "python_"))
        and not sample.name.endswith(("_sum", "_count"))
    }
    assert shown == GO | OURS


def buckets(metrics: Metrics, family: str) -> list[float]:
    samples = families(metrics)[family].samples
    return [float(sample.labels["le"]) for sample in samples if sample.name.endswith("_bucket")]


def test_buckets_are_those_of_controller_runtime() -> None:
    metrics = full()
    infinity = float("inf")
    # 10e-9 times ten, eleven times, with Go's rounding; known from any Kubernetes component.
    powers = [1e-08, 1e-07, 1e-06, 9.999999999999999e-06, 9.999999999999999e-05, 0.001, 0.01, 0.1, 1, 10]
    for family in ("workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"):
        assert buckets(metrics, family) == [*powers, 100, 1000, infinity]
    reconcile = buckets(metrics, "controller_runtime_reconcile_time_seconds")
    assert (len(reconcile), reconcile[0], reconcile[-2:]) == (41, 0.005, [60, infinity])


def test_the_process_tells_of_itself() -> None:
    assert {"process_resident_memory_bytes", "process_cpu_seconds", "python_info"} <= set(families(full()))


def test_no_sample_says_when_its_series_began() -> None:
    assert b"_created" not in full().exposition()


# 2. From the start.


def test_every_series_of_a_controller_is_there_from_the_start_at_0() -> None:
    metrics = Metrics()
    counted = metrics.controller("webapp", workers=4)
    for result in RESULTS:
        labels = {"controller": "webapp", "result": result}
        assert metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) == 0
    for name in GO | OURS:
        if (GO | OURS)[name] == CONTROLLER and name != "controller_runtime_max_concurrent_reconciles":
            assert value(metrics, name, controller="webapp") == 0, name
    assert value(metrics, "controller_runtime_max_concurrent_reconciles", controller="webapp") == 4
    assert set(counted.reconciles) == set(RESULTS)


def test_what_a_controller_counts_is_shown_under_its_name() -> None:
    metrics = Metrics()
    counted, other = metrics.controller("webapp"), metrics.controller("database")
    counted.reconciles["requeue_after"].inc()
    counted.seconds.observe(0.3)
    for each in fields(ControllerMetrics):
        if each.name not in ("reconciles", "seconds", "workers", "cache_wait_seconds"):
            getattr(counted, each.name).inc()
    for name, labels in (GO | OURS).items():
        if labels == CONTROLLER:
            assert value(metrics, name, controller="webapp") == 1, name
    assert (
        value(metrics, "controller_runtime_reconcile_total", controller="webapp", result="requeue_after") == 1
    )
    assert (
        value(metrics, "controller_runtime_reconcile_time_seconds_bucket", controller="webapp", le="0.3") == 1
    )
    assert value(metrics, "controller_runtime_reconcile_errors_total", controller="database") == 0
    assert other.errors is not counted.errors


def test_a_controller_that_starts_again_goes_on_counting() -> None:
    metrics = Metrics()
    metrics.controller("webapp").errors.inc()
    metrics.controller("webapp").errors.inc()
    assert value(metrics, "controller_runtime_reconcile_errors_total", controller="webapp") == 2


# 3. Nothing global.


def test_two_metrics_in_one_process_never_meet() -> None:
    first, second = full(), full()
    first.controller("webapp").errors.inc()
    assert value(first, "controller_runtime_reconcile_errors_total", controller="webapp") == 1
    assert value(second, "controller_runtime_reconcile_errors_total", controller="webapp") == 0
    everyones: CollectorRegistry = prometheus_client.REGISTRY
    assert not [family.name for family in everyones.collect() if family.name in GO | OURS]


def test_the_authors_own_metrics_are_shown_too_and_cannot_take_a_name_of_ours() -> None:
    metrics = Metrics()
    prometheus_client.Counter("webapp_deployed", "Deployments made", registry=metrics.registry).inc(3)
    assert b"webapp_deployed_total 3.0" in metrics.exposition()
    for taken in ("workqueue_depth", "setpoint_cache_objects", "rest_client_requests_total"):
        with pytest.raises(ValueError, match="Duplicated"):
            prometheus_client.Gauge(taken, "Mine", registry=metrics.registry)


# 4. Bounded labels.


def test_of_a_queues_priorities_the_first_25_have_a_label_of_their_own() -> None:
    metrics = Metrics()
    queue = Queue(depth={7: 1})
    metrics.queue("webapp", lambda: queue)
    assert depths(metrics) == {"0": 0, "7": 1}
    queue.depth = dict.fromkeys(range(100), 2)
    shown = depths(metrics)
    assert len(shown) == MOST_PRIORITIES + 1
    assert shown["7"] == 2
    assert shown[OTHER_PRIORITIES] == 2 * (100 - MOST_PRIORITIES)
    queue.depth = {7: 1}
    assert sum(depths(metrics).values()) == 1, "what was shown once is shown at 0"
    assert set(depths(metrics)) == set(shown) - {OTHER_PRIORITIES}


def depths(metrics: Metrics) -> dict[str, float]:
    return {
        sample.labels["priority"]: sample.value for sample in families(metrics)["workqueue_depth"].samples
    }


# 5. Read when someone looks.


def test_a_queue_is_asked_at_each_look() -> None:
    metrics = Metrics()
    queue = Queue()
    metrics.queue("webapp", lambda: queue)
    queue.adds, queue.retries, queue.unfinished_seconds, queue.longest_running_seconds = 5, 3, 2.5, 1.5
    labels = {"name": "webapp", "controller": "webapp"}
    assert value(metrics, "workqueue_adds_total", **labels) == 5
    assert value(metrics, "workqueue_retries_total", **labels) == 3
    assert value(metrics, "workqueue_unfinished_work_seconds", **labels) == 2.5
    assert value(metrics, "workqueue_longest_running_processor_seconds", **labels) == 1.5


def test_a_queue_takes_the_place_of_a_former_one_of_its_name() -> None:
    metrics = Metrics()
    metrics.queue("webapp", lambda: Queue(adds=5))
    metrics.queue("webapp", lambda: Queue(adds=1))
    samples = families(metrics)["workqueue_adds"].samples
    assert [sample.value for sample in samples] == [1]


def test_the_caches_of_a_kind_are_added_up_until_they_are_closed() -> None:
    metrics = Metrics()
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    shop = metrics.cache(**kind, read=lambda: Cache(3, 300, 1.0))
    bank = metrics.cache(**kind, read=lambda: Cache(2, 100, 9.0))
    shop.relists.inc()
    bank.relists.inc()
    assert value(metrics, "setpoint_cache_objects", **kind) == 5
    assert value(metrics, "setpoint_cache_bytes", **kind) == 400
    assert value(metrics, "setpoint_cache_last_event_age_seconds", **kind) == 9
    assert value(metrics, "setpoint_cache_relists_total", **kind) == 2
    assert repr(metrics) == "<Metrics of 0 queues and 2 caches>"

    bank.close()
    bank.close()
    assert value(metrics, "setpoint_cache_objects", **kind) == 3
    shop.close()
    assert value(metrics, "setpoint_cache_objects", **kind) is None


def test_a_request_that_nobody_answered_is_counted_too() -> None:
    metrics = Metrics()
    metrics.request(method="GET", host="10.0.0.1:443", code="<error>")
    labels = {"method": "GET", "host": "10.0.0.1:443", "code": "<error>"}
    assert value(metrics, "rest_client_requests_total", **labels) == 1


def test_importing_costs_nothing_until_there_are_metrics() -> None:
    program = "import setpoint.queue, setpoint.metrics, sys; print('prometheus_client' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
