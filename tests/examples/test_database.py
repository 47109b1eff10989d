"""What the Database example decides: what there should be, how it goes, what goes wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from examples.database.database import (
    Database,
    DatabaseSpec,
    desired_backup,
    desired_backup_claim,
    desired_secret,
    desired_service,
    desired_statefulset,
    is_rolled_out,
    report,
    told,
)
from setpoint.api import ObjectMeta, Quantity, Time, find_condition, is_true
from setpoint.errors import (
    AnswerLost,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    RetryLater,
    ServiceUnavailable,
    SetpointError,
    TerminalError,
    TooManyRequests,
    UnknownKind,
)
from setpoint.kube.apps.v1 import StatefulSet, StatefulSetStatus

NOW = Time.of(datetime(2030, 1, 1, tzinfo=UTC))


def database(version: str = "17.2", replicas: int = 3) -> Database:
    return Database(
        metadata=ObjectMeta(name="orders", namespace="shop", uid="u", generation=2),
        spec=DatabaseSpec(version=version, replicas=replicas, storage=Quantity("5Gi"), user="clerk"),
    )


def running(ready: int, *, there: int = 3, current: str = "a", update: str = "a") -> StatefulSet:
    """Its StatefulSet, as a server has it."""
    statefulset = desired_statefulset(database())
    statefulset.metadata.generation = 4
    statefulset.status = StatefulSetStatus(
        observed_generation=4,
        replicas=there,
        ready_replicas=ready,
        current_revision=current,
        update_revision=update,
    )
    return statefulset


def test_the_secret_holds_user_and_password() -> None:
    secret = desired_secret(database(), "s3cret")
    assert secret.data == {"username": b"clerk", "password": b"s3cret"}
    assert secret.metadata.name == "orders-credentials"


def test_the_service_is_headless_and_leads_to_the_pods() -> None:
    service, statefulset = desired_service(database()), desired_statefulset(database())
    assert service.spec.cluster_ip == "None"
    assert service.spec.selector == statefulset.spec.template.metadata.labels
    assert statefulset.spec.service_name == service.metadata.name


def test_the_stateful_set_runs_the_version_with_storage_and_takes_its_password_from_the_secret() -> None:
    spec = desired_statefulset(database()).spec
    container = spec.template.spec.containers[0]
    assert (spec.replicas, container.image) == (3, "postgres:17.2")
    claim = (spec.volume_claim_templates or [])[0]
    assert claim.spec.resources is not None
    assert claim.spec.resources.requests == {"storage": Quantity("5Gi")}
    assert [mount.name for mount in container.volume_mounts or []] == [claim.metadata.name]
    sources = {each.name: each.value_from for each in container.env or []}
    password = sources["POSTGRES_PASSWORD"]
    assert password is not None
    assert password.secret_key_ref is not None
    assert (password.secret_key_ref.name, password.secret_key_ref.key) == ("orders-credentials", "password")
    assert "s3cret" not in repr(container)


def test_the_backup_is_kept_apart_and_named_after_this_very_database() -> None:
    job, claim = desired_backup(database()), desired_backup_claim(database())
    pod = job.spec.template.spec
    volume = (pod.volumes or [])[0].persistent_volume_claim
    assert volume is not None
    assert volume.claim_name == claim.metadata.name
    assert "/backup/orders-u.dump" in (pod.containers[0].command or [])[-1]
    assert pod.restart_policy == "Never"


def test_while_it_comes_up_it_is_being_created() -> None:
    one = database()
    report(one, running(1, there=2), now=NOW)
    assert (one.status.phase, one.status.ready_replicas, one.status.version) == ("Creating", 1, None)
    ready = find_condition(one.status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.message) == ("False", "1 of 3 replicas are ready")


def test_when_all_are_there_it_is_ready_and_says_how_to_connect() -> None:
    one = database()
    report(one, running(3), now=NOW)
    assert (one.status.phase, one.status.version) == ("Ready", "17.2")
    assert is_true(one.status.conditions, "Ready")
    connection = one.status.connection
    assert connection is not None
    assert (connection.host, connection.port) == ("orders.shop.svc", 5432)
    assert (connection.database, connection.secret) == ("app", "orders-credentials")


def test_afterwards_it_is_being_scaled_or_upgraded() -> None:
    one = database()
    report(one, running(3), now=NOW)
    report(one, running(2), now=NOW)
    assert one.status.phase == "Scaling"

    one.spec.version = "17.3"
    report(one, running(3, update="b"), now=NOW)
    assert (one.status.phase, one.status.version) == ("Upgrading", "17.2")
    report(one, running(3, current="b", update="b"), now=NOW)
    assert (one.status.phase, one.status.version) == ("Ready", "17.3")


def test_what_the_stateful_set_says_of_an_earlier_wish_does_not_count() -> None:
    statefulset = running(3)
    assert is_rolled_out(statefulset)
    statefulset.metadata.generation = 5
    assert not is_rolled_out(statefulset)


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnavailable("apply", "starting"),
        InternalError("apply", "a webhook is away"),
        TooManyRequests("apply", "slow down"),
        AnswerLost("apply", "cut"),
        Conflict("create", "somebody was first"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_passes_by_itself_is_waited_for(error: SetpointError) -> None:
    one = database()
    raised = told(one, error, now=NOW)
    assert isinstance(raised, RetryLater)
    assert raised.seconds == 10
    condition = find_condition(one.status.conditions, "Reconciled")
    assert condition is not None
    assert (condition.reason, condition.message) == ("Waiting", str(error))
    assert one.status.phase is None, "it may well run"


@pytest.mark.parametrize(
    "error",
    [Invalid("apply", "no"), Forbidden("apply", "you may not"), TerminalError("the Secret is gone")],
    ids=lambda error: type(error).__name__,
)
def test_what_does_not_is_told_and_left_alone(error: SetpointError) -> None:
    one = database()
    assert isinstance(told(one, error, now=NOW), TerminalError)
    assert one.status.phase == "Failed"
    assert not is_true(one.status.conditions, "Reconciled")


def test_what_nobody_knows_is_tried_again() -> None:
    error = UnknownKind("apply", "what is that")
    assert told(database(), error, now=NOW) is error
