"""What every test of the command line needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the file of an operator brings with it goes with the test."""
    path, home = sys.path[:], str(tmp_path_factory.getbasetemp())
    yield
    sys.path[:] = path
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(home):
            del sys.modules[name]
