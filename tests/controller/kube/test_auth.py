"""The API server and our credentials are found and renewed."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB
from tests.controller.manual_clock import ManualClock
from workron_controller.kube import auth, errors
from workron_controller.kube.client import ApiClient

_JOBS = JOB.resource.at("default")
_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def _account(folder: Path, token: str, authority: bytes) -> None:
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(authority)


def _kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, str]:
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
    }
    path = folder / "config"
    path.write_text(json.dumps(config))
    return {"KUBECONFIG": str(path)}


def _plugin(folder: Path, *, fails: bool = False) -> dict[str, Any]:
    """Return a user whose program prints the token of a file."""
    program = folder / "plugin"
    credential = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
    credential += ' "status": {"token": "\'$(cat token)\'"}}'
    program.write_text(
        f"#!/bin/sh\ncd {folder}\n" + ("exit 1\n" if fails else f"echo '{credential}'\n")
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {"command": str(program), "apiVersion": "client.authentication.k8s.io/v1"},
    }


async def test_kubeconfig_is_used_when_the_environment_names_it(
    time: ManualClock, tmp_path: Path
) -> None:
    environ = _kubeconfig(tmp_path, {"server": "http://server:1/"}, {"token": "secret"})
    endpoint = await auth.find_api_server(time, environ | _POD).endpoint()
    assert (endpoint.server, endpoint.headers) == (
        "http://server:1",
        {"Authorization": "Bearer secret"},
    )


async def test_service_account_is_used_when_no_kubeconfig_is_named(
    time: ManualClock, tmp_path: Path, authority: bytes
) -> None:
    _account(tmp_path, "secret\n", authority)
    endpoint = await auth.find_api_server(time, _POD, tmp_path).endpoint()
    assert endpoint.server == "https://10.0.0.1:443"
    assert endpoint.headers == {"Authorization": "Bearer secret"}


async def test_token_of_a_pod_is_read_again_after_a_minute(
    time: ManualClock, tmp_path: Path, authority: bytes
) -> None:
    _account(tmp_path, "first", authority)
    access = auth.find_api_server(time, _POD, tmp_path)
    before = await access.endpoint()
    _account(tmp_path, "second", authority)
    time.advance(59)
    assert (await access.endpoint()).authorization == "Bearer first"
    time.advance(1)
    after = await access.endpoint()
    assert after.authorization == "Bearer second"
    assert after.ssl_context is before.ssl_context, "open connections would be closed"


async def test_new_certificates_are_used_when_the_files_change(
    time: ManualClock, tmp_path: Path, authority: bytes, other_authority: bytes
) -> None:
    _account(tmp_path, "token", authority)
    access = auth.find_api_server(time, _POD, tmp_path)
    before = await access.endpoint()
    _account(tmp_path, "token", other_authority)
    assert (await access.refresh(before)).ssl_context is not before.ssl_context


async def test_token_is_read_again_at_once_when_it_is_refused(
    api: FakeApi, time: ManualClock, tmp_path: Path
) -> None:
    api.require_token("first")
    access = auth.find_api_server(time, {"KUBECONFIG": str(api.kubeconfig(tmp_path))})
    async with ApiClient(access) as server:
        await server.list_page(_JOBS, {})
        api.require_token("second")
        api.kubeconfig(tmp_path)
        await server.list_page(_JOBS, {})
    assert [request.code for request in api.requests.all] == [200, 401, 200]


async def test_error_is_raised_when_the_new_token_is_refused_too(
    api: FakeApi, time: ManualClock, tmp_path: Path
) -> None:
    api.require_token("right")
    environ = _kubeconfig(tmp_path, {"server": api.url}, {"token": "wrong"})
    async with ApiClient(auth.find_api_server(time, environ)) as server:
        with pytest.raises(errors.UnauthorizedError, match="wrong or has expired: renew it"):
            await server.get(JOB.resource.at("default", "one"))
    assert len(api.requests.all) == 2


async def test_credentials_are_loaded_once_when_many_requests_are_refused(
    time: ManualClock, tmp_path: Path
) -> None:
    environ = _kubeconfig(tmp_path, {"server": "http://server"}, {"token": "first"})
    access = auth.find_api_server(time, environ)
    refused = await access.endpoint()
    _kubeconfig(tmp_path, {"server": "http://server"}, {"token": "second"})
    renewed = await access.refresh(refused)
    assert renewed.authorization == "Bearer second"
    assert await access.refresh(refused) is renewed


async def test_plugin_runs_again_when_its_token_is_refused(
    api: FakeApi, time: ManualClock, tmp_path: Path
) -> None:
    api.require_token("first")
    (tmp_path / "token").write_text("first")
    environ = _kubeconfig(tmp_path, {"server": api.url}, _plugin(tmp_path))
    async with ApiClient(auth.find_api_server(time, environ)) as server:
        await server.list_page(_JOBS, {})
        api.require_token("second")
        (tmp_path / "token").write_text("second")
        await server.list_page(_JOBS, {})
    assert [request.code for request in api.requests.all] == [200, 401, 200]


async def test_no_anonymous_request_is_sent_when_the_plugin_fails(
    time: ManualClock, tmp_path: Path
) -> None:
    plugin = _plugin(tmp_path, fails=True)
    access = auth.find_api_server(time, _kubeconfig(tmp_path, {"server": "https://server"}, plugin))
    with pytest.raises(errors.AccessError, match="the program under `exec` returned none"):
        await access.endpoint()


async def test_error_names_the_kubeconfig_when_it_is_missing(
    time: ManualClock, tmp_path: Path
) -> None:
    access = auth.find_api_server(time, {"KUBECONFIG": str(tmp_path / "none")})
    with pytest.raises(errors.AccessError, match=f"no kubeconfig at {tmp_path}/none; set"):
        await access.endpoint()


async def test_error_names_the_token_when_the_pod_has_none(
    time: ManualClock, tmp_path: Path
) -> None:
    with pytest.raises(errors.AccessError, match="token file does not exist"):
        await auth.find_api_server(time, _POD, tmp_path).endpoint()


@pytest.mark.parametrize("text", ["", "a: [", "- a", "a: b", "current-context: none"])
async def test_access_error_is_raised_when_the_kubeconfig_is_malformed(
    time: ManualClock, tmp_path: Path, text: str
) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(errors.AccessError, match="cannot find an API server"):
        await auth.find_api_server(time, {"KUBECONFIG": str(tmp_path / "config")}).endpoint()


async def test_kopf_connects_to_the_same_endpoint(time: ManualClock, tmp_path: Path) -> None:
    cluster = {
        "server": "https://server",
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://p",
    }
    environ = _kubeconfig(tmp_path, cluster, {"username": "me", "password": "secret"})
    info = (await auth.find_api_server(time, environ).endpoint()).kopf_connection
    assert (info.server, info.insecure, info.proxy_url) == ("https://server", True, "http://p")
    assert info.as_http_headers() == {"Authorization": "Basic bWU6c2VjcmV0"}


async def test_error_is_raised_when_kopf_does_not_support_the_kubeconfig(
    time: ManualClock, tmp_path: Path
) -> None:
    cluster = {
        "server": "https://server",
        "tls-server-name": "its-name",
        "insecure-skip-tls-verify": True,
    }
    endpoint = await auth.find_api_server(
        time, _kubeconfig(tmp_path, cluster, {"token": "t"})
    ).endpoint()
    with pytest.raises(errors.AccessError, match="tls-server-name 'its-name', which Kopf does not"):
        _ = endpoint.kopf_connection
