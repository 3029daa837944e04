"""Keys, certificates, tokens and kubeconfigs of a lab."""

import csv
import ipaddress
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from berkelium_lab.api import connect
from berkelium_lab.credentials import ADMIN, USERS, Credentials


@pytest.fixture
def made(tmp_path: Path) -> Credentials:
    """The credentials of a lab whose API server listens on port 6443."""
    files = Credentials(tmp_path)
    files.ensure()
    files.write_kubeconfigs("lab-test", "https://127.0.0.1:6443")
    return files


def certificate(path: Path) -> x509.Certificate:
    """The certificate in a PEM file."""
    return x509.load_pem_x509_certificate(path.read_bytes())


def uses(path: Path) -> set[x509.ObjectIdentifier]:
    """What a certificate may be used for."""
    return set(certificate(path).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_every_file_can_be_read_by_its_owner_alone(made: Credentials) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.lab.rglob("*") if path.is_file()}
    assert len(modes) >= 8
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(made.directory.stat().st_mode) == 0o700


def test_the_labs_own_authority_has_signed_both_certificates(made: Credentials) -> None:
    authority = certificate(made.authority)
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for path in (made.serving_certificate, made.etcd_certificate):
        certificate(path).verify_directly_issued_by(authority)


def test_the_authoritys_key_is_kept_nowhere(made: Credentials) -> None:
    authority = certificate(made.authority).public_key()
    for path in made.directory.glob("*.key"):
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.public_key() != authority


def test_the_serving_certificate_names_loopback_and_the_kubernetes_service_and_is_no_clients(made: Credentials) -> None:
    names = certificate(made.serving_certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = names.get_values_for_type(x509.IPAddress)
    assert set(addresses) == {ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("10.0.0.1")}
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)
    assert uses(made.serving_certificate) == {ExtendedKeyUsageOID.SERVER_AUTH}
    assert uses(made.etcd_certificate) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_each_certificate_belongs_to_its_key(made: Credentials) -> None:
    pairs = ((made.serving_certificate, made.serving_key), (made.etcd_certificate, made.etcd_key))
    for path, key_path in pairs:
        key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
        assert key.public_key() == certificate(path).public_key()


def test_the_token_file_has_one_line_per_user_as_the_api_server_reads_it(made: Credentials) -> None:
    rows = list(csv.reader(made.tokens.read_text().splitlines()))
    assert {row[2]: (row[1], tuple(filter(None, row[3].split(",")))) for row in rows} == USERS
    assert len({row[0] for row in rows}) == len(USERS)
    assert min(len(row[0]) for row in rows) >= 43  # 32 random bytes


def test_two_labs_share_no_token_and_no_authority(made: Credentials, tmp_path: Path) -> None:
    other = Credentials(tmp_path / "other")
    other.lab.mkdir()
    other.ensure()
    assert not {made.token(user) for user in USERS} & {other.token(user) for user in USERS}
    assert certificate(made.authority).public_key() != certificate(other.authority).public_key()


def test_credentials_that_are_there_are_kept(made: Credentials) -> None:
    before = {path: path.read_bytes() for path in made.directory.iterdir()}
    made.ensure()
    assert {path: path.read_bytes() for path in made.directory.iterdir()} == before


def test_half_made_credentials_are_made_anew(made: Credentials) -> None:
    made.tokens.unlink()
    made.serving_key.unlink()
    made.ensure()
    test_each_certificate_belongs_to_its_key(made)


def test_the_administrators_kubeconfig_needs_no_other_file(made: Credentials) -> None:
    path = made.kubeconfig(ADMIN)
    assert path == made.lab / "kubeconfig"
    document = yaml.safe_load(path.read_text())
    assert document["current-context"] == "lab-test"
    assert set(document["clusters"][0]["cluster"]) == {"server", "certificate-authority-data"}
    assert document["users"][0]["user"] == {"token": made.token(ADMIN)}


def test_the_official_client_takes_the_kubeconfig(made: Credentials) -> None:
    assert connect(made.kubeconfig(ADMIN)).server == "https://127.0.0.1:6443"
