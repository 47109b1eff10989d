"""Which release this is.  pyproject.toml reads it here, for to ask the installed package takes longer than to
import the client.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
