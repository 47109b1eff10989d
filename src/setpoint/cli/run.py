"""``setpoint run OPERATOR.py``: runs the operators of a file on the cluster that kubeconfig or the pod names.

The file is imported as ``loading.py`` says; every ``Operator`` in it is run, all by one manager.  What runs,
and how, is in ``manager/``; how the process ends, in ``running.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

_HELP = """Run the operators of a Python file.

OPERATOR.py is imported, and every Operator in it is run, until SIGTERM or Ctrl-C; a second one ends the
process at once.

\b
    setpoint run webapp.py --install-crds
    setpoint run webapp.py --namespace shop --leader-elect --health :8081 --log-format json \\
        --metrics :8443 --metrics-secure
"""


@click.command(help=_HELP)
@click.argument("operator", metavar="OPERATOR.py", type=click.Path(path_type=Path))
@click.option(
    "-n", "--namespace", "namespaces", multiple=True, help="Watch only this namespace; several may be given."
)
@click.option("--leader-elect", is_flag=True, help="Of several replicas, have one lead; by a Lease.")
@click.option("--lease-namespace", help="Where the Lease is; the context's or pod's own unless given.")
@click.option(
    "--metrics",
    metavar="ADDR",
    default="",
    help="Serve /metrics there: host:port, or :port for every interface.",
)
@click.option(
    "--metrics-secure",
    is_flag=True,
    help="Serve /metrics over TLS, to those whom the API server lets get it.",
)
@click.option(
    "--metrics-cert-path",
    "metrics_certificate",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where tls.crt and tls.key for that are; a certificate is made unless given.",
)
@click.option("--health", metavar="ADDR", default="", help="Serve /healthz and /readyz there.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How log lines look.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Which log lines there are.",
)
@click.option(
    "--graceful-shutdown",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long work in hand may take when told to stop; 30 unless given.",
)
@click.option(
    "--install-crds", is_flag=True, help="Install the CustomResourceDefinitions of its kinds first."
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where the clusters are described.")
@click.option("--context", help="Which of them to use; the current one unless given.")
def run(
    *,
    operator: Path,
    namespaces: tuple[str, ...],
    lease_namespace: str | None,
    metrics: str,
    metrics_secure: bool,
    metrics_certificate: Path | None,
    health: str,
    log_format: Literal["text", "json"],
    log_level: str,
    graceful_shutdown: float | None,
    kubeconfig: Path | None,
    context: str | None,
    leader_elect: bool,
    install_crds: bool,
) -> None:
    from setpoint.cli.loading import load  # noqa: PLC0415 - --help and completion need none of this
    from setpoint.cli.running import operate, run_to_the_end  # noqa: PLC0415
    from setpoint.client.client import Client  # noqa: PLC0415
    from setpoint.client.config import Config  # noqa: PLC0415
    from setpoint.manager.lease_state import LeaderElection  # noqa: PLC0415
    from setpoint.manager.logs import configure  # noqa: PLC0415
    from setpoint.manager.manager import GRACEFUL_SHUTDOWN, Manager  # noqa: PLC0415

    operators = load(operator).operators
    configure(log_format, level=log_level.upper())
    name = operators[0].name
    election = LeaderElection(name, lease_namespace or "") if leader_elect else None
    try:
        client = Client(Config.load(kubeconfig, context), field_manager=name)
        manager = Manager(
            client=client,
            name=name,
            namespaces=namespaces or None,
            leader_election=election,
            metrics_address=metrics,
            metrics_secure=metrics_secure,
            metrics_certificate=metrics_certificate,
            health_address=health,
            graceful_shutdown=GRACEFUL_SHUTDOWN if graceful_shutdown is None else graceful_shutdown,
            why_socket=True,
        )
        if not manager.probes.is_wanted:
            manager.add(manager.probes)  # it serves nothing, and logs where the loop is blocked
        for each in operators:
            each.add_to(manager)
    except ValueError as error:  # a wrong address, two controllers of one name
        raise click.ClickException(str(error)) from error
    run_to_the_end(operate(client, manager, operators, install_crds=install_crds))
