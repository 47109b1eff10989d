"""Asking the API server for things.

``Client`` has the verbs, ``Config`` says where the server is and who we are.
"""

from setpoint.client.client import Client, ignore_not_found
from setpoint.client.config import Config
from setpoint.client.forwarding import Connection
from setpoint.client.impersonation import Impersonation
from setpoint.client.listing import Listing, Objects
from setpoint.client.streams import Completed, Log, Process
from setpoint.client.subresources import Scale, Token
from setpoint.client.watching import Bookmark, Change, Watch

__all__ = [
    "Bookmark",
    "Change",
    "Client",
    "Completed",
    "Config",
    "Connection",
    "Impersonation",
    "Listing",
    "Log",
    "Objects",
    "Process",
    "Scale",
    "Token",
    "Watch",
    "ignore_not_found",
]
