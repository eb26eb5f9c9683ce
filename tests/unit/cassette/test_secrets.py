"""No planted secret of any kind survives in any encoding, and what looks like one but isn't is left alone."""

import base64
import json
import random
import string
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.cassette.secrets import LEARNED, Learned, hidden, scan
from pytest_agentlatency.model.recording import Request

ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"


def some(alphabet: str, size: int, seed: int) -> str:
    """Characters at random, a digit and a capital among them: what a key of that length practically always holds."""
    drawn = random.Random(seed)  # noqa: S311
    return "".join(drawn.choices(alphabet, k=size - 8)) + "a7Kq9Zx2"


# Prefixes and lengths as their issuers document them; the rest of each is random.
KINDS = {
    "anthropic": lambda n: "sk-ant-api03-" + some(WORD, 93, n) + "AA",
    "anthropic oauth": lambda n: "sk-ant-oat01-" + some(WORD, 93, n) + "AA",
    "openai": lambda n: "sk-" + some(ALNUM, 48, n),
    "openai project": lambda n: "sk-proj-" + some(WORD, 124, n),
    "openrouter": lambda n: "sk-or-v1-" + some("0123456789abcdef", 56, n) + "0d1c2b3a",
    "deepseek": lambda n: "sk-" + some("0123456789abcdef", 24, n)[:-8] + "0a1b2c3d4e5f6a7b",
    "google": lambda n: "AIzaSy" + some(WORD, 33, n),
    "groq": lambda n: "gsk_" + some(ALNUM, 52, n),
    "xai": lambda n: "xai-" + some(ALNUM, 80, n),
    "hugging face": lambda n: "hf_" + some(string.ascii_letters, 34, n),
    "aws id": lambda n: "AKIA" + some(string.ascii_uppercase + "234567", 16, n)[:-8] + "Q2WXYZ34",
    "github": lambda n: "ghp_" + some(ALNUM, 36, n),
    "github fine-grained": lambda n: "github_pat_" + some(ALNUM, 22, n) + "_" + some(ALNUM, 59, n),
    "gitlab": lambda n: "glpat-" + some(WORD, 20, n),
    "slack": lambda n: "xoxb-123456789012-1234567890123-" + some(ALNUM, 24, n),
    "stripe": lambda n: "sk_live_" + some(ALNUM, 24, n),
    "bearer": lambda n: "Bearer " + some(ALNUM, 32, n),
    "jwt": lambda n: ".".join(
        [
            *(
                base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "n": n}).encode()).decode().rstrip("=")
                for _ in "hp"
            ),
            some(WORD, 43, n),
        ]
    ),
    "cookie": lambda n: f"set-cookie: __cf_bm={some(WORD, 40, n)}; path=/; HttpOnly",
    "private key": lambda n: (
        f"-----BEGIN RSA PRIVATE KEY-----\n{some(ALNUM + '+/', 64, n)}\n{some(ALNUM, 64, n)}\n"
        "-----END RSA PRIVATE KEY-----"
    ),
    "url password": lambda n: f"postgres://app:{some(ALNUM, 16, n)}@db.example.org/app",
    "url key": lambda n: f"https://maps.example.org/v1?q=x&key={some(ALNUM, 32, n)}",
    "openai organisation": lambda n: "org-" + some(ALNUM, 24, n),
    "anthropic organisation": lambda n: (
        f'"anthropic-organization-id": "0f3b{n % 10000:04d}-89ab-4def-8123-456789abcdef"'
    ),
    "aws account": lambda n: f"arn:aws:bedrock:eu-west-1:{910_000_000_000 + n % 10**9}:inference-profile/x",
}

ENCODINGS = {
    "plain": lambda secret: secret,
    "json": lambda secret: json.dumps({"note": secret}),
    "json in json": lambda secret: json.dumps({"note": json.dumps({"note": f"first line\n{secret}"})}),
    "json in json in text": lambda secret: "It said " + json.dumps(json.dumps(["x\n" + secret])),
    "unicode escapes": lambda secret: "".join(f"\\u{ord(each):04x}" for each in secret),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "url-safe base64 of a text around it": lambda secret: base64.urlsafe_b64encode(
        f"ab {secret} tail".encode()
    ).decode(),
    "base64 behind other characters": lambda secret: "x1" + base64.b64encode(b"{" + secret.encode() + b"}").decode(),
    "wrapped base64": lambda secret: base64.encodebytes(f"some words before {secret}\n".encode()).decode(),
    "percent": lambda secret: "q=" + quote(secret, safe=""),
    "json in base64": lambda secret: base64.b64encode(json.dumps({"note": "a\n" + secret}).encode()).decode(),
    "percent in json": lambda secret: json.dumps({"url": "https://host/?u=" + quote(f" {secret} ", safe="")}),
    "utf-16": lambda secret: secret.encode("utf-16-le"),
    "an object's key": lambda secret: json.dumps({secret: 1}),
    "a repeated key": lambda secret: '{"a": ' + json.dumps(secret) + ', "a": "b"}',
    "pieces of a stream": lambda secret: "".join(
        "event: content_block_delta\ndata: "
        + json.dumps({"type": "x", "delta": {"text": secret[at : at + 5]}})
        + "\n\n"
        for at in range(0, len(secret), 5)
    ),
    "pieces of a stream beside line separators": lambda secret: "".join(
        "data: " + json.dumps({"id": "\u2028\x85", "text": secret[at : at + 5]}, ensure_ascii=False) + "\r\n\r\n"
        for at in range(0, len(secret), 5)
    ),
    "a tool result": lambda secret: json.dumps(
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": f"env:\nKEY={secret}\n"}]}]}
    ),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_planted_secret_is_found_and_never_told(kind, encoding, seed):
    secret = KINDS[kind](seed)
    content = ENCODINGS[encoding](secret)
    findings = scan([("interactions[0].request.body", content)])
    assert findings, f"{kind} in {encoding}"
    told = repr(findings)
    longest = max(secret.replace("\n", " ").split(), key=len)
    assert longest not in told
    assert all(
        each.place.startswith("interactions[0].request.body") for each in findings if encoding != "an object's key"
    )


@settings(deadline=None)
@given(secret=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 2**32), encoding=st.sampled_from(sorted(ENCODINGS)))
def test_hidden_text_holds_no_secret_and_keeps_its_length(secret, seed, encoding):
    content = ENCODINGS[encoding](KINDS[secret](seed))
    text = content if isinstance(content, str) else content.decode("latin-1")
    shown = hidden(text)
    assert len(shown) == len(text)
    assert not scan([("", shown)])


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), encoding=st.sampled_from(sorted(ENCODINGS)))
def test_value_seen_in_an_auth_header_is_found_whatever_its_shape(seed, encoding):
    """A company gateway's key has no prefix."""
    secret = some(string.ascii_lowercase + string.digits, 24, seed)
    learned = Learned()
    learned.add(Request("POST", "https://host/", (("Authorization", f"Bearer {secret}"),)))
    findings = scan([("body", ENCODINGS[encoding](secret))], learned)
    assert LEARNED in {finding.kind for finding in findings}
    assert secret not in repr((findings, learned))


@settings(deadline=None)
@given(before=st.binary(max_size=8), after=st.binary(max_size=8))
def test_learned_value_is_found_at_any_offset_of_base64(before, after):
    learned = Learned(["gateway-key-0123456789"])
    content = base64.b64encode(before + b"gateway-key-0123456789" + after)
    assert scan([("body", b"x" + content)], learned)


def test_credentials_are_learned_from_every_header_that_carries_them():
    headers = (
        ("X-Api-Key", "first-key-0001"),
        ("api-key", "second-key-0002"),
        ("x-goog-api-key", "third-key-0003"),
        ("Cookie", "sid=fourth-key-0004; theme=dark"),
        ("content-type", "application/json"),
    )
    learned = Learned()
    learned.add(Request("POST", "https://host/v1?alt=sse&key=fifth-key-0005", headers))
    for value in ("first-key-0001", "second-key-0002", "third-key-0003", "fourth-key-0004", "fifth-key-0005"):
        assert scan([("body", f"it is {value}!")], learned), value
    assert not scan([("body", "application/json dark sse")], learned)


@pytest.mark.parametrize("prefix", ["sk-ant-api03-", "sk-proj-"])
@pytest.mark.parametrize("before", ["backup-", "KEY_"])
def test_key_that_follows_on_a_name_is_found(before, prefix):
    assert scan([("tool name", f"{before}{prefix}4f8Qz1LmX7cVb2NkW9sRtY3u")])


@pytest.mark.parametrize("word", ["test", "anything", "not-needed", "EMPTY", "dummy"])
def test_placeholder_key_of_a_local_server_is_an_ordinary_word(word):
    learned = Learned()
    learned.add(Request("POST", "http://127.0.0.1/", (("x-api-key", word),)))
    assert not scan([("body", f"This is {word}, says the prompt.")], learned)


def test_key_in_header_result_url_and_base64_is_named_by_place_only_a25():
    key = KINDS["anthropic"](1)
    body = {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": f"KEY={key}"}]}]}
    fields = [
        ("request.headers.x-note", key),
        ("request.body", json.dumps(body)),
        ("request.url", f"https://host/v1?debug={key}"),
        ("response.body", json.dumps({"blob": base64.b64encode(key.encode()).decode()})),
    ]
    findings = scan(fields)
    assert [each.place for each in findings] == [
        "request.headers.x-note", "request.body: messages[0].content[0].content", "request.url", "response.body: blob",
    ]  # fmt: skip
    assert {each.kind for each in findings} == {"Anthropic key"}


def test_leak_checker_prints_nothing_of_the_leak_a27(capsys, caplog):
    key = KINDS["openai project"](2)
    print(scan([(f"body of {key}", json.dumps({key: key}))]), Learned([key]))  # noqa: T201
    printed = capsys.readouterr()
    assert key not in printed.out + printed.err + caplog.text
    assert "OpenAI-style key" in printed.out


def realistic() -> str:
    """A request with everything in it that looks random and is none of anyone's secrets."""
    drawn = random.Random(7)  # noqa: S311
    image = base64.b64encode(drawn.randbytes(300_000)).decode()
    signature = base64.b64encode(drawn.randbytes(4_000)).decode()
    content = [
        {"type": "text", "text": "Set max_tokens=4096, then ask: is sk-learn the risk-free task-runner of 2024-05-06?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}},
        {"type": "thinking", "thinking": "hm", "signature": signature},
        {"type": "redacted_thinking", "data": signature},
        {
            "type": "tool_use",
            "id": "toolu_01A09q90qw90lq917835lq9",
            "name": "search",
            "input": {"key": "colour", "token": 5},
        },
        {
            "type": "tool_result",
            "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
            "content": "sha256 " + "9f86d081884c7d65" * 4,
        },
        {
            "type": "tool_result",
            "tool_use_id": "call_SkTx0Qm5mQbqYyKnGTD5kb8P",
            "content": "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
        },
        {"type": "text", "text": "uuid 0f3b8d8e-89ab-4def-8123-456789abcdef, page_token=CAUQAA1234567890abcdef"},
        {
            "type": "text",
            "text": "`Authorization: Bearer $TOKEN`, api_key=os.environ['KEY'], sk-..., sk-ant-xxxxxxxxxxxxxxxxxxxx",
        },
        {
            "type": "text",
            "text": "postgres://user:password@localhost/db, AKIAIOSFODNN7EXAMPLE, arn:aws:iam::123456789012:role/x",
        },
        {
            "type": "text",
            "text": "https://example.org/a/very/long/path-with-dashes_and_2024/index.html?next_token=abc123abc123abc123",
        },
        {
            "type": "text",
            "text": "<div class='sk-toggleable__content sk-estimator-doc-link-1'>The key idea: secret=yes</div>",
        },
        {"type": "text", "text": "-----BEGIN CERTIFICATE-----\n" + signature[:64] + "\n-----END CERTIFICATE-----"},
    ]
    ids = [
        "msg_01XFDUDYJgAACzvnptvVoYEL",
        "req_011CSHoEeqs5C35K2UUqR7Fy",
        "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "resp_68af4030baa48193b0b43b4c2a176a1a0e6967589f080e78",
        "fp_44709d6fcb",
        "sha256:9f86d081884c7d65",
    ]
    body = {"model": "claude-sonnet-4-5-20250929", "messages": [{"role": "user", "content": content}], "ids": ids}
    return json.dumps({**body, "encrypted_content": "gAAAAAB" + signature.replace("+", "-").replace("/", "_")})


def test_images_hashes_ids_and_signatures_are_no_secrets():
    body = realistic()
    assert scan([("request.body", body), ("as a string", json.dumps(body)), ("as text", "say: " + body)]) == ()


def test_stream_of_ordinary_answer_is_clean():
    words = ["The", "quick", "brown", "fox", "says", "msg_01XFDUDYJgAACzvnptvVoYEL", "and", "jumps."]
    events = ("data: " + json.dumps({"type": "content_block_delta", "delta": {"text": word + " "}}) for word in words)
    assert scan([("response.body", "\n\n".join(events))]) == ()


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_any_content_is_searched_without_an_error(content):
    scan([("body", content)])


@settings(deadline=None)
@given(
    st.recursive(
        st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    )
)
def test_any_json_is_searched_without_an_error(value):
    scan([("body", json.dumps(value))])


@pytest.mark.parametrize(
    "content",
    [
        "\\" * 200_000,
        "api_key=" * 50_000,
        "bearer " * 50_000,
        "A" * 400_000,
        "sk-ant-" * 50_000,
        "-----BEGIN PRIVATE KEY-----\n" + "a: " * 50_000,
        "?key_" * 50_000,
        "[" * 600 + "]" * 600,
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
    ],
    ids=lambda content: f"{content[:12]} x {len(content)}",
)
def test_hostile_content_is_searched_in_linear_time(content):
    """Quadratic time would take minutes."""
    assert not scan([("body", content)])
