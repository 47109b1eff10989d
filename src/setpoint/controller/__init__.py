"""Keeping the world as asked: controllers, and what they are made of.

``builder`` describes a controller in one sentence; ``Controller`` is its longhand, made of sources (``Kind``,
``Stream``, ``Channel``, ``Timer``), predicates and mappers.  A ``Reconciler`` answers with a ``Result``.
"""

from setpoint.controller.builder import Builder, builder
from setpoint.controller.client import ReconcileClient
from setpoint.controller.controller import Controller, ControllerStats
from setpoint.controller.finalizer import add_finalizer, remove_finalizer
from setpoint.controller.mapping import Reason, to_itself, to_keys, to_owner
from setpoint.controller.owners import (
    controller_of,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)
from setpoint.controller.predicates import (
    Predicate,
    annotations_changed,
    anything,
    changed,
    generation_changed,
    labels_changed,
    selected,
    version_changed,
    where,
)
from setpoint.controller.readiness import Readiness, is_ready
from setpoint.controller.recorder import Recorder
from setpoint.controller.result import Reconciler, Request, Result
from setpoint.controller.sources import Channel, Feed, Kind, Source, Stream, Timer
from setpoint.controller.worker import Look, Looked, current_look
from setpoint.errors import RetryLater, TerminalError

__all__ = [
    "Builder",
    "Channel",
    "Controller",
    "ControllerStats",
    "Feed",
    "Kind",
    "Look",
    "Looked",
    "Predicate",
    "Readiness",
    "Reason",
    "ReconcileClient",
    "Reconciler",
    "Recorder",
    "Request",
    "Result",
    "RetryLater",
    "Source",
    "Stream",
    "TerminalError",
    "Timer",
    "add_finalizer",
    "annotations_changed",
    "anything",
    "builder",
    "changed",
    "controller_of",
    "current_look",
    "generation_changed",
    "is_ready",
    "labels_changed",
    "remove_finalizer",
    "remove_owner_reference",
    "selected",
    "set_controller_reference",
    "set_owner_reference",
    "to_itself",
    "to_keys",
    "to_owner",
    "version_changed",
    "where",
]
