"""Has msgspec find out what a class is made of, for one class at a time; and decodes many objects at once.

It finds out when a class is first decoded, and two threads that have it do so at once crash the process.  So
whoever decodes into a class of ours says so here, before the first time: ``decoder`` where one is kept,
``prepare`` where msgspec is called with the class.  Decoding itself takes no lock.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
S = TypeVar("S")

_one_at_a_time = Lock()


def decoder(model: type[T], dec_hook: Callable[[type, Any], Any] | None = None) -> msgspec.json.Decoder[T]:
    with _one_at_a_time:
        return msgspec.json.Decoder(model, dec_hook=dec_hook)


def prepare(*models: type) -> None:
    for model in models:
        decoder(model)


def decode_all(decode: Callable[[S], T], data: Iterable[S]) -> list[T]:
    """Each of many, with Python's search for cycles held back.

    It begins whenever so many objects were made, and looks at all of them again each time: of reading 20,000
    Pods that was three quarters.  What is decoded from JSON has no cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [decode(each) for each in data]
    finally:
        if was_enabled:
            gc.enable()
