"""Finds the API server and our credentials, and renews the credentials.

In a pod they are those of the service account, whose token Kubernetes replaces while the pod runs.
Elsewhere they come from the kubeconfig that kubectl would use, with its plugins and certificates.
The `kubernetes` library reads both. An `ApiAccess` belongs to one event loop.
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
    """The certificate authority to trust, and our client certificate if we have one."""

    ca_file: str | None
    cert_file: str | None
    key_file: str | None
    verifies_server: bool
    contents: tuple[bytes, ...]
    """The contents of the files, which are renewed in place."""

    @classmethod
    def load(cls, configuration: Configuration) -> ClientCertificates:
        """Read the files of a configuration."""
        paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        contents = tuple(Path(path).read_bytes() for path in paths if path)
        return cls(*paths, configuration.verify_ssl, contents)

    def ssl_context(self) -> ssl.SSLContext:
        """Make the context of a connection."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.cert_file:
            context.load_cert_chain(self.cert_file, self.key_file)
        if not self.verifies_server:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """The address of the API server and our credentials."""

    server: str
    authorization: str | None
    certificates: ClientCertificates
    ssl_context: ssl.SSLContext
    proxy: str | None
    server_name: str | None
    """The name in the server's certificate, where it differs from the address."""

    @classmethod
    def from_configuration(
        cls, configuration: Configuration, before: ApiEndpoint | None
    ) -> ApiEndpoint:
        """Convert the library's configuration; connections stay open if no certificate changed."""
        certificates = ClientCertificates.load(configuration)
        is_same = before is not None and before.certificates == certificates
        return cls(
            server=configuration.host.rstrip("/"),
            authorization=_authorization(configuration),
            certificates=certificates,
            ssl_context=before.ssl_context if before and is_same else certificates.ssl_context(),
            proxy=configuration.proxy,
            server_name=configuration.tls_server_name,
        )

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {"Authorization": self.authorization} if self.authorization else {}

    @property
    def kopf_connection(self) -> kopf.ConnectionInfo:
        """The same endpoint for Kopf, which makes its own connections."""
        if self.server_name:
            raise errors.AccessError(
                f"the kubeconfig sets tls-server-name {self.server_name!r}, which Kopf does not"
                " support; use an address of the server that is in its certificate"
            )
        scheme, _, token = (self.authorization or "").partition(" ")
        return kopf.ConnectionInfo(
            server=self.server,
            ca_path=self.certificates.ca_file,
            insecure=not self.certificates.verifies_server,
            scheme=scheme or None,
            token=token or None,
            certificate_path=self.certificates.cert_file,
            private_key_path=self.certificates.key_file,
            proxy_url=self.proxy,
        )


def _authorization(configuration: Configuration) -> str | None:
    value: str = configuration.api_key.get("BearerToken", "")
    scheme, _, token = value.partition(" ")
    # A token file can end with a newline, which a header must not contain.
    return f"{scheme.capitalize()} {token.strip()}" if token.strip() else None


_ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_TOKEN_SECONDS: Final = 60.0
"""How long a token is used before it is read again; Kubernetes replaces it long before it ends."""
_LOAD_TIMEOUT: Final = 30.0
_LOAD_ERRORS: Final = (
    ConfigException, yaml.YAMLError, OSError, ValueError, LookupError, TypeError, AttributeError,
)  # fmt: skip
"""The library does not check the shape of a kubeconfig, so a mistake in it can be any of these."""


class ApiAccess:
    """The endpoint, which is loaded again when it is old or refused."""

    def __init__(
        self, load: Callable[[], Awaitable[Configuration]], clock: Clock, max_age: float
    ) -> None:
        self._load = load
        self._clock = clock
        self._max_age = max_age
        self._endpoint: ApiEndpoint | None = None
        self._loaded_at = -inf
        self._lock = asyncio.Lock()

    async def endpoint(self) -> ApiEndpoint:
        """Return the endpoint; raises AccessError if it cannot be loaded."""
        async with self._lock:
            is_stale = self._clock.monotonic() >= self._loaded_at + self._max_age
            is_missing = self._endpoint is None
            return await self._renew() if is_missing or is_stale else self._current

    async def refresh(self, refused: ApiEndpoint | None = None) -> ApiEndpoint:
        """Load the endpoint again, once for all requests that were refused with the same one."""
        async with self._lock:
            is_refused = refused is None or self._endpoint is refused
            is_missing = self._endpoint is None
            return await self._renew() if is_missing or is_refused else self._current

    @property
    def _current(self) -> ApiEndpoint:
        assert self._endpoint is not None
        return self._endpoint

    async def _renew(self) -> ApiEndpoint:
        try:
            async with asyncio.timeout(_LOAD_TIMEOUT):
                configuration = await self._load()
            endpoint = ApiEndpoint.from_configuration(configuration, self._endpoint)
        except _LOAD_ERRORS as error:
            why = str(error) or f"the program under `exec` did not end within {_LOAD_TIMEOUT:g} s"
            raise errors.AccessError(f"cannot find an API server: {why}") from error
        _require_credentials(endpoint)
        self._endpoint, self._loaded_at = endpoint, self._clock.monotonic()
        return endpoint


def find_api_server(
    clock: Clock, environ: Mapping[str, str] = os.environ, account: Path = _ACCOUNT_FOLDER
) -> ApiAccess:
    """Use the kubeconfig in KUBECONFIG, the service account of the pod, or ~/.kube/config."""
    kubeconfig = environ.get("KUBECONFIG")
    if not kubeconfig and SERVICE_HOST_ENV_NAME in environ:
        return ApiAccess(_ServiceAccount(environ, account).load, clock, _TOKEN_SECONDS)
    return ApiAccess(_Kubeconfig(kubeconfig or _DEFAULT_KUBECONFIG).load, clock, inf)


class _ServiceAccount:
    """The service account of the pod in which this program runs."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._environ = environ
        self._folder = folder

    async def load(self) -> Configuration:
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
    """One or more files, separated as kubectl separates them."""

    def __init__(self, paths: str) -> None:
        self._paths = paths

    async def load(self) -> Configuration:
        self._require_file()
        configuration = Configuration()
        await load_kube_config(
            self._paths, client_configuration=configuration, persist_config=False
        )
        return configuration

    def _require_file(self) -> None:
        paths = [Path(name).expanduser() for name in self._paths.split(os.pathsep) if name]
        if not any(path.exists() for path in paths):
            raise ConfigException(
                f"no kubeconfig at {self._paths}; set KUBECONFIG, or run in a pod with a service"
                " account"
            )


def _require_credentials(endpoint: ApiEndpoint) -> None:
    """Refuse to continue as an anonymous user, which is how a failed plugin leaves us."""
    has_credentials = endpoint.authorization or endpoint.certificates.cert_file
    if endpoint.server.startswith("https:") and not has_credentials:
        raise errors.AccessError(
            f"no credentials for {endpoint.server}: the user of the kubeconfig has neither a token"
            " nor a certificate, or the program under `exec` returned none (see the log)"
        )
