# mypy: ignore-errors
"""A plug-in of pytest for kubernetes_asyncio's suite, which is in its package, but is not published."""

from __future__ import annotations

from pathlib import Path

import kubernetes_asyncio

kubernetes_asyncio.__path__.append(str(Path.cwd() / "kubernetes_asyncio"))
