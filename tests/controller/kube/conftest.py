"""Certificates, which `openssl` makes for each test session."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]


@dataclass(frozen=True)
class CertificateAuthority:
    """A certificate authority."""

    folder: Path

    def sign(self, name: str, *extensions: str) -> tuple[Path, Path]:
        """Make a certificate and its key."""
        paths = (self.folder / f"{name}.crt", self.folder / f"{name}.key")
        request = ["-subj", f"/CN={name}", "-out", str(paths[0]), "-keyout", str(paths[1])]
        added = [part for text in extensions for part in ("-addext", text)]
        signed = ["-CA", str(self.certificate), "-CAkey", str(self.folder / "ca.key")]
        _openssl(*_KEY, *request, *added, *(signed if name != "ca" else ()))
        return paths

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.crt"


def _openssl(*arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl, which makes the certificates, is not installed")
    subprocess.run([program, "req", "-x509", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="session")
def signer(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    signer = CertificateAuthority(tmp_path_factory.mktemp("authority"))
    signer.sign("ca", "keyUsage=critical,keyCertSign")
    return signer


@pytest.fixture(scope="session")
def authority(signer: CertificateAuthority) -> bytes:
    return signer.certificate.read_bytes()


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    other = CertificateAuthority(tmp_path_factory.mktemp("other"))
    other.sign("ca")
    return other.certificate.read_bytes()
