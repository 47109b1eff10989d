"""How a log line looks in ``setpoint dev``: by ``cli/watching.py``."""

from __future__ import annotations

import logging

import pytest

from setpoint.cli.watching import ShortFormatter


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"controller": "webapp", "namespace": "shop", "object_name": "web"}, "error: shop/web: failed"),
        ({"controller": "room", "object_name": "hall"}, "error: hall: failed"),
        ({}, "error: failed"),
    ],
)
def test_a_short_line_names_its_object(fields: dict[str, str], shown: str) -> None:
    record = logging.makeLogRecord({"msg": "failed", "levelname": "ERROR", **fields})
    assert ShortFormatter().format(record).endswith(f"  {shown}")
