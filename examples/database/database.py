"""Runs PostgreSQL for every Database: a Secret, a Service, a StatefulSet with storage, and a last backup.

    python examples/database/database.py                        prints the definition of the kind
    python examples/database/database.py | kubectl apply -f -   makes your cluster know it
    setpoint run examples/database/database.py --install-crds   does that too, and runs the operator

What it promises:

1. The password is made once.  If its Secret is lost while there is data, nothing is guessed: the Database is
   Failed and says so, until the Secret is back.
2. Replicas and minor versions may change at any time; storage and major version, and a step back, are
   refused by the kind's own schema.
3. A Database that is deleted is backed up first, unless it says otherwise.  The backup stays.  So that no
   way of deleting takes the data before that, nothing here belongs to the Database in the eyes of the garbage
   collector (a foreground deletion begins with what an object owns): its clean-up takes everything down.
4. What passes by itself is waited for, what does not is told and left alone until something changes, and
   what nobody knows is tried again, later each time.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

from setpoint import (
    Context,
    Operator,
    Request,
    Result,
    RetryLater,
    TerminalError,
    ignore_not_found,
    metadata_only,
)
from setpoint.api import (
    Bounds,
    Condition,
    CustomResource,
    Immutable,
    LabelSelector,
    Length,
    Model,
    ObjectMeta,
    PartialObjectMetadata,
    Pattern,
    PrinterColumn,
    Quantity,
    Rule,
    ScalePaths,
    Time,
    crd_of,
    is_true,
    set_condition,
    yaml,
)
from setpoint.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    ServerError,
    SetpointError,
    TooManyRequests,
    TransportError,
)
from setpoint.kube.apps.v1 import (
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
)
from setpoint.kube.batch.v1 import Job, JobSpec
from setpoint.kube.core.v1 import (
    Container,
    ContainerPort,
    EnvVar,
    EnvVarSource,
    ExecAction,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    PodSpec,
    PodTemplateSpec,
    Probe,
    Secret,
    SecretKeySelector,
    Service,
    ServicePort,
    ServiceSpec,
    Volume,
    VolumeMount,
    VolumeResourceRequirements,
)

PORT = 5432

# ── The kind ────────────────────────────────────────────────────────────────────────────────────────

Identifier = Annotated[str, Pattern("^[a-z_][a-z0-9_]*$"), Length(max=63), Immutable()]

Phase = Literal["Creating", "Ready", "Scaling", "Upgrading", "Failed", "Deleting"]


class DatabaseSpec(Model):
    version: Annotated[
        str,
        Pattern(r"^[0-9]{2}\.[0-9]{1,2}$"),
        Length(max=5),
        Rule(
            "self.split('.')[0] == oldSelf.split('.')[0]",
            message="another major version cannot read the data: dump it, and restore it into a new Database",
        ),
        Rule(
            "int(self.split('.')[1]) >= int(oldSelf.split('.')[1])",
            message="PostgreSQL has no way back to an earlier version",
        ),
    ]
    """Of PostgreSQL, major and minor: ``17.2``."""
    replicas: Annotated[int, Bounds(ge=1, le=9)] = 1
    storage: Annotated[Quantity, Immutable()] = Quantity("1Gi")
    """Of each replica; a StatefulSet cannot change it."""
    database: Identifier = "app"
    user: Identifier = "app"
    final_backup: bool = True
    """Whether to back up before the Database goes."""


class Connection(Model):
    host: str
    port: int = PORT
    database: str
    secret: str
    """Holds ``username`` and ``password``."""


class DatabaseStatus(Model):
    phase: Phase | None = None
    replicas: int = 0
    ready_replicas: int = 0
    version: str | None = None
    """Which every replica runs."""
    connection: Connection | None = None
    conditions: list[Condition] = []


class Database(
    CustomResource,
    group="demo.setpoint.dev",
    version="v1",
    short_names=["db"],
    scale=ScalePaths(),
    printer_columns=[
        PrinterColumn("Version", ".status.version"),
        PrinterColumn("Ready", ".status.readyReplicas"),
        PrinterColumn("Wanted", ".spec.replicas"),
        PrinterColumn("Phase", ".status.phase"),
    ],
    rules=[
        Rule(
            "self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",
            message="its Service and its pods are named after it: at most 40 of a-z, 0-9 and '-'",
        )
    ],
):
    """A PostgreSQL database: a version, how many replicas, and how much each may store."""

    spec: DatabaseSpec
    status: DatabaseStatus = DatabaseStatus()


# ── What there should be ────────────────────────────────────────────────────────────────────────────


def named(database: Database, suffix: str = "") -> ObjectMeta:
    return ObjectMeta(
        name=f"{database.metadata.name}{suffix}",
        namespace=database.metadata.namespace,
        labels=labels_of(database),
    )


def labels_of(database: Database) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "postgresql",
        "app.kubernetes.io/instance": database.metadata.name or "",
        "app.kubernetes.io/managed-by": "database-operator",
    }


def desired_secret(database: Database, password: str) -> Secret:
    data = {"username": database.spec.user.encode(), "password": password.encode()}
    return Secret(metadata=named(database, "-credentials"), type="Opaque", data=data)


def desired_service(database: Database) -> Service:
    """Headless: its pods have names of their own, and clients choose."""
    return Service(
        metadata=named(database),
        spec=ServiceSpec(
            cluster_ip="None",
            selector=labels_of(database),
            ports=[ServicePort(name="postgresql", port=PORT, target_port="postgresql")],
        ),
    )


def desired_statefulset(database: Database) -> StatefulSet:
    postgres = Container(
        name="postgresql",
        image=f"postgres:{database.spec.version}",
        ports=[ContainerPort(name="postgresql", container_port=PORT)],
        env=[
            EnvVar(name="POSTGRES_DB", value=database.spec.database),
            from_secret("POSTGRES_USER", database, "username"),
            from_secret("POSTGRES_PASSWORD", database, "password"),
            EnvVar(
                name="PGDATA", value="/var/lib/postgresql/data/pgdata"
            ),  # not the mount: lost+found is there
        ],
        readiness_probe=Probe(
            exec=ExecAction(command=["pg_isready", "--dbname", database.spec.database]), period_seconds=5
        ),
        volume_mounts=[VolumeMount(name="data", mount_path="/var/lib/postgresql/data")],
    )
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="data"), spec=storage(database))
    return StatefulSet(
        metadata=named(database),
        spec=StatefulSetSpec(
            replicas=database.spec.replicas,
            service_name=database.metadata.name,
            selector=LabelSelector(match_labels=labels_of(database)),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels_of(database)), spec=PodSpec(containers=[postgres])
            ),
            volume_claim_templates=[claim],
            # The data goes with the Database, after the backup; a replica that returns finds its own.
            persistent_volume_claim_retention_policy=StatefulSetPersistentVolumeClaimRetentionPolicy(
                when_deleted="Delete", when_scaled="Retain"
            ),
        ),
    )


def desired_backup_claim(database: Database) -> PersistentVolumeClaim:
    """Where backups are kept.  It belongs to no Database, for it must outlive this one."""
    return PersistentVolumeClaim(metadata=named(database, "-backup"), spec=storage(database))


def desired_backup(database: Database) -> Job:
    file = f"/backup/{database.metadata.name}-{database.metadata.uid}.dump"
    dump = Container(
        name="backup",
        image=f"postgres:{database.spec.version}",
        # Renamed when it is whole: half a backup must not look like one.
        command=["sh", "-c", f"pg_dump --format=custom --file={file}.part && mv {file}.part {file}"],
        env=[
            EnvVar(name="PGHOST", value=f"{database.metadata.name}-0.{host_of(database)}"),
            EnvVar(name="PGDATABASE", value=database.spec.database),
            from_secret("PGUSER", database, "username"),
            from_secret("PGPASSWORD", database, "password"),
        ],
        volume_mounts=[VolumeMount(name="backup", mount_path="/backup")],
    )
    claim = PersistentVolumeClaimVolumeSource(claim_name=f"{database.metadata.name}-backup")
    return Job(
        metadata=named(database, "-final-backup"),
        spec=JobSpec(
            backoff_limit=1,
            template=PodTemplateSpec(
                spec=PodSpec(
                    containers=[dump],
                    restart_policy="Never",
                    volumes=[Volume(name="backup", persistent_volume_claim=claim)],
                )
            ),
        ),
    )


def storage(database: Database) -> PersistentVolumeClaimSpec:
    return PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        resources=VolumeResourceRequirements(requests={"storage": database.spec.storage}),
    )


def from_secret(variable: str, database: Database, key: str) -> EnvVar:
    selector = SecretKeySelector(name=f"{database.metadata.name}-credentials", key=key)
    return EnvVar(name=variable, value_from=EnvVarSource(secret_key_ref=selector))


def host_of(database: Database) -> str:
    return f"{database.metadata.name}.{database.metadata.namespace}.svc"


# ── How it goes ─────────────────────────────────────────────────────────────────────────────────────


def report(database: Database, statefulset: StatefulSet, *, now: Time) -> None:
    """Put into the status what the StatefulSet says."""
    status, seen = database.status, statefulset.status
    status.replicas, status.ready_replicas = seen.replicas, seen.ready_replicas or 0
    status.connection = Connection(
        host=host_of(database),
        database=database.spec.database,
        secret=f"{database.metadata.name}-credentials",
    )
    if is_rolled_out(statefulset):
        status.version, status.phase = database.spec.version, "Ready"
    elif status.version is None:
        status.phase = "Creating"
    elif status.version != database.spec.version:
        status.phase = "Upgrading"
    else:
        status.phase = "Scaling"
    ready = f"{status.ready_replicas} of {database.spec.replicas} replicas are ready"
    tell(database, "Ready", status.phase == "Ready", status.phase, ready, now=now)


def is_rolled_out(statefulset: StatefulSet) -> bool:
    """Whether every replica there should be is there, ready, and as it should be."""
    wanted, seen = statefulset.spec.replicas, statefulset.status
    return (
        (seen.observed_generation or 0) >= (statefulset.metadata.generation or 0)
        and seen.current_revision == seen.update_revision
        and seen.replicas == wanted
        and seen.ready_replicas == wanted
    )


def tell(database: Database, kind: str, holds: bool, reason: str, message: str = "", *, now: Time) -> None:
    condition = Condition(
        type=kind,
        status="True" if holds else "False",
        reason=reason,
        message=message,
        observed_generation=database.metadata.generation,
    )
    set_condition(database.status.conditions, condition, now=now)


# ── What goes wrong ─────────────────────────────────────────────────────────────────────────────────


def is_transient(error: SetpointError) -> bool:
    """It passes by itself: the server is away or busy, or somebody else wrote first."""
    return isinstance(error, TransportError | ServerError | TooManyRequests | Conflict | RetryLater)


def is_permanent(error: SetpointError) -> bool:
    """It does not, however often one asks: somebody must change something."""
    return isinstance(error, Invalid | BadRequest | Forbidden | TerminalError)


def told(database: Database, error: SetpointError, *, now: Time) -> SetpointError:
    """Put a failure into the status; the error to raise for it, which decides what happens next."""
    if is_transient(error):
        tell(database, "Reconciled", False, "Waiting", str(error), now=now)
        return error if isinstance(error, RetryLater) else RetryLater(10, str(error))
    if is_permanent(error):
        database.status.phase = "Failed"
        tell(database, "Reconciled", False, "Failed", str(error), now=now)
        return error if isinstance(error, TerminalError) else TerminalError(str(error))
    tell(database, "Reconciled", False, "Unknown", str(error), now=now)
    return error  # tried again, later each time


# ── The operator ────────────────────────────────────────────────────────────────────────────────────

operator = Operator("database-operator")


def database_of(part: Service | StatefulSet | Job) -> list[Request]:
    """Which Database it is a part of: by its labels, for it belongs to nobody."""
    labels = part.metadata.labels or {}
    is_ours = labels.get("app.kubernetes.io/managed-by") == "database-operator"
    name = labels.get("app.kubernetes.io/instance", "")
    return [Request(part.metadata.namespace or "", name)] if is_ours else []


def database_of_password(secret: PartialObjectMetadata) -> list[Request]:
    """Whose password it is: by its name, for one that was restored may not say whose it is."""
    name, suffix, _ = (secret.metadata.name or "").rpartition("-credentials")
    return [Request(secret.metadata.namespace or "", name)] if suffix else []


@operator.controller(
    Database,
    watches={
        Service: database_of,
        StatefulSet: database_of,
        Job: database_of,
        metadata_only(Secret): database_of_password,
    },
)
async def reconcile(database: Database, ctx: Context) -> None:
    try:
        await ensure_secret(database, ctx)
        await ctx.apply(desired_service(database), owned=False)
        statefulset = await ctx.apply(desired_statefulset(database), owned=False)
    except SetpointError as error:
        raise told(database, error, now=ctx.now()) from error
    tell(database, "Reconciled", True, "AsDesired", now=ctx.now())
    report(database, statefulset, now=ctx.now())


async def ensure_secret(database: Database, ctx: Context) -> None:
    """See that there is a password.  It is made with ``create``: one that is there is never replaced."""
    name = f"{database.metadata.name}-credentials"
    if await ignore_not_found(ctx.get(metadata_only(Secret), name)) is not None:
        return
    if await has_data(database, ctx):
        raise TerminalError(
            f"Secret {name} is gone, and there is data that only its password opens: restore it from a backup"
        )
    await ctx.client.create(desired_secret(database, secrets.token_urlsafe(24)))


async def has_data(database: Database, ctx: Context) -> bool:
    """Whether PostgreSQL may ever have started.  Asked of the server: this must not be old news."""
    live, namespace = ctx.client.live, database.metadata.namespace
    for kind, name in (
        (metadata_only(StatefulSet), f"{database.metadata.name}"),
        (metadata_only(PersistentVolumeClaim), f"data-{database.metadata.name}-0"),
    ):
        if await ignore_not_found(live.get(kind, name, namespace=namespace)) is not None:
            return True
    return False


@operator.finalizer(Database)
async def clean_up(database: Database, ctx: Context) -> Result | None:
    """Runs when a Database is deleted, as often as it takes; it goes when this returns None."""
    database.status.phase = "Deleting"
    is_wanted = database.spec.final_backup and not is_true(database.status.conditions, "BackedUp")
    if is_wanted and await has_data(database, ctx):
        return await back_up(database, ctx)
    for kind, suffix in ((StatefulSet, ""), (Service, ""), (Secret, "-credentials"), (Job, "-final-backup")):
        await ctx.delete(metadata_only(kind), f"{database.metadata.name}{suffix}")
    return None


async def back_up(database: Database, ctx: Context) -> Result:
    """Have a Job make the last backup.  That it is made is written down before anything is taken down."""
    if await ignore_not_found(ctx.get(PersistentVolumeClaim, f"{database.metadata.name}-backup")) is None:
        await ctx.client.create(desired_backup_claim(database))
    job = await ctx.apply(desired_backup(database), owned=False)
    if is_true(job.status.conditions, "Complete"):
        tell(database, "BackedUp", True, "Complete", now=ctx.now())
        return Result(requeue_after=0)
    if is_true(job.status.conditions, "Failed"):
        job_name = f"Job {job.metadata.name}"
        tell(database, "BackedUp", False, "Failed", f"{job_name} failed", now=ctx.now())
        raise TerminalError(
            f"the last backup failed, see {job_name}; delete it to try again, or set finalBackup to false"
        )
    tell(database, "BackedUp", False, "Running", now=ctx.now())
    raise RetryLater(60, "the last backup is running")  # the Job's end brings us here sooner


if __name__ == "__main__":
    print(yaml.dump(crd_of(Database)), end="")
