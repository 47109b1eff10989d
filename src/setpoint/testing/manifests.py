"""Says which objects are meant where somebody gives a file, a folder, YAML text or the objects themselves.

As ``kubectl apply -f`` takes them: a file may hold several documents, a folder several files (in the order of
their names), and a List counts as what is in it.  Text is told from a path by its line breaks, or by the
brace that JSON begins with.  What holds no object is refused, and what is none, with its place.

Read by ``proof/lab.py`` and ``cli/developing.py``, which apply them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from setpoint.api import yaml
from setpoint.api.model import Object

Manifest: TypeAlias = Object | dict[str, Any] | Path | str

_ENDINGS = {".json", ".yaml", ".yml"}  # those that kubectl reads in a folder


def objects_in(manifest: Manifest, folder: Path = Path()) -> Sequence[Object | dict[str, Any]]:
    """What is described there; a path that is not absolute begins in ``folder``."""
    if isinstance(manifest, Object):
        return [manifest]
    if isinstance(manifest, dict):
        return list(_whole("apply", manifest))
    if isinstance(manifest, str) and ("\n" in manifest or manifest.lstrip().startswith("{")):
        return list(_documents("apply YAML text", manifest))
    return read_manifest(folder / manifest)


def read_manifest(path: Path) -> list[dict[str, Any]]:
    """What a file describes, or the files of a folder."""
    files = [path]
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in _ENDINGS)
    found = [each for file in files for each in _documents(f"apply {file}", file.read_bytes())]
    if not found:
        raise ValueError(f"apply {path}: there is no object in it")
    return found


def _documents(doing: str, text: str | bytes) -> Iterator[dict[str, Any]]:
    try:
        documents = yaml.load_all(text)
    except ValueError as error:
        raise ValueError(f"{doing}: {error}") from error
    for number, document in enumerate(documents, 1):
        yield from _whole(f"{doing}: document {number}", document)


def _whole(doing: str, document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
        raise ValueError(f'{doing}: an object needs "apiVersion" and "kind"')
    if document["kind"] == "List":
        for each in document.get("items") or ():
            yield from _whole(doing, each)
    else:
        yield document
