"""Everything that is asked of both servers; ``asking.py`` says what a script is."""

from __future__ import annotations

from tests.conformance.scripts import definitions, deleting, reading, recorded, serving, writing

SCRIPTS = [
    *writing.SCRIPTS,
    *reading.SCRIPTS,
    *deleting.SCRIPTS,
    *definitions.SCRIPTS,
    *serving.SCRIPTS,
    *recorded.SCRIPTS,
]
