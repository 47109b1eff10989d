"""Decides what a failed exchange means: whether the server may have acted, and what to do about it.

Three moments, each with its function: before there was a connection (``not_connected``: the request did not
happen), before an answer began (``not_answered``: it may have), before the answer ended (``cut_short``).
With one exception: TLS 1.3 lets a client speak before the server has judged its certificate, and a server
that then refuses it has not listened.

No I/O here, and no credential gets through: what is shown and chained is what the system itself said.  Used
by ``http.py``, ``dialing.py`` and ``connection.py``.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from dataclasses import dataclass

from setpoint.errors import AnswerLost, BadAnswer, ConnectionFailed, TransportError

TEXT_LIMIT = 200  # of a peer's own words in an error

# OpenSSL's X509_V_ERR_*
_NOT_VALID_NOW = frozenset({9, 10})
_ISSUER_UNKNOWN = frozenset({18, 19, 20, 21, 27})  # self-signed, no issuer found, …
_NAME_DIFFERS = frozenset({62, 63, 64})  # host name, e-mail, IP address
_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}
)


@dataclass(frozen=True, slots=True)
class Way:
    """The way to a server, as far as errors speak of it."""

    where: str  # host:port
    name: str  # that its certificate must be for
    proxy: str = ""  # host:port
    connect_timeout: float = 30.0


def not_connected(doing: str, way: Way, error: Exception) -> ConnectionFailed:
    """Why no connection came about."""
    message, advice = _why_not_connected(way, error)
    return ConnectionFailed(doing, message, advice=advice)


def proxy_not_reached(doing: str, way: Way, error: OSError) -> ConnectionFailed:
    """Why there is no connection to the proxy."""
    if isinstance(error, socket.gaierror):
        message, advice = _name_not_known(way.proxy, error)
    else:
        message, advice = f"the proxy {way.proxy} cannot be reached: {_said(error)}", "is it up?"
    return ConnectionFailed(doing, message, advice=advice)


def proxy_refused(doing: str, way: Way, status: int, reason: str) -> ConnectionFailed:
    """Why a proxy did not connect; the status is 0 where it said nothing that makes sense."""
    advice = "ask those who run it"
    match status:
        case 0:
            message = f"the proxy {way.proxy} broke off before it had connected to {way.where}"
        case 407:
            message = f"the proxy {way.proxy} asks who we are"
            advice = "put user:password@ into the proxy's URL"
        case _:
            refusal = f"{status} {reason[:TEXT_LIMIT]}"
            message = f"the proxy {way.proxy} would not connect to {way.where}: {refusal}"
    return ConnectionFailed(doing, message, advice=advice)


def not_answered(doing: str, way: Way, error: Exception | None, *, is_first: bool = True) -> TransportError:
    """Why no answer began, although there was a connection; None where the peer closed it in order.

    ``is_first``: nothing was answered on this connection yet, so that the server may still be judging us.
    """
    if error is None:
        return AnswerLost(doing, f"{way.where} closed the connection without an answer")
    if is_first and _is_about_our_certificate(error):
        message, advice = _certificate_refused(way, error)
        return ConnectionFailed(doing, message, advice=advice)
    why = getattr(error, "strerror", None)
    broke = f"the connection to {way.where} broke before an answer came"
    return AnswerLost(doing, f"{broke}: {why}" if why else broke)


def not_http(doing: str, way: Way, why: str) -> BadAnswer:
    """What came is no answer, or no more of one."""
    return BadAnswer(doing, f"what {way.where} answered is not HTTP: {why[:TEXT_LIMIT]}")


def cut_short(doing: str) -> AnswerLost:
    """An answer that began did not end."""
    return AnswerLost(doing, "the connection broke before the whole answer had come")


def not_gzip(doing: str) -> BadAnswer:
    return BadAnswer(doing, "the answer's body is not the gzip that its headers say it is")


def too_long(doing: str, max_body: int) -> BadAnswer:
    return BadAnswer(
        doing,
        f"the answer is longer than {max_body} bytes",
        advice="ask for less at once, or raise max_body",
    )


def _why_not_connected(way: Way, error: Exception) -> tuple[str, str | None]:
    """What happened and what to do; None stands for what ConnectionFailed advises anyway."""
    match error:
        case ssl.CertificateError():
            return _certificate_not_trusted(way, error)
        case ssl.SSLError():
            return _no_tls(way, error)
        case socket.gaierror():
            return _name_not_known(way.where, error)
        case TimeoutError(errno=None):
            return f"no connection to {way.proxy or way.where} within {way.connect_timeout:g} s", None
        case OSError() if _number(error) == errno.ECONNREFUSED:
            return f"{way.where} refuses connections", None
        case ConnectionError():
            return f"{way.where} closed the connection before it was open: {_said(error)}", None
        case _:
            return f"{way.where} cannot be reached: {_said(error)}", None


def _name_not_known(where: str, error: BaseException) -> tuple[str, str]:
    return f"the name {where.rpartition(':')[0]} is not known: {_said(error)}", "is it spelled right?"


def _said(error: BaseException | None) -> str:
    """What the system said."""
    return (getattr(error, "strerror", None) or str(error or "") or type(error).__name__)[:TEXT_LIMIT]


def _number(error: OSError) -> int | None:
    """The system's number for it.  Of a name with several addresses asyncio tells in words what each said."""
    if error.errno is not None:
        return error.errno
    numbers = set(re.findall(r"\[Errno (\d+)\]", str(error)))
    return int(numbers.pop()) if len(numbers) == 1 else None


def _certificate_not_trusted(way: Way, error: BaseException | None) -> tuple[str, str]:
    code = getattr(error, "verify_code", None)
    said = getattr(error, "verify_message", None) or str(error)
    if code in _ISSUER_UNKNOWN:
        return (
            f"no authority that we trust has signed the certificate of {way.where}: {said}",
            "set certificate-authority to the cluster's own CA",
        )
    if code in _NAME_DIFFERS:
        return (
            f"the certificate of {way.where} is not for {way.name}: {said}",
            "use a name that it is for, or say which with tls-server-name",
        )
    if code in _NOT_VALID_NOW:
        return (
            f"the certificate of {way.where} is not valid now: {said}",
            "is this machine's clock right? then the server's certificate must be renewed",
        )
    return f"the certificate of {way.where} is not acceptable: {said}", "see how it was made"


def _no_tls(way: Way, error: BaseException | None) -> tuple[str, str]:
    reason = getattr(error, "reason", None) or str(error)
    if reason in _NOT_TLS:
        return f"{way.where} does not speak TLS", "is it http:// and not https:// there?"
    if _is_about_our_certificate(error):
        return _certificate_refused(way, error)
    return (
        f"{way.where} and we found no way to speak TLS: {reason}",
        "is this its address, and does it ask for a client certificate?",
    )


def _is_about_our_certificate(error: BaseException | None) -> bool:
    reason = str(getattr(error, "reason", None) or "")
    return (
        isinstance(error, ssl.SSLError) and "ALERT" in reason and ("CERT" in reason or "UNKNOWN_CA" in reason)
    )


def _certificate_refused(way: Way, error: BaseException | None) -> tuple[str, str]:
    reason = getattr(error, "reason", None)
    return (
        f"{way.where} does not accept our client certificate: {reason}",
        "is there one, has it expired, is it for this cluster?",
    )
