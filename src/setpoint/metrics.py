"""What a process counts and measures about itself, under the names that dashboards know.

1. Names, labels and buckets are those of controller-runtime and client-go; what they lack starts with
   ``setpoint_``.
2. What belongs to a controller, a queue or a kind is there from the start, at 0: an alert on it never waits
   for the first failure.
3. Nothing is global: two ``Metrics`` in one process never meet.
4. Labels are bounded: of a queue's priorities the first 25 have a label of their own.
5. What is a state (a queue's depth, a cache's size) is read when someone looks, and no task polls for it.

Importing this file costs nothing: the library loads with the first ``Metrics()``.  No HTTP here:
``manager/probes.py`` serves ``exposition()``.  Fed by the queue, the cache, the controllers and the client.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
    from prometheus_client.registry import Collector

RESULTS = ("success", "error", "requeue", "requeue_after")  # of a reconcile; controller-runtime's words
MOST_PRIORITIES = 25
OTHER_PRIORITIES = "exceeded_cardinality_limit"

# fmt: off
_RECONCILE_SECONDS = (
    .005, .01, .025, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .6, .7, .8, .9, 1, 1.25, 1.5, 1.75, 2,
    2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
# fmt: on
# Ten times the last each, multiplied as Go multiplies: the fourth is 9.999999999999999e-06 there too.
_QUEUE_SECONDS = [1e-8]
for _ in range(11):
    _QUEUE_SECONDS.append(_QUEUE_SECONDS[-1] * 10)
_LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_QUEUE = ("name", "controller")
_KIND = ("group", "version", "kind")
_Kind = tuple[str, str, str]


class QueueNumbers(Protocol):
    """What a queue tells when asked; ``WorkQueue.stats()`` gives it."""

    @property
    def depth(self) -> Mapping[int, int]:
        """How many keys are due, by priority."""

    @property
    def adds(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def unfinished_seconds(self) -> float: ...
    @property
    def longest_running_seconds(self) -> float: ...


class CacheNumbers(Protocol):
    """What the cache of a kind tells when asked."""

    @property
    def objects(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def last_event_age_seconds(self) -> float:
        """How long ago the server last said anything, bookmarks too."""


@dataclass(frozen=True, slots=True)
class ControllerMetrics:
    """What one controller counts; ``inc``, ``dec``, ``set`` and ``observe`` them."""

    reconciles: Mapping[str, Counter]  # by result, of RESULTS
    errors: Counter
    terminal_errors: Counter
    panics: Counter
    timeouts: Counter
    seconds: Histogram
    workers: Gauge  # how many there may be
    active_workers: Gauge
    cache_wait_seconds: Histogram  # read-your-writes: what reads waited
    cache_wait_timeouts: Counter
    hot_loops: Counter
    callback_errors: Counter  # predicates, mappers, streams and timers that raised
    worker_restarts: Counter  # workers that ended unexpectedly


class Durations:
    """A histogram of seconds that only one thread writes.

    prometheus_client's takes a lock for each number; with two numbers to a key that was a third of what
    the work queue did.
    """

    __slots__ = ("_counts", "_sum", "_upper")

    def __init__(self, upper: Sequence[float]) -> None:
        self._upper = tuple(upper)
        self._counts = [0] * (len(self._upper) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._upper, seconds)] += 1
        self._sum += seconds

    def read(self) -> tuple[list[tuple[float, int]], float]:
        """How many were at most so long, for each bound; and the sum of all."""
        bounds = (*self._upper, math.inf)
        return list(zip(bounds, accumulate(self._counts), strict=True)), self._sum


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """What one queue measures; all else it has is read from it."""

    waited_seconds: Durations
    worked_seconds: Durations


@dataclass(frozen=True, slots=True)
class CacheMetrics:
    """What the cache of one kind counts; all else it has is read from it until ``close()``."""

    relists: Counter
    lag_seconds: Histogram  # from the answer to a write of ours until the watch shows it
    callback_errors: Counter  # listeners and index functions that raised
    close: Callable[[], None]


class Metrics:
    """The metrics of one manager.  ``registry`` is prometheus_client's, for families of the author's own."""

    content_type: Final = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        import prometheus_client as prometheus  # noqa: PLC0415 slow to import, and many only import us

        self.registry: Final[CollectorRegistry] = prometheus.CollectorRegistry()

        def counter(name: str, says: str, *labels: str) -> Counter:
            return prometheus.Counter(name, says, labels, registry=self.registry)

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return prometheus.Gauge(name, says, labels, registry=self.registry)

        def histogram(name: str, says: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
            return prometheus.Histogram(name, says, labels, buckets=buckets, registry=self.registry)

        self._reconciles = counter(
            "controller_runtime_reconcile_total", "Reconciles, by what came of them", "controller", "result"
        )
        self._errors = counter(
            "controller_runtime_reconcile_errors_total", "Reconciles that failed", "controller"
        )
        self._terminal_errors = counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that failed and are not retried",
            "controller",
        )
        self._panics = counter(
            "controller_runtime_reconcile_panics_total",
            "Reconciles that ended in an exception nobody meant",
            "controller",
        )
        self._timeouts = counter(
            "controller_runtime_reconcile_timeouts_total",
            "Reconciles stopped at their deadline",
            "controller",
        )
        self._seconds = histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles take",
            "controller",
            buckets=_RECONCILE_SECONDS,
        )
        self._workers = gauge(
            "controller_runtime_max_concurrent_reconciles",
            "How many reconciles may run at once",
            "controller",
        )
        self._active = gauge("controller_runtime_active_workers", "How many reconciles run now", "controller")
        self._cache_waits = histogram(
            "setpoint_cache_wait_seconds",
            "How long reads waited until the cache had seen the controller's own writes",
            "controller",
            buckets=_LAG_SECONDS,
        )
        self._cache_wait_timeouts = counter(
            "setpoint_cache_wait_timeouts_total",
            "Reads that waited for the controller's own writes in vain",
            "controller",
        )
        self._hot_loops = counter(
            "setpoint_hot_loops_total", "Objects found to be written back and forth", "controller"
        )
        self._callback_errors_of = counter(
            "setpoint_callback_errors_total",
            "Predicates, mappers, streams and timers that raised",
            "controller",
        )
        self._worker_restarts = counter(
            "setpoint_worker_restarts_total",
            "Workers that ended unexpectedly and were restarted",
            "controller",
        )
        self._relists = counter("setpoint_cache_relists_total", "Times a kind was listed again", *_KIND)
        self._lag = histogram(
            "setpoint_cache_lag_seconds",
            "From the answer to a write until the watch shows it",
            *_KIND,
            buckets=_LAG_SECONDS,
        )
        self._callback_errors = counter(
            "setpoint_cache_callback_errors_total", "Listeners and index functions that raised", *_KIND
        )
        self._requests = counter(
            "rest_client_requests_total", "Requests to the API server", "code", "method", "host"
        )
        self._counted: dict[tuple[str, str, str], Counter] = {}  # of these, what each of them is found by
        self._leader = gauge("leader_election_master_status", "1 where this process leads", "name")
        self._queues = _Queues()
        self._caches = _Caches()
        self.registry.register(self._queues)
        self.registry.register(self._caches)
        prometheus.ProcessCollector(registry=self.registry)
        prometheus.PlatformCollector(registry=self.registry)
        prometheus.GCCollector(registry=self.registry)

    def __repr__(self) -> str:
        return f"<Metrics of {len(self._queues.sources)} queues and {len(self._caches.sources)} caches>"

    def exposition(self) -> bytes:
        """All of it, in Prometheus' text format; to be served as ``content_type``."""
        from prometheus_client import generate_latest  # noqa: PLC0415 see __init__

        return generate_latest(_WithoutBirthdays(self.registry))

    def controller(self, name: str, *, workers: int = 1) -> ControllerMetrics:
        """What the controller ``name`` counts, all of it at 0 unless it was counted before."""
        self._workers.labels(name).set(workers)
        return ControllerMetrics(
            reconciles={result: self._reconciles.labels(name, result) for result in RESULTS},
            errors=self._errors.labels(name),
            terminal_errors=self._terminal_errors.labels(name),
            panics=self._panics.labels(name),
            timeouts=self._timeouts.labels(name),
            seconds=self._seconds.labels(name),
            workers=self._workers.labels(name),
            active_workers=self._active.labels(name),
            cache_wait_seconds=self._cache_waits.labels(name),
            cache_wait_timeouts=self._cache_wait_timeouts.labels(name),
            hot_loops=self._hot_loops.labels(name),
            callback_errors=self._callback_errors_of.labels(name),
            worker_restarts=self._worker_restarts.labels(name),
        )

    def queue(self, name: str, read: Callable[[], QueueNumbers]) -> QueueMetrics:
        """What the queue ``name`` measures; ``read`` is asked for the rest at each look.

        A queue takes the place of a former one of its name: a controller that starts again has a new one.
        """
        labels = (name, name)  # a queue is named after its controller, as in controller-runtime
        self._queues.sources[labels] = _Queue(read)
        return QueueMetrics(
            self._queues.waited.setdefault(labels, Durations(_QUEUE_SECONDS)),
            self._queues.worked.setdefault(labels, Durations(_QUEUE_SECONDS)),
        )

    def cache(self, group: str, version: str, kind: str, read: Callable[[], CacheNumbers]) -> CacheMetrics:
        """What the cache of a kind counts; ``read`` is asked for its size and age at each look.

        Where several caches hold parts of a kind (its namespaces), their sizes are added up, and the age
        is that of the one longest silent.
        """
        labels = (group, version, kind)
        forget = self._caches.add(labels, read)
        return CacheMetrics(
            self._relists.labels(*labels),
            self._lag.labels(*labels),
            self._callback_errors.labels(*labels),
            forget,
        )

    def request(self, *, method: str, host: str, code: str) -> None:
        """Count one request: the status code of its answer, or ``<error>`` where none came."""
        counter = self._counted.get((code, method, host))
        if counter is None:
            counter = self._counted[code, method, host] = self._requests.labels(code, method, host)
        counter.inc()

    def leader(self, name: str) -> Gauge:
        """Whether this process leads in the election ``name``: to be set to 1 and 0."""
        return self._leader.labels(name)


class _WithoutBirthdays:
    """The families of a registry without the times at which each series began.

    Go's client has no such samples, they are half of all there are, and the library's switch is global.
    """

    def __init__(self, registry: Collector) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for whole in self._registry.collect():
            family = copy.copy(whole)
            family.samples = [each for each in whole.samples if each.name != f"{whole.name}_created"]
            yield family


@dataclass(slots=True)
class _Queue:
    read: Callable[[], QueueNumbers]
    _labelled: set[int] = field(default_factory=lambda: {0})

    def depths(self, depth: Mapping[int, int]) -> dict[str, int]:
        """Depth by label; a priority once shown is shown at 0 when nothing of it is due."""
        shown = dict.fromkeys(map(str, self._labelled), 0)
        for priority, due in depth.items():
            if len(self._labelled) < MOST_PRIORITIES:
                self._labelled.add(priority)
            label = str(priority) if priority in self._labelled else OTHER_PRIORITIES
            shown[label] = shown.get(label, 0) + due
        return shown


class _Queues:
    """What is read from the queues at each look."""

    def __init__(self) -> None:
        self.sources: dict[tuple[str, str], _Queue] = {}
        # Of every queue there was: a new one of a name goes on counting where the former was.
        self.waited: dict[tuple[str, str], Durations] = {}
        self.worked: dict[tuple[str, str], Durations] = {}

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415 as above

        depth = GaugeMetricFamily("workqueue_depth", "Keys that are due", labels=(*_QUEUE, "priority"))
        adds = CounterMetricFamily("workqueue_adds", "Keys that fell due", labels=_QUEUE)
        retries = CounterMetricFamily("workqueue_retries", "Keys added with backoff", labels=_QUEUE)
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "How long all taken keys together are taken", labels=_QUEUE
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "How long one key at most is taken", labels=_QUEUE
        )
        for labels, queue in self.sources.items():
            numbers = queue.read()
            for priority, due in queue.depths(numbers.depth).items():
                depth.add_metric((*labels, priority), due)
            adds.add_metric(labels, numbers.adds)
            retries.add_metric(labels, numbers.retries)
            unfinished.add_metric(labels, numbers.unfinished_seconds)
            longest.add_metric(labels, numbers.longest_running_seconds)
        yield from (depth, adds, retries, unfinished, longest)
        yield _histogram(
            "workqueue_queue_duration_seconds", "How long keys are due before they are taken", self.waited
        )
        yield _histogram(
            "workqueue_work_duration_seconds", "How long keys are in a worker's hands", self.worked
        )

    describe = collect  # so that a family of the author's own cannot take one of these names


def _histogram(name: str, says: str, sources: Mapping[tuple[str, str], Durations]) -> Metric:
    from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415 as above
    from prometheus_client.utils import floatToGoString  # noqa: PLC0415

    le = cast("Callable[[float], str]", floatToGoString)  # which has no types
    family = HistogramMetricFamily(name, says, labels=_QUEUE)
    for labels, durations in sources.items():
        buckets, total = durations.read()
        family.add_metric(labels, [(le(bound), count) for bound, count in buckets], total)
    return family


class _Caches:
    """What is read from the caches at each look."""

    def __init__(self) -> None:
        self.sources: dict[object, tuple[_Kind, Callable[[], CacheNumbers]]] = {}

    def add(self, labels: _Kind, read: Callable[[], CacheNumbers]) -> Callable[[], None]:
        """Read from there too, until the answer is called."""
        source = object()
        self.sources[source] = (labels, read)
        return lambda: self.sources.pop(source, None) and None

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 as above

        told: dict[_Kind, list[CacheNumbers]] = {}
        for labels, read in self.sources.values():
            told.setdefault(labels, []).append(read())
        objects = GaugeMetricFamily("setpoint_cache_objects", "Objects in the cache", labels=_KIND)
        sizes = GaugeMetricFamily("setpoint_cache_bytes", "Bytes of the objects in the cache", labels=_KIND)
        ages = GaugeMetricFamily(
            "setpoint_cache_last_event_age_seconds", "How long the server has said nothing", labels=_KIND
        )
        for labels, parts in told.items():
            objects.add_metric(labels, sum(part.objects for part in parts))
            sizes.add_metric(labels, sum(part.bytes for part in parts))
            ages.add_metric(labels, max(part.last_event_age_seconds for part in parts))
        yield from (objects, sizes, ages)

    describe = collect
