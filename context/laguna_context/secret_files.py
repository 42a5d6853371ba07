"""Files that are secrets as a whole."""

from __future__ import annotations

import re

_EXAMPLE = re.compile(r"[._-](?:example|sample|template|tmpl|dist|defaults?|schema)$")
_NAMES = (
    (re.compile(r"\.env(?:[._-][^/]+)?|\.envrc|[^/]+\.env"), "environment file"),
    (
        re.compile(r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[^/]+\.(?:pem|key|ppk|p12|pfx|p8|jks|jceks|keystore|kdbx?)"),
        "key file",
    ),
    (
        re.compile(
            r"[._]netrc|\.(?:pgpass|my\.cnf|pypirc|git-credentials|htpasswd|vault-token|dockercfg|s3cfg|boto|"
            r"vault_pass(?:word)?)|credentials\.json|client_secrets?[^/]*\.json|"
            r"service[_-]account[^/]*\.json|application_default_credentials\.json|[^/]+\.tfstate(?:\.backup)?"
        ),
        "credentials",
    ),
)
_PLACES = (
    (re.compile(r"(?:.*/)?\.ssh/(?!config$|known_hosts|authorized_keys)[^/]+(?<!\.pub)"), "key file"),
    (re.compile(r"(?:.*/)?\.(?:aws/credentials|docker/config\.json|kube/config|gem/credentials)"), "credentials"),
    (re.compile(r"(?:.*/)?\.(?:gnupg|password-store)/.*"), "key file"),
    (re.compile(r"(?:.*/)?\.config/(?:gh/hosts\.yml|gcloud/.*\.(?:json|db))"), "credentials"),
)


def forbidden(path: str) -> str | None:
    """Why a whole file must stay out of every prompt, or None; no ignore rule or selection takes it back in.

    `path` is relative and posix; letter case does not matter. Examples and templates of such files are ordinary.
    """
    lowered = path.lower()
    name = lowered.rpartition("/")[2]
    if _EXAMPLE.search(name):
        return None
    for pattern, reason in _NAMES:
        if pattern.fullmatch(name):
            return reason
    for pattern, reason in _PLACES:
        if pattern.fullmatch(lowered):
            return reason
    return None
