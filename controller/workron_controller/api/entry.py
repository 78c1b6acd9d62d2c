"""One way in, as it stands at one moment: address, certificates, and what a request says of us.

Made by `access`, used by `server` for its own requests, and handed to Kopf for its.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import kopf

from workron_controller.api import errors

if TYPE_CHECKING:
    from kubernetes.aio.client import Configuration


@dataclass(frozen=True, slots=True)
class Certificates:
    """Whom to trust and, where that is how we are known, who we are."""

    authority: str | None
    own: str | None
    key: str | None
    is_verifying: bool
    content: tuple[bytes, ...]
    """What is in the files: they are renewed in place."""

    @classmethod
    def of(cls, configuration: Configuration) -> Certificates:
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
class Entry:
    """Where the API server is and who we are to it."""

    server: str
    authorization: str | None
    certificates: Certificates
    tls: ssl.SSLContext
    proxy: str | None
    server_name: str | None
    """In the server's certificate, where it is not that of the address."""

    @classmethod
    def of(cls, configuration: Configuration, before: Entry | None) -> Entry:
        """Take from the library what it has found; connections outlive it if they can."""
        certificates = Certificates.of(configuration)
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
