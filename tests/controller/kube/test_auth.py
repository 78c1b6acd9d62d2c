"""Finding the API server, and who we are to it."""

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
    """A program that gives the token that stands in a file."""
    program = folder / "plugin"
    words = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
    words += ' "status": {"token": "\'$(cat token)\'"}}'
    program.write_text(f"#!/bin/sh\ncd {folder}\n" + ("exit 1\n" if fails else f"echo '{words}'\n"))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {"command": str(program), "apiVersion": "client.authentication.k8s.io/v1"},
    }


async def test_kubeconfig_that_is_named_is_taken(time: ManualClock, tmp_path: Path) -> None:
    environ = _kubeconfig(tmp_path, {"server": "http://there:1/"}, {"token": "secret"})
    entry = await auth.find_api_server(time, environ | _POD).endpoint()
    assert (entry.server, entry.headers) == ("http://there:1", {"Authorization": "Bearer secret"})


async def test_account_of_the_pod_is_taken_where_nothing_is_named(
    time: ManualClock, tmp_path: Path, authority: bytes
) -> None:
    _account(tmp_path, "secret\n", authority)
    entry = await auth.find_api_server(time, _POD, tmp_path).endpoint()
    assert entry.server == "https://10.0.0.1:443"
    assert entry.headers == {"Authorization": "Bearer secret"}


async def test_token_of_a_pod_is_read_again_after_a_minute(
    time: ManualClock, tmp_path: Path, authority: bytes
) -> None:
    _account(tmp_path, "first", authority)
    access = auth.find_api_server(time, _POD, tmp_path)
    before = await access.endpoint()
    _account(tmp_path, "second", authority)
    time.turn(59)
    assert (await access.endpoint()).authorization == "Bearer first"
    time.turn(1)
    after = await access.endpoint()
    assert after.authorization == "Bearer second"
    assert after.ssl_context is before.ssl_context, "open connections would be of no use any more"


async def test_certificates_that_are_replaced_are_used(
    time: ManualClock, tmp_path: Path, authority: bytes, other_authority: bytes
) -> None:
    _account(tmp_path, "token", authority)
    access = auth.find_api_server(time, _POD, tmp_path)
    before = await access.endpoint()
    _account(tmp_path, "token", other_authority)
    assert (await access.refresh(before)).ssl_context is not before.ssl_context


async def test_refused_token_is_read_again_at_once(
    api: FakeApi, time: ManualClock, tmp_path: Path
) -> None:
    api.require_token("first")
    access = auth.find_api_server(time, {"KUBECONFIG": str(api.kubeconfig(tmp_path))})
    async with ApiClient(access) as server:
        await server.list_page(_JOBS, {})
        api.require_token("second")
        api.kubeconfig(tmp_path)
        await server.list_page(_JOBS, {})
    assert [asked.code for asked in api.requests.all] == [200, 401, 200]


async def test_token_that_stays_refused_is_an_error(
    api: FakeApi, time: ManualClock, tmp_path: Path
) -> None:
    api.require_token("right")
    environ = _kubeconfig(tmp_path, {"server": api.url}, {"token": "wrong"})
    async with ApiClient(auth.find_api_server(time, environ)) as server:
        with pytest.raises(errors.UnauthorizedError, match="wrong or has expired: renew it"):
            await server.get(JOB.resource.at("default", "one"))
    assert len(api.requests.all) == 2


async def test_many_that_are_refused_ask_once(time: ManualClock, tmp_path: Path) -> None:
    environ = _kubeconfig(tmp_path, {"server": "http://there"}, {"token": "first"})
    access = auth.find_api_server(time, environ)
    refused = await access.endpoint()
    _kubeconfig(tmp_path, {"server": "http://there"}, {"token": "second"})
    anew = await access.refresh(refused)
    assert anew.authorization == "Bearer second"
    assert await access.refresh(refused) is anew


async def test_plugin_is_asked_again_when_its_token_is_refused(
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
    assert [asked.code for asked in api.requests.all] == [200, 401, 200]


async def test_plugin_that_fails_does_not_leave_us_as_nobody(
    time: ManualClock, tmp_path: Path
) -> None:
    plugin = _plugin(tmp_path, fails=True)
    access = auth.find_api_server(time, _kubeconfig(tmp_path, {"server": "https://there"}, plugin))
    with pytest.raises(errors.AccessError, match="the program under `exec` returned none"):
        await access.endpoint()


async def test_missing_kubeconfig_is_named(time: ManualClock, tmp_path: Path) -> None:
    access = auth.find_api_server(time, {"KUBECONFIG": str(tmp_path / "none")})
    with pytest.raises(errors.AccessError, match=f"no kubeconfig at {tmp_path}/none; set"):
        await access.endpoint()


async def test_pod_without_a_token_says_so(time: ManualClock, tmp_path: Path) -> None:
    with pytest.raises(errors.AccessError, match="token file does not exist"):
        await auth.find_api_server(time, _POD, tmp_path).endpoint()


@pytest.mark.parametrize("text", ["", "a: [", "- a", "a: b", "current-context: none"])
async def test_kubeconfig_that_is_none_is_an_error_of_ours(
    time: ManualClock, tmp_path: Path, text: str
) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(errors.AccessError, match="cannot find an API server"):
        await auth.find_api_server(time, {"KUBECONFIG": str(tmp_path / "config")}).endpoint()


async def test_kopf_gets_the_same_way_in(time: ManualClock, tmp_path: Path) -> None:
    cluster = {"server": "https://there", "insecure-skip-tls-verify": True, "proxy-url": "http://p"}
    environ = _kubeconfig(tmp_path, cluster, {"username": "me", "password": "secret"})
    info = (await auth.find_api_server(time, environ).endpoint()).kopf_connection
    assert (info.server, info.insecure, info.proxy_url) == ("https://there", True, "http://p")
    assert info.as_http_headers() == {"Authorization": "Basic bWU6c2VjcmV0"}


async def test_what_kopf_cannot_do_is_said(time: ManualClock, tmp_path: Path) -> None:
    cluster = {
        "server": "https://there",
        "tls-server-name": "its-name",
        "insecure-skip-tls-verify": True,
    }
    entry = await auth.find_api_server(
        time, _kubeconfig(tmp_path, cluster, {"token": "t"})
    ).endpoint()
    with pytest.raises(errors.AccessError, match="tls-server-name 'its-name', which Kopf does not"):
        _ = entry.kopf_connection
