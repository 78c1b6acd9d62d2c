"""Finds the API server and our credentials, and renews the credentials.

In a pod they are those of the service account, whose token Kubernetes replaces while the pod runs.
Elsewhere they come from the kubeconfig that kubectl would use, with its plugins and certificates.
The `kubernetes` library reads both. An `ApiAccess` belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from pathlib import Path
from typing import Final

import kopf
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME, InClusterConfigLoader

from workron.core.clock import Clock
from workron_controller.kube import errors


class ApiEndpoint:
    """The address of the API server and our credentials, from the library's configuration."""

    def __init__(self, configuration: Configuration, before: ApiEndpoint | None = None) -> None:
        self._configuration = configuration
        self.server: str = configuration.host.rstrip("/")
        self.proxy: str | None = configuration.proxy
        self.server_name: str | None = configuration.tls_server_name
        """The name in the server's certificate, where it differs from the address."""
        scheme, _, token = configuration.api_key.get("BearerToken", "").partition(" ")
        # A token file can end with a newline, which a header must not contain.
        self.authorization = f"{scheme.capitalize()} {token.strip()}" if token.strip() else None
        paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        # The files are renewed in place.
        contents = tuple(Path(path).read_bytes() for path in paths if path)
        self.certificates = (configuration.verify_ssl, *paths, *contents)
        # Connections stay open if no certificate has changed.
        is_same = before is not None and before.certificates == self.certificates
        self.ssl_context: ssl.SSLContext = (
            before.ssl_context if before and is_same else self._new_ssl_context()
        )

    def _new_ssl_context(self) -> ssl.SSLContext:
        configuration = self._configuration
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        if not configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

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
            ca_path=self._configuration.ssl_ca_cert,
            insecure=not self._configuration.verify_ssl,
            scheme=scheme or None,
            token=token or None,
            certificate_path=self._configuration.cert_file,
            private_key_path=self._configuration.key_file,
            proxy_url=self.proxy,
        )

    def require_credentials(self) -> None:
        """Refuse to continue as an anonymous user, which is how a failed plugin leaves us."""
        has_credentials = self.authorization or self._configuration.cert_file
        if self.server.startswith("https:") and not has_credentials:
            raise errors.AccessError(
                f"no credentials for {self.server}: the user of the kubeconfig has neither a token"
                " nor a certificate, or the program under `exec` returned none (see the log)"
            )


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
            if self._endpoint is None or is_stale:
                return await self._renew()
            return self._endpoint

    async def refresh(self, refused: ApiEndpoint | None = None) -> ApiEndpoint:
        """Load the endpoint again, once for all requests that were refused with the same one."""
        async with self._lock:
            if self._endpoint is None or refused is None or self._endpoint is refused:
                return await self._renew()
            return self._endpoint

    async def _renew(self) -> ApiEndpoint:
        try:
            async with asyncio.timeout(_LOAD_TIMEOUT):
                configuration = await self._load()
            endpoint = ApiEndpoint(configuration, self._endpoint)
        except _LOAD_ERRORS as error:
            why = str(error) or f"the program under `exec` did not end within {_LOAD_TIMEOUT:g} s"
            raise errors.AccessError(f"cannot find an API server: {why}") from error
        endpoint.require_credentials()
        self._endpoint, self._loaded_at = endpoint, self._clock.monotonic()
        return endpoint


def find_api_server(
    clock: Clock, environ: Mapping[str, str] = os.environ, account: Path = _ACCOUNT_FOLDER
) -> ApiAccess:
    """Use the kubeconfig in KUBECONFIG, the service account of the pod, or ~/.kube/config."""
    kubeconfig = environ.get("KUBECONFIG")
    if not kubeconfig and SERVICE_HOST_ENV_NAME in environ:
        load = functools.partial(_load_service_account, environ, account)
        return ApiAccess(load, clock, _TOKEN_SECONDS)
    load = functools.partial(_load_kubeconfig, kubeconfig or _DEFAULT_KUBECONFIG)
    return ApiAccess(load, clock, inf)


async def _load_service_account(environ: Mapping[str, str], folder: Path) -> Configuration:
    configuration = Configuration()
    loader = InClusterConfigLoader(
        str(folder / "token"), str(folder / "ca.crt"), try_refresh_token=False, environ=environ
    )
    loader.load_and_set(configuration)
    return configuration


async def _load_kubeconfig(paths: str) -> Configuration:
    """Load one or more files, separated as kubectl separates them."""
    _require_file(paths)
    configuration = Configuration()
    await load_kube_config(paths, client_configuration=configuration, persist_config=False)
    return configuration


def _require_file(paths: str) -> None:
    files = [Path(name).expanduser() for name in paths.split(os.pathsep) if name]
    if not any(file.exists() for file in files):
        raise ConfigException(
            f"no kubeconfig at {paths}; set KUBECONFIG, or run in a pod with a service account"
        )
