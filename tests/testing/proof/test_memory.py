"""What a module keeps in plain containers is gone with the process."""

from __future__ import annotations

import random
from types import ModuleType

from setpoint.testing.proof.memory import remembered


def test_plain_containers_are_put_back_in_place() -> None:
    module = ModuleType("theirs")
    module.__dict__.update(seen={}, names=["a"], count=0, kinds={1})
    seen, names = module.seen, module.names
    forget = remembered([module])
    seen["x"] = 1
    names.append("b")
    module.__dict__["count"] = 7
    module.kinds.add(2)
    forget()
    assert (seen, names, module.count, module.kinds) == ({}, ["a"], 0, {1})
    assert module.seen is seen, "whoever holds it sees that it is empty"


def test_forgetting_twice_is_as_good_as_once() -> None:
    module = ModuleType("theirs")
    module.__dict__.update(deep={"a": [1]})
    forget = remembered([module])
    for _ in range(2):
        module.deep["a"].append(2)
        forget()
        assert module.deep == {"a": [1]}


def test_counters_caches_classes_and_instances_are_as_when_they_were_imported() -> None:
    module = ModuleType("theirs")
    source = """
import functools, itertools, random

numbers = itertools.count(5)
drawn = random.Random()

@functools.cache
def once(key): return next(numbers)

class State:
    total = 0
    names = []
    def __init__(self): self.seen = {}; self.last = None

state = State()

def use():
    State.total += 1
    State.names.append("x")
    state.seen[State.total] = 1
    state.last = "x"
    return next(numbers), once("a"), drawn.random(), State.total, len(State.names), len(state.seen)
"""
    exec(source, vars(module))
    forget = remembered([module])
    found = []
    for _ in range(2):
        random.seed(7)
        forget()
        assert module.state.last is None
        found.append((module.use(), module.use()))
    assert found[0] == found[1]
