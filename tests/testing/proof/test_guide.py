"""What an author who follows the guide writes survives: the programs of its pages, as they stand there."""

from __future__ import annotations

from typing import Any

import pytest

from setpoint.testing.proof.cloud import Cloud
from setpoint.testing.proof.prove import prove
from tests.pages import ROOT, blocks


def shown_by(page: str) -> dict[str, Any]:
    """The names that a page's program defines."""
    names: dict[str, Any] = {"__name__": page}
    for block in blocks(ROOT / "docs" / f"{page}.md"):
        exec(block.compile(), names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{"only": ["V9"], "is_exhaustive": True}, {"most_of_class": 2}], ids=["the past", "every class"]
)
def test_what_the_page_of_finalizers_shows_survives(how: dict[str, Any]) -> None:
    names, buckets = shown_by("finalizers"), Cloud("buckets")

    async def ensure_bucket(name: str, region: str) -> None:
        found = await buckets.get(name)
        if found is None:
            await buckets.create(name, region=region)
        elif found["region"] != region:
            await buckets.update(name, region=region)

    names["ensure_bucket"], names["delete_bucket"] = ensure_bucket, buckets.delete
    report = prove(names["operator"], clouds=[buckets], at_most=[("buckets", 1)], shrink=False, **how)
    assert report.is_good, str(report)
    assert report.tried
