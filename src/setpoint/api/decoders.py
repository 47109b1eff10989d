"""Has msgspec find out what a class is made of, for one class at a time.

It does so when a class is first decoded, and two threads that have it do so at once crash the process.  So
whoever decodes into a class of ours says so here, before the first time: ``decoder`` where one is kept,
``prepare`` where msgspec is called with the class.  Decoding itself takes no lock.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_one_at_a_time = Lock()


def decoder(model: type[T], dec_hook: Callable[[type, Any], Any] | None = None) -> msgspec.json.Decoder[T]:
    with _one_at_a_time:
        return msgspec.json.Decoder(model, dec_hook=dec_hook)


def prepare(*models: type) -> None:
    for model in models:
        decoder(model)
