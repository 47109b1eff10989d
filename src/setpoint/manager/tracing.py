"""OpenTelemetry spans, one for each reconcile, where somebody collects them.

Without the package ``opentelemetry-api`` (``pip install setpoint[tracing]``) there are none; with it, but
without an SDK, its own tracer drops them.  Where spans go is for the program to say, by OpenTelemetry's own
settings.  Spans that the author's code makes in a reconcile are children of its span.

A span has no object's data: which controller, which key, why, and what came of it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from setpoint.api.names import Key
from setpoint.controller.worker import Look, Looked

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class Tracing:
    """Makes the spans."""

    def __init__(self) -> None:
        self._tracer = _tracer()

    def __repr__(self) -> str:
        return f"<Tracing {'with' if self._tracer else 'without'} OpenTelemetry>"

    def around(self, look: Look) -> AbstractContextManager[object]:
        """A span for one reconcile."""
        if self._tracer is None:
            return nullcontext()
        return self._tracer.start_as_current_span(
            f"reconcile {look.controller}",
            attributes={
                "setpoint.controller": look.controller,
                "setpoint.object.namespace": look.request.namespace,
                "setpoint.object.name": look.request.name,
                "setpoint.reconcile.id": look.id,
                "setpoint.reasons": [str(reason) for reason in look.reasons],
            },
        )

    def record(self, _controller: str, _request: Key, looked: Looked) -> None:
        """What came of it; to be told inside of ``around``."""
        if self._tracer is None:
            return
        from opentelemetry.trace import StatusCode, get_current_span  # noqa: PLC0415 - it is there

        span = get_current_span()
        span.set_attribute("setpoint.result", looked.came_to)
        span.set_attribute("setpoint.failures", looked.failures)
        if looked.error:
            span.set_status(StatusCode.ERROR, looked.error)


def _tracer() -> Tracer | None:
    try:
        from opentelemetry import trace  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return None
    return trace.get_tracer("setpoint")
