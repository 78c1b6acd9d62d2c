"""Certificates on both sides of a connection."""

import base64
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import kopf
import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB
from tests.controller.kube.conftest import CertificateAuthority
from tests.controller.manual_clock import ManualClock
from workron_controller.kube import auth, errors
from workron_controller.kube.client import ApiClient

_JOBS = JOB.resource.at("default")


@pytest.fixture
async def api(signer: CertificateAuthority) -> AsyncIterator[FakeApi]:
    """A server with a certificate, which requires one of its clients."""
    name = ("subjectAltName=IP:127.0.0.1", "basicConstraints=critical,CA:FALSE")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(signer.certificate))
    tls.load_cert_chain(*signer.sign("server", *name))
    tls.verify_mode = ssl.CERT_REQUIRED
    async with FakeApi(tls=tls) as api:
        yield api


def _kubeconfig(api: FakeApi, folder: Path, authority: bytes, own: tuple[Path, Path]) -> str:
    path = api.kubeconfig(folder)
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"]["certificate-authority-data"] = _encoded(authority)
    config["users"][0]["user"] = {
        "client-certificate-data": _encoded(own[0].read_bytes()),
        "client-key": str(own[1]),
    }
    path.write_text(json.dumps(config))
    return str(path)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def test_server_and_client_are_verified_by_certificates(
    api: FakeApi, time: ManualClock, tmp_path: Path, signer: CertificateAuthority, authority: bytes
) -> None:
    own = signer.sign("controller", "basicConstraints=critical,CA:FALSE")
    environ = {"KUBECONFIG": _kubeconfig(api, tmp_path, authority, own)}
    access = auth.find_api_server(time, environ)
    async with ApiClient(access) as server:
        page = await server.list_page(_JOBS, {})
    assert page["items"] == []
    info = (await access.endpoint()).kopf_connection
    assert isinstance(info, kopf.ConnectionInfo)
    assert info.as_ssl_context().get_ca_certs()


async def test_no_request_is_sent_when_another_authority_signed_the_server(
    api: FakeApi,
    time: ManualClock,
    tmp_path: Path,
    signer: CertificateAuthority,
    other_authority: bytes,
) -> None:
    own = signer.sign("controller", "basicConstraints=critical,CA:FALSE")
    environ = {"KUBECONFIG": _kubeconfig(api, tmp_path, other_authority, own)}
    async with ApiClient(auth.find_api_server(time, environ)) as server:
        with pytest.raises(errors.UnreachableError, match="certificate"):
            await server.get(JOB.resource.at("default", "one"))
    assert api.requests.all == []
