"""Finds the API server and who we are to it, and asks again when either may have changed.

In a pod it is the service account, whose token is replaced while the pod runs; elsewhere it is the
kubeconfig that kubectl would take, with its plugins and certificates. The library reads both.
One `Access` serves one event loop.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

import kopf
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME, InClusterConfigLoader

from workron_controller.kube import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from workron.core.clock import Clock


@dataclass(frozen=True, slots=True)
class ClientCertificates:
    """Whom to trust and, where that is how we are known, who we are."""

    authority: str | None
    own: str | None
    key: str | None
    is_verifying: bool
    content: tuple[bytes, ...]
    """What is in the files: they are renewed in place."""

    @classmethod
    def of(cls, configuration: Configuration) -> ClientCertificates:
        """Read what the configuration names."""
        paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        content = tuple(Path(path).read_bytes() for path in paths if path)
        return cls(*paths, configuration.verify_ssl, content)

    def context(self) -> ssl.SSLContext:
        """Make of them what a connection needs."""
        context = ssl.create_default_context(cafile=self.authority)
        if self.own:
            context.load_cert_chain(self.own, self.key)
        if not self.is_verifying:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """Where the API server is and who we are to it."""

    server: str
    authorization: str | None
    certificates: ClientCertificates
    tls: ssl.SSLContext
    proxy: str | None
    server_name: str | None
    """In the server's certificate, where it is not that of the address."""

    @classmethod
    def of(cls, configuration: Configuration, before: ApiEndpoint | None) -> ApiEndpoint:
        """Take from the library what it has found; connections outlive it if they can."""
        certificates = ClientCertificates.of(configuration)
        is_same = before is not None and before.certificates == certificates
        return cls(
            server=configuration.host.rstrip("/"),
            authorization=_authorization(configuration),
            certificates=certificates,
            tls=before.tls if before and is_same else certificates.context(),
            proxy=configuration.proxy,
            server_name=configuration.tls_server_name,
        )

    @property
    def headers(self) -> dict[str, str]:
        """What every request says of us."""
        return {"Authorization": self.authorization} if self.authorization else {}

    @property
    def for_kopf(self) -> kopf.ConnectionInfo:
        """The same way in, for Kopf, which makes connections of its own."""
        if self.server_name:
            raise errors.AccessError(
                f"the kubeconfig sets tls-server-name {self.server_name!r}, which Kopf does not"
                " know; name the server by an address that is in its certificate"
            )
        scheme, _, token = (self.authorization or "").partition(" ")
        return kopf.ConnectionInfo(
            server=self.server,
            ca_path=self.certificates.authority,
            insecure=not self.certificates.is_verifying,
            scheme=scheme or None,
            token=token or None,
            certificate_path=self.certificates.own,
            private_key_path=self.certificates.key,
            proxy_url=self.proxy,
        )


def _authorization(configuration: Configuration) -> str | None:
    said: str = configuration.api_key.get("BearerToken", "")
    scheme, _, token = said.partition(" ")
    # A file of a token may end with a line feed, which a header must not.
    return f"{scheme.capitalize()} {token.strip()}" if token.strip() else None


_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_USUAL: Final = "~/.kube/config"
_TOKEN_SECONDS: Final = 60.0
"""A token is replaced long before it expires, so that a minute's delay is none."""
_ASKING_SECONDS: Final = 30.0
_UNREADABLE: Final = (
    ConfigException, yaml.YAMLError, OSError, ValueError, LookupError, TypeError, AttributeError,
)  # fmt: skip
"""The library takes it for granted that what a person wrote has the right shape."""


class ApiAccess:
    """The way in, kept fresh."""

    def __init__(
        self, ask: Callable[[], Awaitable[Configuration]], clock: Clock, keeps_seconds: float
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._keeps_seconds = keeps_seconds
        self._entry: ApiEndpoint | None = None
        self._asked_at = -inf
        self._asking = asyncio.Lock()

    async def entry(self) -> ApiEndpoint:
        """Give the way in as it is now."""
        async with self._asking:
            is_stale = self._clock.monotonic() >= self._asked_at + self._keeps_seconds
            return await self._renew() if self._entry is None or is_stale else self._entry

    async def anew(self, refused: ApiEndpoint | None = None) -> ApiEndpoint:
        """Ask at once, because this one was refused; once, however many were refused with it."""
        async with self._asking:
            is_refused = refused is None or self._entry is refused
            return await self._renew() if self._entry is None or is_refused else self._entry

    async def _renew(self) -> ApiEndpoint:
        try:
            async with asyncio.timeout(_ASKING_SECONDS):
                configuration = await self._ask()
            entry = ApiEndpoint.of(configuration, self._entry)
        except _UNREADABLE as error:
            why = str(error) or f"the program named under `exec` ran for {_ASKING_SECONDS:g} s"
            raise errors.AccessError(f"there is no way to an API server: {why}") from error
        _check(entry)
        self._entry, self._asked_at = entry, self._clock.monotonic()
        return entry


def find_api_server(
    clock: Clock, environ: Mapping[str, str] = os.environ, account: Path = _ACCOUNT
) -> ApiAccess:
    """Choose whom to ask: the kubeconfig that is named, the pod's account, or the usual one."""
    named = environ.get("KUBECONFIG")
    if not named and SERVICE_HOST_ENV_NAME in environ:
        return ApiAccess(_Account(environ, account).ask, clock, _TOKEN_SECONDS)
    return ApiAccess(_Kubeconfig(named or _USUAL).ask, clock, inf)


class _Account:
    """The service account of the pod that this program runs in."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._environ = environ
        self._folder = folder

    async def ask(self) -> Configuration:
        configuration = Configuration()
        loader = InClusterConfigLoader(
            str(self._folder / "token"),
            str(self._folder / "ca.crt"),
            try_refresh_token=False,
            environ=self._environ,
        )
        loader.load_and_set(configuration)
        return configuration


class _Kubeconfig:
    """One or more files, as kubectl takes them."""

    def __init__(self, paths: str) -> None:
        self._paths = paths

    async def ask(self) -> Configuration:
        self._check()
        configuration = Configuration()
        await load_kube_config(
            self._paths, client_configuration=configuration, persist_config=False
        )
        return configuration

    def _check(self) -> None:
        names = [Path(name).expanduser() for name in self._paths.split(os.pathsep) if name]
        if not any(name.exists() for name in names):
            raise ConfigException(
                f"no kubeconfig at {self._paths}; set KUBECONFIG, or run in a pod with a service"
                " account"
            )


def _check(entry: ApiEndpoint) -> None:
    """Refuse to go on as nobody, which is what a plugin that failed leaves us as."""
    is_somebody = entry.authorization or entry.certificates.own
    if entry.server.startswith("https:") and not is_somebody:
        raise errors.AccessError(
            f"nothing says who we are to {entry.server}: the user of the kubeconfig has no token"
            " and no certificate, or the program named under `exec` gave none (see the log)"
        )
