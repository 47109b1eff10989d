# mypy: ignore-errors
"""A plug-in of pytest for kr8s's suite: the cluster of KUBECONFIG, where it would make one with kind.

It is loaded before the suite's own conftest, which takes the class from where this puts it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest_kind.cluster


class GivenCluster:
    """What the suite uses of pytest-kind's class."""

    def __init__(self, name: str, image: str | None = None) -> None:
        self.name, self.image = name, image
        self.kubeconfig_path = Path(os.environ["KUBECONFIG"])
        self.kubectl_path = Path(shutil.which("kubectl"))

    def create(self) -> None:
        """It is there."""

    def delete(self) -> None:
        """Whoever started it does that."""

    def kubectl(self, *arguments: str) -> str:
        command = [self.kubectl_path, f"--kubeconfig={self.kubeconfig_path}", *arguments]
        return subprocess.check_output(command, text=True)


pytest_kind.cluster.KindCluster = GivenCluster
