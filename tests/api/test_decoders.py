"""Classes are made known to msgspec one at a time."""

from __future__ import annotations

import subprocess
import sys

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
