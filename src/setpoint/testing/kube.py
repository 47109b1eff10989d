"""Runs a real Kubernetes control plane: etcd, kube-apiserver and, if asked, kube-controller-manager.

Promises:

1. Started means usable: every part said it was ready, within the deadline.
2. A start that fails says which part failed and how its log ended, and keeps the logs.
3. Nothing outlives its owner.  ``stop`` ends every process; if this process dies without calling it, even by
   SIGKILL, its children are killed all the same.
4. Nobody else on the machine gets in: both servers listen on loopback only, speak TLS only, and know only
   clients with a certificate of this control plane's own authorities, which die with it.
5. Without the controller manager there are no controllers: nothing is garbage collected, a deleted namespace
   stays Terminating, a Deployment makes no pods.

Everything here blocks; ``async with`` does the blocking in a thread.  Not here: building the programs
(``make kube``) and Setpoint's own client.  HTTP is the standard library's, so that this file can be
trusted where the client is in question.  Driven by ``plugin.py``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import os
import platform
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from setpoint.errors import SetpointError
from setpoint.net.tls import Authority, Identity

# What `make kube` builds; tests/kube/go.mod says the same.
KUBERNETES = "v1.37.1"
ETCD = "v3.7.0"

_LOOPBACK = "127.0.0.1"
_GRACE = 10.0  # seconds a process has to end after SIGTERM, before SIGKILL
_LOOK_EVERY = 0.05  # seconds between two looks at whether a part is ready
_PORT_ATTEMPTS = 5

# Whoever may connect may ask for health, and for nothing else.
_AUTHENTICATION = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "anonymous": {
        "enabled": True,
        "conditions": [{"path": path} for path in ("/livez", "/readyz", "/healthz")],
    },
}


class StartFailed(SetpointError):
    """The control plane's programs are missing, or one of them did not get ready."""


# --- the programs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Binaries:
    """The folder that holds the programs."""

    folder: Path

    ALWAYS: ClassVar[tuple[str, ...]] = ("etcd", "kube-apiserver", "kubectl")
    CONTROLLER_MANAGER: ClassVar[str] = "kube-controller-manager"  # KUBEBUILDER_ASSETS mostly lacks it

    @property
    def etcd(self) -> Path:
        return self.folder / "etcd"

    @property
    def kube_apiserver(self) -> Path:
        return self.folder / "kube-apiserver"

    @property
    def kube_controller_manager(self) -> Path:
        return self.folder / self.CONTROLLER_MANAGER

    @property
    def kubectl(self) -> Path:
        return self.folder / "kubectl"


def binaries(*, controller_manager: bool = False) -> Binaries:
    """Find the programs: in ``KUBEBUILDER_ASSETS``, else where ``make kube`` puts them."""
    wanted = [*Binaries.ALWAYS, *([Binaries.CONTROLLER_MANAGER] if controller_manager else [])]
    looked = []
    for folder in _folders():
        missing = [name for name in wanted if not os.access(folder / name, os.X_OK)]
        if not missing:
            return Binaries(folder)
        looked.append(f"{folder} lacks {', '.join(missing)}")
    raise StartFailed(
        "find the control plane's programs",
        f"{'; '.join(looked)}. Run `make kube` in Setpoint's source tree (it needs Go; with "
        f"KUBEBUILDER_ASSETS unset, if that folder lacks something), or set KUBEBUILDER_ASSETS to a folder "
        f"that holds {', '.join(wanted)}.",
    )


def _folders() -> list[Path]:
    """Where to look, first things first; ``tests/kube/build`` names the second the same way."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("SETPOINT_KUBE") or cache / "setpoint" / "kube")
    machine = platform.machine()
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    built = root / f"{KUBERNETES}-{ETCD}-{sys.platform}-{arch}"
    return [*([Path(assets)] if assets else []), built]


# --- the control plane -------------------------------------------------------------------------------------


class ControlPlane:
    """A control plane of one's own, as a context manager, plain or async.

        with ControlPlane() as kube:
            subprocess.run([kube.binaries.kubectl, "--kubeconfig", kube.kubeconfig, "get", "namespaces"])

    ``api_server_args`` are added to kube-apiserver's flags, ``etcd_args`` to etcd's, and win over ours.
    ``pids`` has the processes by the names of their programs.  Attributes that describe the
    running servers (``url``, ``kubeconfig``, …) have a meaning only between ``start`` and ``stop``.
    """

    def __init__(
        self,
        *,
        controller_manager: bool = False,
        api_server_args: Sequence[str] = (),
        etcd_args: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> None:
        self.controller_manager = controller_manager
        self.api_server_args = tuple(api_server_args)
        self.etcd_args = tuple(etcd_args)
        self.timeout = timeout
        self._etcd_port = self._api_port = 0
        self._given_up = threading.Event()
        self._group: _Group | None = None  # there is one exactly while we are started
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __repr__(self) -> str:
        state = f"at {self.url}" if self._group else "stopped"
        return f"<ControlPlane {state}, running {', '.join(self._processes) or 'nothing'}>"

    def start(self) -> None:
        """Start every part and wait until each is ready; after a failure only the logs are left."""
        if self._group is not None:
            raise RuntimeError(f"{self!r} is started already: stop it first")
        self.binaries = binaries(controller_manager=self.controller_manager)
        self.folder = Path(tempfile.mkdtemp(prefix="setpoint-kube-"))  # mode 0700
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        self._group = _Group()
        try:
            self._make_identities()
            self._with_free_ports(self._start_servers)
            if self.controller_manager:
                self._start_controller_manager()
        except StartFailed:
            self._stop_processes()
            for entry in self.folder.iterdir():
                if entry != self.logs:
                    _remove(entry)
            raise
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every part and forget all data; stopping what is stopped does nothing."""
        if self._group is None:
            return
        self._stop_processes()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop_api_server(self) -> None:
        """End kube-apiserver alone: its clients lose their connections, the data stays."""
        self._end("kube-apiserver")

    def start_api_server(self) -> None:
        """Start kube-apiserver again, at the same address, and wait until it is ready."""
        self._start_api_server(time.monotonic() + self.timeout)

    def back_up(self) -> Path:
        """Copy etcd's data, as a backup does; the folder it is in, which goes with the control plane.

        etcd is away for a moment; kube-apiserver waits for it.
        """
        backup = Path(tempfile.mkdtemp(prefix="backup-", dir=self.folder)) / "etcd"
        self._end("etcd")
        shutil.copytree(self.folder / "etcd", backup)
        self._start_etcd(time.monotonic() + self.timeout)
        return backup

    def restore(self, backup: Path) -> None:
        """Go back to a backup, as when a cluster is lost: resourceVersions go back, too."""
        deadline = time.monotonic() + self.timeout
        self._end("kube-apiserver")
        self._end("etcd")
        _remove(self.folder / "etcd")
        shutil.copytree(backup, self.folder / "etcd")
        self._start_etcd(deadline)
        self._start_api_server(deadline)

    def compact(self) -> int:
        """Make etcd forget the past; the revision from which on it remembers.

        Watches and continue tokens of any earlier resourceVersion then get 410 from etcd.  kube-apiserver
        answers many of them from memory, and forgets up to 15 seconds later; restarting it takes no longer.
        """
        now = int(self._etcd.call("/v3/kv/range", {"key": _b64(b"compact_rev_key")})["header"]["revision"])
        # kube-apiserver learns from this key, and writes it itself when it is the one to compact.  The
        # write also puts the present into the past.
        put = {"key": _b64(b"compact_rev_key"), "value": _b64(str(now + 1).encode())}
        revision = int(self._etcd.call("/v3/kv/put", put)["header"]["revision"])
        self._etcd.call("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    # --- who may come in

    def client_certificate(self, common_name: str, groups: Iterable[str] = ()) -> Identity:
        """A new user; RBAC gives it nothing until a binding does."""
        return self._authority.issue(common_name, organizations=groups, client=True)

    def kubeconfig_for(self, user: Identity) -> str:
        """A kubeconfig, complete in itself, that makes its reader ``user``."""
        return kubeconfig_of(user, self.url, self.ca_pem)

    @property
    def url(self) -> str:
        return f"https://{_LOOPBACK}:{self._api_port}"

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._processes.items()}

    @property
    def ca_pem(self) -> bytes:
        return self._authority.certificate_pem

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def admin_certificate(self) -> Path:
        return self.folder / "admin.crt"

    @property
    def admin_key(self) -> Path:
        return self.folder / "admin.key"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, as a file."""
        return self.folder / "admin.kubeconfig"

    @property
    def kubeconfig_text(self) -> str:
        return self.kubeconfig.read_text()

    # --- with blocks

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        self._given_up.clear()
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._given_up.set()  # a thread cannot be cancelled: ask, and wait until it has cleaned up
            with contextlib.suppress(StartFailed, _GivenUp):
                await starting
            await asyncio.to_thread(self.stop)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # --- starting

    def _make_identities(self) -> None:
        # Two authorities: no user of the API server may go around it, straight to etcd.
        self._authority = Authority.create("setpoint-kube")
        storage = Authority.create("setpoint-kube-etcd")
        admin = self.client_certificate("admin", ("system:masters",))
        # etcd's HTTP gateway calls its own gRPC port with this same certificate, hence a client too.
        etcd = storage.issue("etcd", hosts=(_LOOPBACK,), client=True, server=True)
        self._save("ca.crt", self.ca_pem)
        self._save("etcd-ca.crt", storage.certificate_pem)
        self._save_identity("etcd", etcd)
        self._save_identity("admin", admin)
        self._save_identity(
            "kube-apiserver", self._authority.issue("kube-apiserver", hosts=_serving_names(), server=True)
        )
        # This one meets nobody: its key signs the tokens of service accounts, its certificate verifies them.
        self._save_identity("service-accounts", self._authority.issue("service-accounts"))
        self._save("authentication.json", json.dumps(_AUTHENTICATION).encode())
        self._admin = admin

    def _with_free_ports(self, start: Callable[[], None]) -> None:
        """Choose ports and ``start``; choose again if somebody took one before our servers could."""
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._etcd_port, self._api_port = free_ports(2)
            try:
                start()
            except _PortTaken:
                if attempt == _PORT_ATTEMPTS:
                    raise
                for name in list(self._processes):
                    self._end(name)
                _remove(self.folder / "etcd")
                for log in self.logs.iterdir():
                    log.unlink()
            else:
                return

    def _start_servers(self) -> None:
        deadline = time.monotonic() + self.timeout
        self._save("admin.kubeconfig", self.kubeconfig_for(self._admin).encode())
        self._etcd = _Server(self._etcd_port, self.folder / "etcd-ca.crt", self.folder / "etcd")
        self._api = _Server(self._api_port, self.ca_file, self.folder / "admin")
        self._start_etcd(deadline)
        self._start_api_server(deadline)

    def _start_etcd(self, deadline: float) -> None:
        self._run("etcd", self.binaries.etcd, self._etcd_flags())
        self._wait("etcd", self._etcd, "/health", deadline)

    def _start_api_server(self, deadline: float) -> None:
        flags = [*self._api_server_flags(), *self.api_server_args]
        self._run("kube-apiserver", self.binaries.kube_apiserver, flags)
        self._wait("kube-apiserver", self._api, "/readyz", deadline)

    def _start_controller_manager(self) -> None:
        deadline = time.monotonic() + self.timeout
        user = self.client_certificate("system:kube-controller-manager")
        self._save("kube-controller-manager.kubeconfig", self.kubeconfig_for(user).encode())
        self._run(
            "kube-controller-manager",
            self.binaries.kube_controller_manager,
            self._controller_manager_flags(),
        )
        # It serves nothing itself.  Pods need this object in place, so its coming is the sign that matters.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("kube-controller-manager", self._api, account, deadline)

    def _etcd_flags(self) -> list[str]:
        url = f"https://{_LOOPBACK}:{self._etcd_port}"
        nobody = f"https://{_LOOPBACK}:0"  # there are no peers; the flag cannot be empty
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={nobody}",
            f"--initial-advertise-peer-urls={nobody}",
            f"--initial-cluster=default={nobody}",
            f"--cert-file={self.folder / 'etcd.crt'}",
            f"--key-file={self.folder / 'etcd.key'}",
            f"--trusted-ca-file={self.folder / 'etcd-ca.crt'}",
            "--client-cert-auth",
            f"--peer-cert-file={self.folder / 'etcd.crt'}",
            f"--peer-key-file={self.folder / 'etcd.key'}",
            f"--peer-trusted-ca-file={self.folder / 'etcd-ca.crt'}",
            "--peer-client-cert-auth",
            "--unsafe-no-fsync",  # the data dies with the process: nothing to keep safe
            *self.etcd_args,
        ]

    def _api_server_flags(self) -> list[str]:
        flags = [
            f"--bind-address={_LOOPBACK}",
            f"--advertise-address={_LOOPBACK}",
            f"--secure-port={self._api_port}",
            f"--tls-cert-file={self.folder / 'kube-apiserver.crt'}",
            f"--tls-private-key-file={self.folder / 'kube-apiserver.key'}",
            f"--client-ca-file={self.ca_file}",
            f"--etcd-servers=https://{_LOOPBACK}:{self._etcd_port}",
            f"--etcd-cafile={self.folder / 'etcd-ca.crt'}",
            f"--etcd-certfile={self.folder / 'etcd.crt'}",
            f"--etcd-keyfile={self.folder / 'etcd.key'}",
            f"--authentication-config={self.folder / 'authentication.json'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'service-accounts.crt'}",
            f"--service-account-signing-key-file={self.folder / 'service-accounts.key'}",
            # It would publish our address for pods to use, and refuses one on loopback.
            "--endpoint-reconciler-type=none",
        ]
        if not self.controller_manager:
            # It refuses pods until their namespace has a "default" account, and nobody makes one.
            flags.append("--disable-admission-plugins=ServiceAccount")
        return flags

    def _controller_manager_flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.folder / 'kube-controller-manager.kubeconfig'}",
            f"--service-account-private-key-file={self.folder / 'service-accounts.key'}",
            f"--root-ca-file={self.ca_file}",
            "--use-service-account-credentials",  # RBAC gives rights to each controller, not to the manager
            "--leader-elect=false",
            "--secure-port=0",
        ]

    # --- processes

    def _run(self, name: str, program: Path, flags: Sequence[str]) -> None:
        if self._group is None:
            raise RuntimeError(f"start {name}: the control plane is stopped")
        if name in self._processes:
            raise RuntimeError(f"start {name}: it is running already")
        with self._log(name).open("ab") as log:
            try:
                self._processes[name] = subprocess.Popen(  # noqa: S603 - our own programs and flags
                    [program, *flags],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    env={name: value for name, value in os.environ.items() if not name.startswith("ETCD_")},
                    process_group=self._group.id,
                )
            except OSError as error:
                raise StartFailed(f"start {name}", f"{program} cannot be run: {error}") from error

    def _wait(self, name: str, server: _Server, path: str, deadline: float) -> None:
        """Wait until ``path`` answers 200, which shows that ``name`` is ready."""
        process = self._processes[name]
        while (answer := server.look(path)) != "200":
            code = process.poll()
            if code is not None and port_was_taken(self._log(name).read_text(errors="replace")):
                raise _PortTaken(f"start {name}", self._ending(name, "somebody else took its port"))
            if code is not None:
                raise StartFailed(f"start {name}", self._ending(name, f"it ended with exit code {code}"))
            if time.monotonic() > deadline:
                late = f"not ready after {self.timeout:g} s; GET {server.url}{path} says {answer}"
                raise StartFailed(f"start {name}", self._ending(name, late))
            if self._given_up.wait(_LOOK_EVERY):
                raise _GivenUp

    def _end(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _stop_processes(self) -> None:
        for name in reversed(list(self._processes)):  # whoever needs another goes before it
            self._end(name)
        group, self._group = self._group, None
        if group is not None:
            group.close()

    # --- files

    def _save(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)

    def _save_identity(self, name: str, identity: Identity) -> None:
        self._save(f"{name}.crt", identity.certificate_pem)
        self._save(f"{name}.key", identity.key_pem)

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def _ending(self, name: str, what: str) -> str:
        """``what`` happened, where the logs are, and how this one ended."""
        lines = self._log(name).read_text(errors="replace").splitlines()[-20:]
        said = "".join(f"\n  {line}" for line in lines) or " (nothing)"
        return f"{what}. The logs are kept in {self.logs}; {self._log(name).name} ends with:{said}"


class _PortTaken(StartFailed):
    """Between choosing a port and listening on it, somebody else did."""


class _GivenUp(Exception):
    """Whoever wanted the control plane was cancelled before it was ready."""


def port_was_taken(log: str) -> bool:
    """Whether a Go server's log says that it could not listen because of another."""
    return "address already in use" in log


class _Group:
    """A process group that is killed when this process ends, however it ends.

    Its leader waits for the end of its standard input, which only we hold open, and then kills the whole
    group with itself.  Children join the group before they become their program.  PR_SET_PDEATHSIG would be
    shorter, but it follows the *thread* that started the child, needs code between fork and exec, and is
    Linux's alone.
    """

    def __init__(self) -> None:
        self._leader = subprocess.Popen(
            ["/bin/sh", "-c", "read -r _; kill -s KILL 0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self.id = self._leader.pid

    def close(self) -> None:
        """Kill whatever is still in the group."""
        self._leader.communicate()


class _Server:
    """A server of ours, seen with the standard library: what it says, or why nothing came."""

    def __init__(self, port: int, authority: Path, client: Path) -> None:
        self.url = f"https://{_LOOPBACK}:{port}"
        self._port = port
        self._context = ssl.create_default_context(cafile=authority)
        self._context.load_cert_chain(client.with_suffix(".crt"), client.with_suffix(".key"))

    def look(self, path: str) -> str:
        """The status that ``path`` answers with, as text; for want of an answer, the reason."""
        try:
            status, _ = self._ask("GET", path, None)
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        return str(status)

    def call(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST JSON, get JSON; anything but 200 is an error."""
        status, answer = self._ask("POST", path, json.dumps(body).encode())
        if status != 200:
            raise SetpointError(f"POST {self.url}{path}", f"{status} {answer.decode(errors='replace')}")
        result: dict[str, Any] = json.loads(answer)
        return result

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(_LOOPBACK, self._port, timeout=5, context=self._context)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def kubeconfig_of(user: Identity, url: str, authority: bytes) -> str:
    """A kubeconfig, complete in itself, that makes its reader ``user`` of the server at ``url``."""
    return json.dumps(  # JSON is YAML
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "setpoint",
                    "cluster": {"server": url, "certificate-authority-data": _b64(authority)},
                }
            ],
            "users": [
                {
                    "name": "setpoint",
                    "user": {
                        "client-certificate-data": _b64(user.certificate_pem),
                        "client-key-data": _b64(user.key_pem),
                    },
                }
            ],
            "contexts": [{"name": "setpoint", "context": {"cluster": "setpoint", "user": "setpoint"}}],
            "current-context": "setpoint",
        },
        indent=2,
    )


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, from below those the kernel gives to outgoing connections.

    From among those, a client that keeps trying to reach a stopped server can end up connected to itself,
    and the server then cannot come back.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((_LOOPBACK, port))
                if port not in ports:
                    ports.append(port)
    return ports


def _serving_names() -> tuple[str, ...]:
    """What kube-apiserver may be called: from here, and as pods would call it."""
    service = "kubernetes", "kubernetes.default", "kubernetes.default.svc"
    return _LOOPBACK, "localhost", *service, "kubernetes.default.svc.cluster.local", "10.0.0.1"


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
