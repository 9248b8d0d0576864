"""The shapes of secrets, and finding them in a text.

Two kinds are known. A *named* secret is the value that something calls a password, a
token or a key: in an assignment, a header, an option of a command, an address. An
*issued* one has the shape that a service gives its keys. The table of issued ones
follows the documentation of those services; a test holds it against the rules of
`detect-secrets`, so a shape that is added there is missed here only until its release
is tested.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

from sessiondb.dataclass import dataclass
from sessiondb.patterns import late_pattern

#: Words that a schema, a form or a program has in the place of a secret.
_PLACEHOLDERS = frozenset(
    "none null true false undefined string number integer boolean required optional "
    "unknown default disabled enabled hidden masked redacted example str int bool "
    "bytes object password passwd secret token credentials".split()
)
#: Names of what a person types, and of what a program is given.
_PERSONAL = (
    r"passw(?:or)?d|passphrase|passcode|(?<![a-z])pass(?![a-z])|(?<![a-z])pwd(?![a-z])"
    r"|(?-i:(?<=[a-z])(?:Pass|Pwd)(?![a-z]))"
)
_MACHINE = (
    r"(?:api|private|access|account|auth|encryption|signing|secret|service)[ _-]?key"
    r"|secret|token(?!i[sz])|credential|authorization|connection[_-]?string"
)
#: A name of a secret; ``_`` and digits may surround it, as in ``DB_PASS_2``.
SECRET_NAME = late_pattern(rf"(?i:{_PERSONAL}|{_MACHINE})")
_NAME_OF_PERSONAL = late_pattern(rf"(?i:{_PERSONAL})")
# A value in quotes, which may be escaped (JSON within JSON), or up to the next space.
_QUOTED = r"(?P<quote>\\*[\"'`])(?P<value>[^\n]{1,500}?)(?P=quote)"
_BARE = r"(?P<bare>[^\s\"'`\\]{4,500})"
_BETWEEN = r"[\w.-]{0,40}\\*[\"'`\]]{0,2}"
_ASSIGNS = r"\s{0,20}(?::=|=>|[:=])\s{0,20}"
# "Authorization: Bearer …": the scheme is not the secret.
_SCHEME = r"(?:(?:bearer|basic|digest|token|apikey)\s{1,3})?"
_VALUE = rf"{_SCHEME}(?:{_QUOTED}|{_BARE})"
#: A number, a name with dots or underscores, a variable of a shell, a call or an index.
_ORDINARY = late_pattern(
    r"[\d.,:/-]+|[$<{%]*[A-Za-z_.-]+[>}%]*|[\w.]*[(\[{].*", re.DOTALL
)

#: A number of tokens as programs report it: ``4096``, ``2.4k``, ``12000 tokens left``.
_COUNT = late_pattern(r"\d+(?:[.,]\d+)*[kKM]?(?: tokens?\b[a-z ]*)?")


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text."""

    #: The places of the first character of its value, and of the one after the last.
    start: int
    end: int
    kind: str
    #: Whether the same value is a secret wherever else it occurs.
    is_named: bool
    #: Whether it was written as a password, and not as a name in a program: then it may
    #: be a word.
    is_literal: bool = False


@dataclass(frozen=True, slots=True)
class _Shape:
    """A kind of secret."""

    kind: str
    #: A text that has none of these in lower case has no such secret.
    clues: tuple[str, ...]
    #: The group ``value`` or ``bare`` is the secret, else the complete match.
    pattern: re.Pattern[str]
    is_named: bool = False


def _shape(kind: str, clues: str, pattern: str) -> _Shape:
    return _Shape(kind, tuple(clues.split()), re.compile(pattern))


def _named_shape(kind: str, clues: str, pattern: str) -> _Shape:
    return _Shape(kind, tuple(clues.split()), re.compile(f"(?i:{pattern})"), True)


_NAMED = (
    # The last name of a chain has the value: "credentials: password = …".
    _named_shape(
        "named secret",
        "pass pwd key secret token credential authorization string",
        rf"(?P<name>{_PERSONAL}|{_MACHINE}){_BETWEEN}{_ASSIGNS}"
        rf"(?:[\w.-]{{0,40}}?(?:{_PERSONAL}|{_MACHINE}){_BETWEEN}{_ASSIGNS})*{_VALUE}",
    ),
    _named_shape(
        "named secret",
        "pass pwd key secret token",
        rf"(?P<name>{_PERSONAL}|{_MACHINE})[\w-]{{0,40}} (?:is|was)(?: now)?:? "
        r"(?=\S*\d)(?:" + _QUOTED + "|" + _BARE + ")",
    ),
    _named_shape(
        "named secret",
        "pass pwd key secret token",
        rf"(?P<name>{_PERSONAL}|{_MACHINE})[\w-]{{0,40}}\(\s{{0,20}}{_QUOTED}",
    ),
    _named_shape(
        "named secret",
        "</",
        rf"<(?P<name>[\w:.-]{{0,40}}(?:{_PERSONAL}|{_MACHINE})[\w-]{{0,40}})>"
        r"(?P<value>[^<\n]{1,500})</",
    ),
    _named_shape(
        "option of a command",
        "--",
        rf"--?[\w-]{{0,40}}(?P<name>{_PERSONAL}|{_MACHINE})[\w-]{{0,40}}[ =]\s{{0,3}}"
        rf"(?!-){_VALUE}",
    ),
    # curl -u user:password
    _named_shape(
        "option of a command",
        "-u --user",
        r"(?<!\S)(?:-u ?|--(?:proxy-)?user[ =])[\"']?[^\s:\"'/]{0,100}:"
        r"(?P<bare>[^\s\"']{1,500})",
    ),
    # mysql -pVALUE, sshpass -p VALUE, redis-cli -a VALUE, docker login -p VALUE
    _named_shape(
        "option of a command",
        "mysql maria",
        r"\b(?:mysql|maria)\w*(?:-\w+)*(?: [^\n|;&]{0,200}?)? -p"
        r"(?P<bare>[^\s\"']{3,500})",
    ),
    _named_shape(
        "option of a command",
        "sshpass redis-cli login",
        r"\b(?:sshpass|(?:docker|podman|az|helm)[^\n|;&]{0,40} login)"
        rf"[^\n|;&]{{0,200}}? -p ?(?:{_QUOTED}|{_BARE})",
    ),
    _named_shape(
        "option of a command",
        "redis-cli",
        rf"\bredis-cli[^\n|;&]{{0,200}}? -a ?(?:{_QUOTED}|{_BARE})",
    ),
    # .netrc: machine NAME login NAME password VALUE
    _named_shape(
        ".netrc password",
        "login",
        r"\b(?:login|user)\s+\S{1,200}\s+(?:account\s+\S{1,200}\s+)?"
        r"password\s+(?P<bare>\S{1,500})",
    ),
    _named_shape(
        "password of an account",
        "identified password",
        r"\b(?:identified by|(?:role|user) [^\n;]{0,200}? password) +"
        r"'(?P<value>[^'\n]{1,500})'",
    ),
    # PGP and basic addresses: user:password@host
    _named_shape(
        "password in an address",
        "://",
        r"://[^\s/:@]{0,200}:(?P<value>[^\s/@]{1,500})@",
    ),
    _named_shape(
        "cookie", "cookie:", r"\b(?:set-)?cookie: *(?P<value>[^\n\"']{4,4000})"
    ),
    _named_shape(
        "authorization",
        "bearer basic",
        # Not "basic instructions".
        r"\b(?:bearer|basic) (?!(?-i:[A-Z]?[a-z]+)\.?(?![\w.~+/=-]))"
        r"(?P<value>[\w.~+/=-]{12,})",
    ),
)
#: Kind, what a text with one has in lower case, and the shape.
_ISSUED = (
    # One that is cut off is removed up to the end of the text.
    _shape(
        "private key",
        "begin",
        r"----[- ]BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?[- ]----(?s:.*?)"
        r"(?:----[- ]END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?[- ]----|\Z)",
    ),
    _shape("private key", "putty-user-key-file-", r"PuTTY-User-Key-File-\d(?s:.*)"),
    _shape("private key", "age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    _shape(
        "JSON web token",
        "eyj",
        r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.?[\w.+/=-]*",
    ),
    _shape(
        "AWS key",
        "a3t abia acca akia asia",
        r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}",
    ),
    _shape(
        "AWS key",
        "aws",
        r"(?i:aws.{0,20}?(?:key|pwd|pw|pass|token).{0,20}?"
        r"[\"'](?P<value>[0-9a-z/+]{40})[\"'])",
    ),
    _shape(
        "Azure key",
        "accountkey= sharedaccesskey= sig=",
        r"(?:AccountKey|SharedAccessKey|[?&]sig)=[\w%+/=-]{20,}",
    ),
    _shape("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9_]{20,}"),
    _shape("GitHub token", "github_pat_", r"github_pat_\w{20,}"),
    _shape(
        "GitLab token",
        "gl",
        r"gl(?:pat|dt|ft|soat|rt|cbt|ptt|imt|agent|oas|ffct)-[\w-]{16,}",
    ),
    _shape("GitLab token", "gr1348941", r"GR1348941[\w-]{16,}"),
    _shape("Atlassian token", "atatt3 atbb", r"(?:ATATT3|ATBB)[\w=-]{20,}"),
    _shape("Google key", "aiza", r"AIza[\w-]{30,}"),
    _shape("Google key", "gocspx-", r"GOCSPX-[\w-]{20,}"),
    _shape("Google token", "ya29.", r"ya29\.[\w.-]{20,}"),
    _shape("Google token", "1//0", r"(?<![\w/])1//0[\w-]{30,}"),
    _shape("Slack token", "xox", r"(?i:xox[a-z](?:\.xox[a-z])?-[\w-]{10,})"),
    _shape("Slack token", "xapp-", r"(?i:xapp-[\w-]{10,})"),
    _shape(
        "Slack webhook",
        "hooks.slack.com",
        r"(?i:hooks\.slack\.com/services/T\w+/B\w+/\w+)",
    ),
    _shape(
        "Stripe key", "_live_ _test_", r"(?:sk|pk|rk)_(?:live|test)_[0-9a-zA-Z]{10,}"
    ),
    _shape("Stripe key", "whsec_", r"whsec_[\w+/=]{16,}"),
    _shape(
        "API key",
        "sk- pk- rk- sk_ pk_ rk_",
        r"(?<![A-Za-z0-9])(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}",
    ),
    _shape(
        "API key",
        "gsk_ xai- pplx- r8_ hf_ nvapi- tvly- fw_",
        r"(?<![A-Za-z0-9])(?:gsk_|xai-|pplx-|r8_|hf_|nvapi-|tvly-|fw_)[\w-]{16,}",
    ),
    _shape("npm token", "npm_", r"npm_[\w-]{16,}"),
    _shape("npm token", "_authtoken=", r"(?<=:_authToken=)[^\S\n]*[^\s\"']{4,}"),
    _shape("PyPI token", "pypi-", r"pypi-[\w-]{16,}"),
    _shape("RubyGems key", "rubygems_", r"rubygems_[0-9a-f]{20,}"),
    _shape("Docker token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{16,}"),
    _shape(
        "Artifactory key",
        "akc ap",
        r"(?<![^\s=:\"])(?:AKC[a-zA-Z0-9]{10,}|AP[\dABCDEF][a-zA-Z0-9]{8,})(?![^\s\"])",
    ),
    _shape("SendGrid key", "sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _shape("Mailgun key", "key-", r"(?<![\w-])key-[0-9a-f]{32}"),
    _shape("Mailchimp key", "-us", r"[0-9a-z]{32}-us\d{1,2}"),
    _shape("Twilio key", "ac sk", r"(?:AC|SK)[a-z0-9]{32}"),
    _shape("Telegram token", ":", r"(?<!\d)\d{8,10}:[\w-]{35}"),
    _shape("Discord token", ".", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    _shape(
        "Discord webhook",
        "discord",
        r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}",
    ),
    _shape("Square token", "sq0", r"sq0[a-z]{3}-[\w\\-]{22,}"),
    _shape("Square token", "eaaa", r"EAAA[\w-]{60}"),
    _shape("Shopify token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{20,}"),
    _shape("DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{32,}"),
    _shape("Databricks token", "dapi", r"dapi[0-9a-f]{32}"),
    _shape("Vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{20,}"),
    _shape("Terraform token", ".atlasv1.", r"[\w-]{10,20}\.atlasv1\.[\w-]{40,}"),
    _shape("Linear key", "lin_api_", r"lin_api_[\w-]{20,}"),
    _shape("Notion token", "ntn_", r"ntn_\w{20,}"),
    _shape("Figma token", "figd_", r"figd_[\w-]{20,}"),
    _shape("Doppler token", "dp.", r"dp\.(?:pt|st|ct|scim|audit)\.[\w-]{20,}"),
    _shape("Postman key", "pmak-", r"PMAK-[0-9a-f-]{30,}"),
    _shape("New Relic key", "nrak-", r"NRAK-[A-Z0-9]{20,}"),
    _shape("Grafana token", "glsa_", r"glsa_\w{20,}"),
    _shape("Supabase token", "sbp_", r"sbp_[0-9a-f]{20,}"),
    _shape("Sentry token", "sntry", r"sntry[su]_[\w+/=-]{20,}"),
    _shape("PlanetScale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{20,}"),
    _shape("Alibaba key", "ltai", r"LTAI[A-Za-z0-9]{16,}"),
)
_SHAPES = (*_ISSUED, *_NAMED)


def find_secrets(text: str) -> Iterator[Secret]:
    """Yield the secrets in *text*; those of different shapes may overlap."""
    lower = text.lower()
    for shape in _SHAPES:
        if not any(clue in lower for clue in shape.clues):
            continue
        for match in shape.pattern.finditer(text):
            group = _value_group(match)
            if shape.is_named and _is_placeholder(match, match[group]):
                continue
            start, end = match.span(group)
            literal = shape.is_named and _is_literal(match, group)
            yield Secret(start, end, shape.kind, shape.is_named, literal)


def _value_group(match: re.Match[str]) -> int | str:
    groups = match.groupdict()
    for name in ("value", "bare"):
        if groups.get(name) is not None:
            return name
    return 0


def _is_placeholder(match: re.Match[str], value: str) -> bool:
    """Return whether the value of a name is not a secret: a word, a count of tokens."""
    if value.strip(".,;:)}]").lower() in _PLACEHOLDERS:
        return True
    name = match.groupdict().get("name") or ""
    is_count = _COUNT.fullmatch(value.strip(".,;:)}]")) is not None
    return "token" in name.lower() and is_count


def _is_literal(match: re.Match[str], group: int | str) -> bool:
    """Return whether a named value is a password as it is typed.

    ``password = response`` is a program, ``DB_PASS=swordfish`` and ``"swordfish"`` are
    not; a shape without a name has it in a place of its own, as ``curl -u`` does.
    """
    name = match.groupdict().get("name")
    if name is None:
        return True
    if not is_password_name(name):
        return False
    if group == "value" or name.isupper():
        return True
    # --password VALUE, but not --pass-through VALUE.
    before, after = match.string[match.start()], match.string[match.end("name")]
    return before == "-" and after in " ="


def is_secret_name(name: str) -> bool:
    """Return whether *name* is that of a secret."""
    return SECRET_NAME.search(name) is not None


def is_password_name(name: str) -> bool:
    """Return whether *name* is that of a password, which may be a number."""
    return _NAME_OF_PERSONAL.search(name) is not None


def is_distinctive(value: str) -> bool:
    """Return whether a named secret may be searched for in other texts.

    A word, a number, a name or an expression of a program would be found in many.
    """
    if len(value) < 6 or _ORDINARY.fullmatch(value):
        return False
    return not value.isalpha()


def is_word(value: str) -> bool:
    """Return whether a literal password may be searched for, as a complete word."""
    plain = value.isalpha() or value.isdecimal()
    return plain and len(value) >= 6 and value.lower() not in _PLACEHOLDERS


def words_pattern(words: set[str]) -> re.Pattern[str] | None:
    """Return what finds each of *words* as a complete word; None for none."""
    if not words:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(words)))})(?!\w)")


def spellings(value: str) -> set[str]:
    """Return the ways in which a text can have *value*: plain, and escaped.

    JSON within JSON, a shell, an address and a page escape signs of their own.
    """
    json_text = json.dumps(value, ensure_ascii=False)[1:-1]
    return {
        value,
        json_text,
        json.dumps(value)[1:-1],
        json.dumps(json_text, ensure_ascii=False)[1:-1],
        json_text.replace("'", "\\'"),
        quote(value, safe=""),
        quote_plus(value),
        html.escape(value),
        html.escape(value, quote=False),
        base64.b64encode(value.encode("utf-8", "surrogatepass")).decode(),
    }


def substitute_secrets(
    text: str,
    place: str,
    count: Callable[[str, str], None],
    repeated: list[str],
    words: re.Pattern[str] | None = None,
) -> str:
    """Return *text* with *place* for each secret, and for *repeated* and *words*.

    *count* is called with the kind and the text of each. Secrets that overlap are one.
    """
    pieces, done = [], 0
    for secret in sorted(find_secrets(text), key=lambda each: (each.start, -each.end)):
        if secret.end <= done:
            continue
        if secret.start >= done:
            pieces.append(text[done : secret.start])
            pieces.append(place)
            count(secret.kind, text[secret.start : secret.end])
        done = secret.end
    text = "".join([*pieces, text[done:]])

    for value in repeated:
        for _ in range(text.count(value)):
            count("repeated secret", value)
        text = text.replace(value, place)

    if words is None:
        return text
    for word in words.findall(text):
        count("repeated secret", word)
    return words.sub(place, text)
