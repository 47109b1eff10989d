"""A process that starts ``setpoint`` commands quickly: it has imported the code, and forks for each order.

Reads a line of JSON for each command (its arguments, and the file for its output) and answers with the
process id.  When its input ends, it kills those it started and ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from contextlib import suppress

import setpoint.builtin
import setpoint.manager
import setpoint.server.server  # noqa: F401 - so that what is forked need not import it
from setpoint.cli.main import main


def run(arguments: list[str], log: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    main(arguments)


def serve() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    started: list[int] = []
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                run(order["arguments"], order["log"])
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            except BaseException:  # noqa: BLE001 - a child never comes back to the loop of its parent
                traceback.print_exc()
            os._exit(code)
        started.append(pid)
        os.write(1, f"{pid}\n".encode())
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    serve()
