"""Keys, certificates, tokens and kubeconfigs of one lab, made anew for each lab.

An authority of the lab's own signs two certificates: one by which the listeners of Kubernetes prove who they are, and
one for etcd, which also lets the API server in as etcd's only client. Users are known by random tokens.
"""

import base64
import datetime
import ipaddress
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml

from berkelium_lab.paths import private_directory, write_private
from berkelium_lab.ports import LOOPBACK

SERVICE_CIDR = "10.0.0.0/24"
SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")

ADMIN = "admin"

USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    ADMIN: ("admin", ("system:masters",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kwok": ("kwok", ("system:masters",)),
    "hardware": ("hardware", ("system:masters",)),
}
"""User name and groups for each kubeconfig of a lab. The control plane has the identities it has in real clusters."""

_LIFETIME = datetime.timedelta(days=3650)


@dataclass(frozen=True)
class Credentials:
    """The files of the credentials of the lab in directory `lab`. `ensure` makes those that are missing."""

    lab: Path

    @property
    def directory(self) -> Path:
        return self.lab / "credentials"

    @property
    def authority(self) -> Path:
        return self.directory / "authority.crt"

    @property
    def serving_certificate(self) -> Path:
        return self.directory / "serving.crt"

    @property
    def serving_key(self) -> Path:
        return self.directory / "serving.key"

    @property
    def etcd_certificate(self) -> Path:
        return self.directory / "etcd.crt"

    @property
    def etcd_key(self) -> Path:
        return self.directory / "etcd.key"

    @property
    def service_account_key(self) -> Path:
        return self.directory / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.csv"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of one of `USERS`; people are given the administrator's, so it lies in plain view."""
        if user == ADMIN:
            return self.lab / "kubeconfig"
        return self.directory / f"{user}.kubeconfig"

    def ensure(self) -> None:
        """Make what is missing. The token file is written last and so tells that everything is there."""
        if self.tokens.exists():
            return
        private_directory(self.directory)
        _write_certificates(self)
        lines = (
            f'{secrets.token_urlsafe(32)},{name},{user},"{",".join(groups)}"' for user, (name, groups) in USERS.items()
        )
        write_private(self.tokens, "\n".join(lines) + "\n")

    def token(self, user: str) -> str:
        """The token of one of `USERS`."""
        for line in self.tokens.read_text(encoding="utf-8").splitlines():
            token, _, uid, _ = line.split(",", 3)
            if uid == user:
                return token
        raise KeyError(user)

    def write_kubeconfigs(self, cluster: str, server: str) -> None:
        """Write the kubeconfig of every user for the API server at `server`."""
        for user in USERS:
            write_private(self.kubeconfig(user), self._kubeconfig(cluster, server, user))

    def _kubeconfig(self, cluster: str, server: str, user: str) -> str:
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": f"{cluster}-{user}", "user": {"token": self.token(user)}}],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": f"{cluster}-{user}"}}],
            "current-context": cluster,
        }
        return yaml.safe_dump(document, sort_keys=False)


def _write_certificates(files: Credentials) -> None:
    # Imported late: the library is slow to load, and a lab that exists needs none of it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
        encoding = serialization.Encoding.PEM
        return key.private_bytes(
            encoding, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ).decode()

    def named(common_name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        )

    def sign(certificate: x509.CertificateBuilder) -> str:
        return certificate.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()

    def key_usage(signs_certificates: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=signs_certificates,
            crl_sign=signs_certificates,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )

    def issue(certificate: Path, key_file: Path, names: tuple[str, ...], uses: list[x509.ObjectIdentifier]) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        addresses = [ipaddress.ip_address(LOOPBACK), ipaddress.ip_network(SERVICE_CIDR)[1]]
        alternatives = [*(x509.DNSName(name) for name in names), *(x509.IPAddress(each) for each in addresses)]
        signed = (
            builder(named(names[0]), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        )
        write_private(certificate, sign(signed))
        write_private(key_file, key_pem(key))

    # The authority's own key is never written: nothing else is ever signed with it.
    authority = ec.generate_private_key(ec.SECP256R1())
    issuer = named("berkelium-lab")
    own = (
        builder(issuer, authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
    )
    write_private(files.authority, sign(own))
    server, client = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
    issue(files.serving_certificate, files.serving_key, ("localhost", *SERVICE_NAMES), [server])
    issue(files.etcd_certificate, files.etcd_key, ("localhost",), [server, client])
    write_private(files.service_account_key, key_pem(ec.generate_private_key(ec.SECP256R1())))
