"""``setpoint models``: Python classes for the kinds that a server has.

Asks the server for its OpenAPI documents and its resources, and writes one module for each group and version.
What the classes are is decided in ``api/openapi.py``, how they look in ``cli/source.py``; this file asks,
chooses the groups and writes the files.  ``make models`` makes ``setpoint.kube`` with the same command.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from setpoint.api.openapi import Document, GroupVersion, Struct, is_builtin, read, stable
from setpoint.cli.source import write
from setpoint.client.client import Client
from setpoint.client.config import Config
from setpoint.errors import BadAnswer, ServiceUnavailable

_HELP = """Write typed models of the custom resources installed in a cluster.

Each GROUP[/VERSION] becomes a module of the package that --output names.  Without any, every group that
does not come with Kubernetes is taken.

\b
    setpoint models --output shop/models
    setpoint models --output shop/models cert-manager.io monitoring.coreos.com/v1

\b
    from shop.models.cert_manager_io.v1 import Certificate

Run it again when a CustomResourceDefinition has changed: the modules are written anew.
"""


@click.command(help=_HELP)
@click.argument("groups", nargs=-1, metavar="[GROUP[/VERSION]]...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The package to write to; made if it is not there.",
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where the clusters are described.")
@click.option("--context", help="Which of them to ask; the current one unless given.")
@click.option("--builtin", is_flag=True, hidden=True, help="Write the package setpoint.kube.")
def models(
    groups: tuple[str, ...], output: Path, kubeconfig: Path | None, context: str | None, *, builtin: bool
) -> None:
    structs, again = asyncio.run(_ask(groups, kubeconfig, context, builtin=builtin))
    written = write(structs, again)
    if not builtin:
        written = {"__init__.py": '"""Models of custom resources."""\n'} | written
    _save(written, output)
    for line in _summary(structs, output):
        click.echo(line)


async def _ask(
    groups: tuple[str, ...], kubeconfig: Path | None, context: str | None, *, builtin: bool
) -> tuple[list[Struct], str]:
    """What the classes are, by the server's own account, and how to have them made again."""
    async with Client(Config.load(kubeconfig, context)) as client:
        index = await index_of(client)
        wanted = _chosen(index, groups)
        documents = await documents_of(client, {served: index[served] for served in wanted or index})
        if down := wanted - documents.keys():
            raise click.ClickException(f"the server of {_names(down)} is down: try again when it is back")
        resources = await client.discovery.resources()
        if builtin:
            version = json.loads(await client.fetch("/version"))["gitVersion"]
            wanted = {served for served, document in documents.items() if _is_ours(served, document)}
            again = f"Of Kubernetes {version}; made anew by `make models`."
        else:
            wanted = wanted or _custom(documents)
            again = "Run it again when a CustomResourceDefinition has changed."
        return read(documents.values(), resources, wanted, builtin=builtin), again


async def index_of(client: Client) -> dict[GroupVersion, str]:
    """Every group and version that the server describes, and the path of its description."""
    path = "/openapi/v3"
    match _parsed(path, await client.fetch(path)):
        case {"paths": dict() as paths}:
            return dict(_indexed(paths))
    raise BadAnswer(f"get {path}", "not an index of OpenAPI documents")


def _indexed(paths: dict[str, Any]) -> Iterator[tuple[GroupVersion, str]]:
    for path, where in sorted(paths.items()):
        if not re.fullmatch(r"[A-Za-z0-9./-]+", path):
            continue  # no group has such a name
        match path.split("/"), where:
            case _, {"serverRelativeURL": str() as url} if not url.startswith("/"):
                continue
            case ["api", version], {"serverRelativeURL": str() as url}:
                yield ("", version), url
            case ["apis", group, version], {"serverRelativeURL": str() as url}:
                yield (group, version), url


async def documents_of(client: Client, index: Mapping[GroupVersion, str]) -> dict[GroupVersion, Document]:
    """The description of every group and version in ``index``; one whose own server is down is left out."""
    found: dict[GroupVersion, Document] = {}
    for served, path in index.items():
        try:
            # Without the hash, which would be of an older document if a CRD was installed meanwhile.
            body = await client.fetch(path.partition("?")[0])
        except ServiceUnavailable as error:
            click.echo(f"Left out: {error}", err=True)
            continue
        match _parsed(path, body):
            case {"components": {"schemas": dict()}} as document:
                found[served] = document
            case _:
                raise BadAnswer(f"get {path}", "not an OpenAPI document with schemas")
    return found


def _parsed(path: str, body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise BadAnswer(f"get {path}", f"not JSON: {error}") from error


def _chosen(index: Iterable[GroupVersion], groups: Iterable[str]) -> set[GroupVersion]:
    """The groups and versions asked for by name."""
    wanted: set[GroupVersion] = set()
    for asked in groups:
        group, _, version = asked.partition("/")
        matching = {served for served in index if _matches(served, group, version)}
        if not matching:
            raise click.ClickException(f"the server has no group {asked}; it has {_names(index)}")
        wanted |= matching
    return wanted


def _custom(documents: Mapping[GroupVersion, Document]) -> set[GroupVersion]:
    """The groups and versions that do not come with Kubernetes."""
    found = {served for served, document in documents.items() if not is_builtin(document, served)}
    if not found:
        raise click.ClickException(
            "the server has only what comes with Kubernetes: install a CustomResourceDefinition first, "
            f"or name some of its groups: {_names(documents)}"
        )
    return found


def _is_ours(served: GroupVersion, document: Document) -> bool:
    return stable(served[1]) and is_builtin(document, served)


def _matches(served: GroupVersion, group: str, version: str) -> bool:
    return served[0] == ("" if group == "core" else group) and version in {"", served[1]}


def _names(index: Iterable[GroupVersion]) -> str:
    return ", ".join(sorted({group or "core" for group, _ in index}))


def _save(files: dict[str, str], output: Path) -> None:
    for name, text in files.items():
        file = output / name
        if file.name == "__init__.py" and file.exists():
            continue  # the user's own words may be in it
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"write {file}: {error.strerror}") from error


def _summary(structs: Iterable[Struct], output: Path) -> Iterable[str]:
    kinds: dict[str, list[str]] = {}
    for struct in structs:
        module = "/".join(struct.type.module.split(".")[-2:])
        kinds.setdefault(module, []).extend([struct.type.name] if struct.gvk else [])
    return (f"{output / module}.py  {', '.join(names)}" for module, names in kinds.items())
