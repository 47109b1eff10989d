"""What the pytest plugin promises, each by a run of pytest with nothing configured."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.pages import ROOT, program

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "testing.md"

OPERATOR = """
    from setpoint import Context, Operator
    from setpoint.api import CustomResource, Model, ObjectMeta
    from setpoint.kube.core.v1 import ConfigMap
    from setpoint.testing import Lab

    class Thing(CustomResource, group="test.setpoint.dev", version="v1"):
        spec: Model = Model()

    def thing(name="t"):
        return Thing(metadata=ObjectMeta(name=name))

    def make():
        operator = Operator("things")

        @operator.controller(Thing, owns=[ConfigMap])
        async def reconcile(thing: Thing, ctx: Context) -> None:
            await ctx.apply(ConfigMap(metadata=ObjectMeta(name=thing.metadata.name), data={"a": "b"}))

        return operator
"""


@pytest.mark.slow
def test_every_fixture_does_what_the_page_says(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(program(PAGE))
    (manifest,) = re.findall(r"```yaml\n# greeting.yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (pytester.path / "greeting.yaml").write_text(manifest)
    without = pytester.runpytest("-k", "not kube")
    without.assert_outcomes(passed=5, failed=1, deselected=1)
    without.stdout.fnmatch_lines("*golden/greeting.yaml: it is not there; pytest --setpoint-update writes it")
    assert not (pytester.path / "golden").exists()
    pytester.runpytest("--setpoint-update", "-k", "not kube").assert_outcomes(passed=6, deselected=1)
    assert "configmaps default/hi:" in (pytester.path / "golden" / "greeting.yaml").read_text()
    pytester.runpytest("-k", "not kube").assert_outcomes(passed=6, deselected=1)


def test_a_cloud_of_the_module_is_empty_when_a_test_begins_and_known_to_its_cluster(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        outside="""
    from setpoint.testing import Cloud

    dns = Cloud("dns")
    """,
        test_it=f"""{OPERATOR}
    import pytest
    from outside import dns
    from setpoint.testing.proof import At, Hide

    def registering():
        operator = Operator("things")

        @operator.controller(Thing)
        async def reconcile(thing: Thing, ctx: Context) -> None:
            if await dns.get(thing.metadata.name) is None:
                await dns.create(thing.metadata.name)

        return operator

    @pytest.mark.parametrize("time", ["first", "second"])
    def test_that_it_is_made(time, cluster):
        assert not dns.things
        cluster.run(registering)
        cluster.create(thing())
        assert "create dns t" in cluster.story()
        assert list(dns.things) == ["t"]

    def test_that_it_can_be_hidden(cluster, fault):
        fault(Hide(at=At("create dns t"), seconds=1))
        cluster.run(registering)
        cluster.create(thing())
    """,
    )
    pytester.runpytest().assert_outcomes(passed=3)


def test_a_failed_assert_prints_what_happened_to_what_it_was_about(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        OPERATOR,
        """
    def test_wrong(cluster, operator):
        operator(make)
        cluster.create(thing())
        cluster.create(thing("unconcerned"))
        assert cluster.get(ConfigMap, "t").data == {"a": "c"}
    """,
    )
    told = pytester.runpytest()
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(
        [
            "*what happened in `cluster`*",
            "*user *operator *view *server*",
            "*create Thing t*",
            "*ADDED configmaps*",
        ]
    )
    story = told.stdout.str().split("what happened in `cluster`")[1]
    assert story.count("user  ") == 1, "once, whichever names the cluster has"
    assert "unconcerned" not in story


def test_so_does_a_fixture_that_fails_before_the_test_begins(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        OPERATOR,
        """
    import pytest

    @pytest.fixture
    def wrong(cluster):
        cluster.create(ConfigMap(metadata=ObjectMeta(name="first")))
        raise RuntimeError("no")

    def test_it(wrong): ...
    """,
    )
    told = pytester.runpytest()
    told.assert_outcomes(errors=1)
    told.stdout.fnmatch_lines(["*what happened in `cluster`*", "*create ConfigMap first*"])


def test_what_passes_is_skipped_or_has_no_cluster_prints_no_story(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
    import pytest

    def test_passes(cluster): ...

    def test_is_skipped(cluster):
        pytest.skip("not today")

    def test_has_none():
        assert False
    """
    )
    told = pytester.runpytest()
    told.assert_outcomes(passed=1, skipped=1, failed=1)
    told.stdout.no_fnmatch_line("*what happened in*")


def test_an_assertion_of_the_cluster_points_into_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
    from setpoint.kube.core.v1 import ConfigMap

    def test_waits(cluster):
        cluster.wait_for(ConfigMap, "c")
    """
    )
    told = pytester.runpytest()
    told.stdout.fnmatch_lines(
        [">*cluster.wait_for(ConfigMap, *", "E*ConfigMap c is Ready: not so within 30 s*"]
    )
    told.stdout.no_fnmatch_line("*def look_until*")


def test_a_test_whose_fault_did_not_strike_has_failed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        OPERATOR,
        """
    from setpoint.testing.proof import At, Crash

    def test_strikes(cluster, fault):
        cluster.run(make)
        fault(Crash(at=At("apply configmaps default/t")))
        cluster.create(thing())

    def test_misses(cluster, fault):
        cluster.run(make)
        fault(Crash(at=At("apply configmaps default/t", 7)))
        cluster.create(thing())
    """,
    )
    told = pytester.runpytest()
    told.assert_outcomes(passed=1, failed=1)
    told.stdout.fnmatch_lines(
        [
            "E*what it waits for did not happen, or was refused: crash before apply configmaps *",
            "*what happened in*",
        ]
    )


def test_a_cluster_of_the_projects_own_is_what_the_others_act_on(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        OPERATOR,
        """
    import pytest

    @pytest.fixture
    def cluster():
        with Lab(seed=7) as lab:
            yield lab

    def test_it(cluster, operator, fault, freeze, eventually):
        operator(make)
        cluster.create(thing())
        assert eventually(lambda: cluster.get(ConfigMap, "t"))
        assert {each.__self__ for each in (operator, fault, freeze, eventually)} == {cluster}

    def test_fails(cluster):
        cluster.create(ConfigMap(metadata=ObjectMeta(name="first")))
        assert False
    """,
    )
    told = pytester.runpytest()
    told.assert_outcomes(passed=1, failed=1)
    told.stdout.fnmatch_lines(["*what happened in `cluster`*", "*create ConfigMap first*"])


def test_where_a_project_calls_something_else_a_cluster_ours_is_setpoint_cluster(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        """
    import pytest

    @pytest.fixture(scope="session")
    def cluster():
        return "kind"

    @pytest.fixture
    def operator():
        return "plus"
    """
    )
    pytester.makepyfile(
        OPERATOR,
        """
    def test_theirs(cluster, operator):
        assert (cluster, operator) == ("kind", "plus")

    def test_ours(cluster, setpoint_cluster, fault):
        setpoint_cluster.run(make)
        assert fault.__self__ is setpoint_cluster
        assert cluster == "kind"
    """,
    )
    pytester.runpytest().assert_outcomes(passed=2)


def test_each_test_has_a_cluster_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        OPERATOR,
        """
    import pytest

    @pytest.mark.parametrize("number", [1, 2])
    def test_it(cluster, number):
        assert cluster.list(ConfigMap) == []
        cluster.create(ConfigMap(metadata=ObjectMeta(name="c")))
    """,
    )
    pytester.runpytest("--strict-markers").assert_outcomes(passed=2)


def test_a_mark_has_each_operator_run_several_times(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        OPERATOR,
        """
    import pytest
    from setpoint.testing.proof import At, Overlap

    AT = At("apply configmaps default/t")

    @pytest.mark.cluster(replicas=2)
    def test_two(cluster, operator, fault):
        operator(make)
        fault(Overlap(at=AT))
        cluster.create(thing())
        assert cluster.get(ConfigMap, "t")

    def test_one(operator, fault):
        operator(make)
        with pytest.raises(ValueError, match="replicas=2"):
            fault(Overlap(at=AT))
    """,
    )
    pytester.runpytest("--strict-markers").assert_outcomes(passed=2)


def test_a_run_that_uses_nothing_of_it_reads_nothing_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
    import sys

    def test_fails(): assert False

    def test_ours():
        ours = {name for name in sys.modules if name.startswith("setpoint")}
        assert ours == {"setpoint", "setpoint.testing", "setpoint.testing.plugin"}
        assert "aiohttp" not in sys.modules and "msgspec" not in sys.modules
    """
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest"],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout


def test_nothing_outside_is_reached_in_a_cluster_or_in_virtual_time(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""{OPERATOR}
    import asyncio
    import socket

    import pytest

    def connect():
        socket.create_connection(("203.0.113.7", 443))

    def calling(swallows):
        operator = make()

        @operator.controller(Thing, name="calls")
        async def call(thing: Thing, ctx: Context) -> None:
            try:
                connect()
            except Exception:
                if not swallows:
                    raise

        return operator

    @pytest.mark.parametrize("swallows", [False, True])
    def test_cluster(swallows, cluster):
        cluster.run(lambda: calling(swallows))
        cluster.create(thing())

    def test_that_hides_it_too(cluster):
        cluster.run(lambda: calling(True))
        try:
            cluster.create(thing())
        except AssertionError:
            pass

    async def connects():
        await asyncio.open_connection("203.0.113.7", 443)

    async def hides():
        try:
            await connects()
        except Exception:
            pass

    @pytest.mark.parametrize("work", [connects, hides])
    def test_virtual_time(work, virtual_time):
        virtual_time(work())

    def test_of_its_own_a_test_connects(cluster, virtual_time):
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()

    @pytest.mark.cluster(allow_program=["true"])
    def test_allowed(virtual_time):
        async def runs():
            import subprocess
            subprocess.run(["true"], check=True)

        virtual_time(runs())
    """
    )
    ran = pytester.runpytest()
    ran.assert_outcomes(passed=2, failed=5)
    ran.stdout.fnmatch_lines(["*connect to 203.0.113.7:443 (test_nothing_outside*setpoint.testing.Cloud*"])
