"""The programs that README.md and docs/ show, as they stand in the pages.

The ``python`` blocks of a page are one program, top to bottom; a ``pycon`` block is a session.  A block that
awaits needs a server, and finds a ``client``.  Run by tests/test_docs.py and tests/conformance/test_docs.py.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from inspect import CO_COROUTINE
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One program text in a page; ``line`` is where it begins there."""

    page: Path
    language: str
    text: str
    line: int

    def compile(self) -> CodeType:
        """With the line numbers of the page, so that a failure points into it."""
        lines = "\n" * (self.line - 1) + self.text
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code: CodeType = compile(lines, str(self.page), "exec", flags, dont_inherit=True)
        return code

    @property
    def awaits(self) -> bool:
        return bool(self.compile().co_flags & CO_COROUTINE)


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(page, found[1], found[2], text.count("\n", 0, found.start()) + 2)
        for found in _BLOCK.finditer(text)
    ]


def program(page: Path) -> str:
    """The page's blocks as one module; each that awaits becomes the body of a function."""
    parts = ["from setpoint import Client as _Client", ""]
    for block in blocks(page):
        if block.language != "python":
            continue
        if block.awaits:
            head = f"async def _line_{block.line}(client: _Client) -> None:"
            parts += ["", "", head, textwrap.indent(block.text, "    ")]
        else:
            parts.append(block.text)
    return "\n".join(parts)
