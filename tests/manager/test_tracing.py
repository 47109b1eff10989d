"""Spans of reconciles, collected by OpenTelemetry's own SDK."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from setpoint.api.names import Key
from setpoint.controller.mapping import Reason
from setpoint.controller.worker import Log, Look, Looked
from setpoint.manager.tracing import Tracing

NO_READER: Any = None
LOOK = Look(
    "webapp", Key("shop", "web"), "1a2b-3", (Reason("retry"),), 1, NO_READER, Log(logging.getLogger(), {})
)


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """Where spans go; OpenTelemetry takes a provider once for a process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def finished(spans: InMemorySpanExporter) -> list[ReadableSpan]:
    found = list(spans.get_finished_spans())
    spans.clear()
    return found


def test_a_reconcile_is_a_span_that_says_which_why_and_what_came_of_it(spans: InMemorySpanExporter) -> None:
    tracing = Tracing()
    with tracing.around(LOOK):
        tracing.record("webapp", LOOK.request, Looked("1a2b-3", (), 1.0, 0.5, "error", "no answer", 2))
    (span,) = finished(spans)
    assert span.name == "reconcile webapp"
    assert dict(span.attributes or {}) == {
        "setpoint.controller": "webapp",
        "setpoint.object.namespace": "shop",
        "setpoint.object.name": "web",
        "setpoint.reconcile.id": "1a2b-3",
        "setpoint.reasons": ("retry",),
        "setpoint.result": "error",
        "setpoint.failures": 2,
    }
    assert not span.status.is_ok
    assert span.status.description == "no answer"


def test_spans_of_the_authors_own_are_its_children(spans: InMemorySpanExporter) -> None:
    with Tracing().around(LOOK), trace.get_tracer("author").start_as_current_span("ask the bank"):
        pass
    inner, outer = finished(spans)
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_without_the_package_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tracing = Tracing()
    assert repr(tracing) == "<Tracing without OpenTelemetry>"
    with tracing.around(LOOK):
        tracing.record("webapp", LOOK.request, Looked("1", (), 1.0, 0.5, "success"))
