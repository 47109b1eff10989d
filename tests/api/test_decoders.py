"""Classes are made known to msgspec one at a time; many objects are decoded without a search for cycles."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from setpoint.api import Model
from setpoint.api.decoders import decode_all
from setpoint.kube.core.v1 import Pod

# In a process of its own, which has decoded nothing yet, and which may crash.
PROGRAM = """
import sys, threading
from setpoint.kube.core.v1 import Pod

sys.setswitchinterval(1e-6)
together = threading.Barrier(6)
names = []

def read():
    together.wait()
    names.append(Pod.decode(b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"b"}]}}').metadata.name)

threads = [threading.Thread(target=read) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(names)
"""


def test_threads_that_read_a_kind_for_the_first_time_do_so_in_turn() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(["a"] * 6)


POD = b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"b","ports":[{"containerPort":1}]}]}}'


def test_python_does_not_look_for_cycles_while_many_objects_are_decoded() -> None:
    looked: list[str] = []
    gc.callbacks.append(lambda phase, _: looked.append(phase))
    try:
        found = decode_all(Pod.decode, [POD] * 5_000)
    finally:
        gc.callbacks.pop()
    assert len(found) == 5_000
    assert looked == []
    assert gc.isenabled()


def test_where_it_was_held_back_by_others_it_stays_so() -> None:
    gc.disable()
    try:
        decode_all(Pod.decode, [POD])
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_cannot_be_decoded_leaves_it_as_it_was() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        decode_all(int, ["no number"])
    assert gc.isenabled()


def test_python_never_looks_for_cycles_in_what_an_object_holds() -> None:
    pod = Pod.decode(POD)
    assert not gc.is_tracked(pod.spec)
    assert not gc.is_tracked(pod.spec.containers[0])


def test_a_model_may_have_room_for_anything() -> None:
    class Noted(Model, dict=True):
        text: str = ""

    noted = Noted(text="a")
    noted.__dict__["more"] = noted
    assert noted.__dict__["more"].text == "a"
