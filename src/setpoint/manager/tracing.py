"""OpenTelemetry spans, one for each reconcile, where somebody collects them.

Without the package ``opentelemetry-api`` (``pip install setpoint[tracing]``) there are none, nor while no
SDK is set up, which may come later.  Where spans go is for the program to say, by OpenTelemetry's own
settings.  Spans that the author's code makes in a reconcile are children of its span.

A span has no object's data: which controller, which key, why, and what came of it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from types import ModuleType
from typing import Any, Final

from setpoint.api.names import Key
from setpoint.controller.worker import Look, Looked

_NO_SPAN: Final = nullcontext()
_ASK_EVERY: Final = (
    1.0  # seconds, whether somebody has set up an SDK: to ask takes a look into the environment
)


class Tracing:
    """Makes the spans."""

    def __init__(self) -> None:
        self._trace: Any = _opentelemetry()
        self._tracer: Any = self._trace and self._trace.get_tracer("setpoint")
        self._has_provider = False
        self._ask_at = 0.0

    def __repr__(self) -> str:
        return f"<Tracing {'with' if self._trace else 'without'} OpenTelemetry>"

    @property
    def _is_collected(self) -> bool:
        """Whether anybody wants spans: one that is dropped costs as much as a small reconcile."""
        trace, now = self._trace, monotonic()
        if trace and not self._has_provider and now >= self._ask_at:
            self._has_provider = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
            self._ask_at = now + _ASK_EVERY
        return self._has_provider

    def around(self, look: Look) -> AbstractContextManager[object]:
        """A span for one reconcile."""
        if not self._is_collected:
            return _NO_SPAN
        span: AbstractContextManager[object] = self._tracer.start_as_current_span(
            f"reconcile {look.controller}",
            attributes={
                "setpoint.controller": look.controller,
                "setpoint.object.namespace": look.request.namespace,
                "setpoint.object.name": look.request.name,
                "setpoint.reconcile.id": look.id,
                "setpoint.reasons": [str(reason) for reason in look.reasons],
            },
        )
        return span

    def record(self, _controller: str, _request: Key, looked: Looked) -> None:
        """What came of it; to be told inside of ``around``."""
        if not self._is_collected:
            return
        span = self._trace.get_current_span()
        span.set_attribute("setpoint.result", looked.came_to)
        span.set_attribute("setpoint.failures", looked.failures)
        if looked.error:
            span.set_status(self._trace.StatusCode.ERROR, looked.error)


def _opentelemetry() -> ModuleType | None:
    try:
        from opentelemetry import trace  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return None
    return trace
