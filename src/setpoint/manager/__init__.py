"""Running it all in one process: clients, caches, controllers, servers, and who leads.

``Manager`` owns and runs; ``LeaderElection`` has one of several replicas lead.  ``Runnable`` is what it runs,
``Group`` says what starts before what, and a ``Check`` is what its probes ask.  ``configure`` has the log
lines of a process look as those of ``setpoint run``, and the two formatters are for programs with logging of
their own.
"""

from setpoint.manager.lease_state import LeaderElection
from setpoint.manager.lifecycle import Group
from setpoint.manager.logs import JsonFormatter, TextFormatter, configure
from setpoint.manager.manager import Manager
from setpoint.manager.probes import Check
from setpoint.manager.supervisor import Runnable

__all__ = [
    "Check",
    "Group",
    "JsonFormatter",
    "LeaderElection",
    "Manager",
    "Runnable",
    "TextFormatter",
    "configure",
]
