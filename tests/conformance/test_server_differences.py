"""One suite for two servers: each script is answered as the real kube-apiserver answered it.

Against the real server this shows that the recording is still right; against ours, that ours is.  What may
differ is in ``differences.toml``, each with its reason, and nothing that is listed there may stay there once
it is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from tests.conformance.asking import Asker, Script, differences
from tests.conformance.planes import NewPlane
from tests.conformance.recordings import answers, asker_for, listed
from tests.conformance.scripts import SCRIPTS


@pytest.fixture(scope="module")
def shared(new_plane: NewPlane) -> Iterator[Asker]:
    """A server for these scripts alone: others' objects would show in what spans all namespaces."""
    with new_plane() as plane:
        asker = Asker(plane)
        yield asker
        asker.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_it_answers_as_the_real_server_does(
    script: Script, shared: Asker, new_plane: NewPlane, pytestconfig: pytest.Config
) -> None:
    assert script.name in answers(), "run `python -m tests.conformance.recordings`"
    with asker_for(script, shared, new_plane) as asker:
        found = differences(script.name, answers()[script.name], asker.run(script))
    if pytestconfig.getoption("--server") == "setpoint":
        known = [one for one in listed() if fnmatchcase(script.name, one.script)]
        stale = [one for one in known if "*" not in one.script and not any(map(one.covers, found))]
        assert not stale, f"no longer different, take it out of differences.toml: {stale}"
        found = [one for one in found if not any(each.covers(one) for each in known)]
    assert not found, "\n".join(map(str, found))


def test_every_script_has_a_name_of_its_own() -> None:
    names = [script.name for script in SCRIPTS]
    assert len(set(names)) == len(names)
