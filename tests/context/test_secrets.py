"""Secrets become markers, ordinary source does not change, and whole secret files have no way in."""

from __future__ import annotations

import random
import string
import sysconfig
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laguna_context.secrets import MARKER, Finding, forbidden, redact

ALNUM = string.ascii_letters + string.digits


def drawn(seed: str, count: int, alphabet: str = ALNUM) -> str:
    """A value drawn as issuers draw them; assembled here so that no real-looking secret stands in this file."""
    chooser = random.Random(seed)
    return "".join(chooser.choice(alphabet) for _ in range(count - 1)) + "7"


def key(kind: str = "RSA ", newline: str = "\n") -> str:
    body = newline.join(drawn(f"{kind}{line}", 64) for line in range(8))
    return f"-----BEGIN {kind}PRIVATE KEY-----{newline}{body}{newline}dGFpbA=={newline}-----END {kind}PRIVATE KEY-----"


URLSAFE = ALNUM + "-_"
TOKENS = {
    "aws access key": "AKIA" + drawn("aws", 16, "ABCDEFGHIJ234567").replace("7", "Q") ,
    "github token": "ghp_" + drawn("gh", 36),
    "gitlab token": "glpat-" + drawn("gl", 20, URLSAFE),
    "slack token": f"xoxb-{drawn('s1', 12, string.digits)}-{drawn('s2', 12, string.digits)}-{drawn('s3', 24)}",
    "stripe key": "sk_live_" + drawn("st", 24),
    "google api key": "AIza" + drawn("go", 35, URLSAFE),
    "anthropic key": "sk-ant-api03-" + drawn("an", 93, URLSAFE),
    "openai key": f"sk-proj-{drawn('o1', 40, URLSAFE)}T3BlbkFJ{drawn('o2', 40, URLSAFE)}",
    "hugging face token": "hf_" + drawn("hf", 34),
    "npm token": "npm_" + drawn("npm", 36),
    "pypi token": "pypi-AgEIcHlwaS5vcmc" + drawn("py", 90, URLSAFE),
    "sendgrid key": f"SG.{drawn('sg1', 22, URLSAFE)}.{drawn('sg2', 43, URLSAFE)}",
    "digitalocean token": "dop_v1_" + drawn("do", 64, "0123456789abcdef"),
    "databricks token": "dapi" + drawn("db", 32, "0123456789abcdef"),
    "json web token": f"eyJ{drawn('j1', 30)}.eyJ{drawn('j2', 60)}.{drawn('j3', 43, URLSAFE)}",
}  # fmt: skip


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("frame", ['KEY = "{}"\n', "x:\n  - {}\n", "curl -H 'X: {}' host", "{}", "é = '{}'  # 日本\n"])
def test_issued_tokens(kind: str, frame: str) -> None:
    text = "first line\n" + frame.format(TOKENS[kind])
    found = redact(text, "src/config.py")
    assert TOKENS[kind] not in found.text
    assert found.text == text.replace(TOKENS[kind], f"[redacted: {kind}]")
    assert found.findings == (Finding(kind, 1 + text[: text.index(TOKENS[kind])].count("\n"), "src/config.py"),)


NAMED = [
    ("password", 'password = "Sup3r-S3cret!x"', "Sup3r-S3cret!x", "a.py"),
    ("password", "DB_PASSWORD=kQ9vLm2#x", "kQ9vLm2#x", "deploy/app.conf"),
    ("password", "  password: kQ9vLm2#x\n", "kQ9vLm2#x", "values.yaml"),
    ("password", '{"adminPassword": "kQ9vLm2#x"}', "kQ9vLm2#x", "a.json"),
    ("secret", f'aws_secret_access_key = {drawn("sec", 40)}', drawn("sec", 40), "credentials.ini"),
    ("secret", f'api_key: "{drawn("api", 32)}"', drawn("api", 32), "a.ts"),
    ("secret", f"const clientSecret = '{drawn('cs', 30)}';", drawn("cs", 30), "a.ts"),
    ("secret", f'"auth_token" => "{drawn("at", 32)}"', drawn("at", 32), "a.php"),
    ("secret", f"+SECRET_KEY = '{drawn('dj', 50)}'", drawn("dj", 50), "a.diff"),
    ("authorization", f"Authorization: Bearer {drawn('be', 40)}", drawn("be", 40), "a.http"),
    ("url password", "postgres://app:kQ9vLm2x@db.local/x", "kQ9vLm2x", "a.py"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value", "path"), NAMED)
def test_named_values(kind: str, text: str, value: str, path: str) -> None:
    found = redact(text, path)
    assert found.text == text.replace(value, f"[redacted: {kind}]")
    assert [finding.kind for finding in found.findings] == [kind]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n"])
@pytest.mark.parametrize("kind", ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_keys_keep_the_line_count(kind: str, newline: str) -> None:
    text = f"a = 1\nK = '''{key(kind, newline)}'''\nafter = 2\n"
    found = redact(text, "a.py")
    assert found.text.count("\n") == text.count("\n")
    assert found.text.splitlines()[1].startswith("K = '''[redacted: private key]")
    assert found.text.endswith("'''\nafter = 2\n")
    assert drawn(f"{kind}3", 64) not in found.text
    assert found.findings == (Finding("private key", 2, "a.py"),)


def test_a_cut_off_private_key() -> None:
    text = key()[:300] + "\n@@ -1,2 +1,2 @@\n context line here\n"
    found = redact(text, "k.diff")
    assert drawn("RSA 1", 64) not in found.text
    assert "context line here" in found.text


ORDINARY = [
    'password = os.environ["DB_PASSWORD"]',
    'password = "changeme"',
    'password: str = Field(default="")',
    'token = "<your-token-here>"',
    "API_KEY=${API_KEY}",
    "api_key: {{ .Values.apiKey }}",
    'PASSWORD_HASHER = "django.contrib.auth.hashers.PBKDF2PasswordHasher"',
    "def reset_password_token_generator_v2(user):",
    'if "-----BEGIN PRIVATE KEY-----" in text:\n    raise ValueError("no private keys, please, in this text")',
    'secret_name = "my-app-secret-v1beta1"',
    'tokenizer = "meta-llama/Llama-3.1-8B-Instruct"',
    'integrity = "sha512-' + drawn("lock", 86, ALNUM + "+/") + '=="',
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    'uuid = "123e4567-e89b-12d3-a456-426614174000"',
    "https://user@example.com/path:80/x",
    "http://localhost:8080/@scope/package",
    "url = f'https://{user}:{password}@{host}/'",
    "postgres://user:password@localhost/db",
    'key = "x1234567890abcdef"',
    "secretKeyRef:\n  name: mysecret\n  key: password",
    'data:image/png;base64,' + drawn("png", 400, ALNUM + "+/"),
    "AKIAIOSFODNN7EXAMPL",
    "type TokenSource = oauth2.ReuseTokenSource2(nil)",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
@pytest.mark.parametrize("path", ["a.py", "a.yaml"])
def test_ordinary_text_is_left_alone(text: str, path: str) -> None:
    found = redact(text, path)
    assert found.text is text
    assert found.findings == ()


def test_ordinary_source_gives_next_to_no_findings() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = islice(sorted(library.rglob("*.py")), 0, None, 3)
    size = 0
    findings = []
    for source in sources:
        if "site-packages" in source.parts:
            continue
        text = source.read_bytes().decode("utf-8", "ignore")
        size += len(text)
        findings += redact(text, source.name).findings
    assert size > 1_000_000
    assert len(findings) < 1 + size / 1_000_000, findings


def test_a_long_line_is_scanned_in_step_with_its_length() -> None:
    bundle = "var a1=function(){return b2.tokenSecretKey9||c.password};" * 10_000
    found = redact(f'{bundle}k="{TOKENS["github token"]}";{bundle}', "bundle.min.js")
    assert [finding.kind for finding in found.findings] == ["github token"]


@pytest.mark.parametrize(
    "unit", ["a1", "aB3-", "password=", "_-", "eyJa.", "://a:", "-----BEGIN PRIVATE KEY-----\n", "A1b/"]
)
def test_hostile_repetition_ends(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    assert redact(text, "a.yaml").text.count("\n") == text.count("\n")


def test_markers_are_recognised() -> None:
    found = redact(f'a = "{TOKENS["npm token"]}"\n{key()}\n', "a")
    assert [match["kind"] for match in MARKER.finditer(found.text)] == ["npm token", "private key"]
    assert len(found.findings) == 2


PIECES = st.one_of(
    st.sampled_from([*TOKENS.values(), *(text for _, text, _, _ in NAMED), *ORDINARY, key(), key("EC ", "\\n")]),
    st.text(max_size=20),
    st.sampled_from(["\n", " ", '"', "password=", "secret: ", "token = '", "é", "://u:", "@host"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join), st.sampled_from(["a.py", "b.yaml", ".env"]))
def test_redacting_keeps_lines_and_is_done_once(text: str, path: str) -> None:
    first = redact(text, path)
    assert first.text.count("\n") == text.count("\n")
    assert bool(first.findings) == (first.text != text)
    assert len(MARKER.findall(first.text)) >= len(first.findings)
    lines = text.split("\n")
    marked = first.text.split("\n")
    for finding in first.findings:
        assert f"[redacted: {finding.kind}]" in marked[finding.line - 1]
    unmarked = [number for number, line in enumerate(marked) if not MARKER.search(line) and line]
    assert all(marked[number] in lines[number] for number in unmarked)
    again = redact(first.text, path)
    assert again.text == first.text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".env", "environment file"),
        ("deploy/.env.production", "environment file"),
        (".envrc", "environment file"),
        ("prod.env", "environment file"),
        ("keys/id_rsa", "key file"),
        ("ID_ED25519", "key file"),
        ("tls/server.key", "key file"),
        ("cert.PEM", "key file"),
        ("a/b.p12", "key file"),
        (".ssh/work", "key file"),
        ("home/.gnupg/private-keys-v1.d/x", "key file"),
        (".netrc", "credentials"),
        ("x/.pgpass", "credentials"),
        (".git-credentials", "credentials"),
        ("terraform.tfstate", "credentials"),
        (".aws/credentials", "credentials"),
        ("home/.kube/config", "credentials"),
        (".docker/config.json", "credentials"),
        ("service-account-prod.json", "credentials"),
    ],
)
def test_whole_files_that_stay_out(path: str, reason: str) -> None:
    assert forbidden(path) == reason


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", ".env.sample", "prod.env.template", "src/env.py", "environment.yml", "id_rsa.pub",
        ".ssh/config", ".ssh/known_hosts", "keys.py", "monkey", "docs/credentials.md", "config.json", "kube/config",
        "src/keyring.go", "package.json", "passwords.py", "a.keymap",
    ],
)  # fmt: skip
def test_ordinary_files_are_not_forbidden(path: str) -> None:
    assert forbidden(path) is None
