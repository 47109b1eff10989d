"""Decides what a failed exchange means: whether the server may have acted, and what to do about it.

Three moments, each with its function: before there was a connection (``not_connected``: the request did not
happen), before an answer began (``not_answered``: it may have), before the answer ended (``cut_short``).
With one exception: TLS 1.3 lets a client speak before the server has judged its certificate, and a server
that then refuses it has not listened.

No I/O here, and no credential gets through: the errors of aiohttp hold headers and proxy passwords, so only
what the system itself said (``system_error``) is shown or chained.  Used by ``http.py``.
"""

from __future__ import annotations

import errno
import ssl
from dataclasses import dataclass

import aiohttp

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


def system_error(error: BaseException) -> BaseException | None:
    """What the system said, if it was the system that failed."""
    for said in (
        getattr(error, "os_error", None),
        getattr(error, "certificate_error", None),
        error.__cause__,
    ):
        if isinstance(said, OSError | ssl.CertificateError) and not isinstance(said, aiohttp.ClientError):
            return said
    return None


def not_connected(doing: str, way: Way, error: Exception) -> TransportError:
    """Why no connection came about."""
    message, advice = _why_not_connected(way, error)
    return ConnectionFailed(doing, message, advice=advice)


def not_answered(doing: str, way: Way, error: Exception) -> TransportError:
    """Why no answer began, although there was a connection."""
    match error:
        case aiohttp.WSServerHandshakeError():
            return BadAnswer(doing, f"the WebSocket handshake with {way.where} went wrong: {error.message}")
        case aiohttp.ClientResponseError():  # what aiohttp raises for bytes that it cannot parse
            said = " ".join(error.message.split())[:TEXT_LIMIT]
            return BadAnswer(doing, f"what {way.where} answered is not HTTP: {said}")
        case aiohttp.ClientOSError() if _is_about_our_certificate(error.__cause__):
            message, advice = _certificate_refused(way, error.__cause__)
            return ConnectionFailed(doing, message, advice=advice)
        case aiohttp.ServerDisconnectedError():
            return AnswerLost(doing, f"{way.where} closed the connection without an answer")
        case _:
            why = getattr(system_error(error), "strerror", None)
            broke = f"the connection to {way.where} broke before an answer came"
            return AnswerLost(doing, f"{broke}: {why}" if why else broke)


def cut_short(doing: str, error: Exception) -> TransportError:
    """Why an answer that began did not end."""
    if isinstance(error.__cause__, aiohttp.http_exceptions.ContentEncodingError):
        return BadAnswer(doing, "the answer's body is not the gzip that its headers say it is")
    return AnswerLost(doing, "the connection broke before the whole answer had come")


def _why_not_connected(way: Way, error: Exception) -> tuple[str, str | None]:
    """What happened and what to do; None stands for what ConnectionFailed advises anyway."""
    system = system_error(error)
    said = getattr(system, "strerror", None) or str(system or "") or type(system or error).__name__
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _certificate_not_trusted(way, system)
        case aiohttp.ClientConnectorSSLError():
            return _no_tls(way, system)
        case aiohttp.ClientHttpProxyError(status=407):
            return f"the proxy {way.proxy} asks who we are", "put user:password@ into the proxy's URL"
        case aiohttp.ClientHttpProxyError(status=status, message=message):
            refusal = f"{status} {message[:TEXT_LIMIT]}"
            return (
                f"the proxy {way.proxy} would not connect to {way.where}: {refusal}",
                "ask those who run it",
            )
        case aiohttp.ClientConnectorDNSError():
            name = (way.proxy or way.where).rpartition(":")[0]
            return f"the name {name} is not known: {said}", "is it spelled right?"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy {way.proxy} cannot be reached: {said}", "is it up?"
        case aiohttp.ClientConnectorError(os_error=OSError(errno=errno.ECONNREFUSED)):
            return f"{way.where} refuses connections", None
        case aiohttp.ClientConnectorError(os_error=ConnectionError()):
            return f"{way.where} closed the connection before it was open: {said}", None
        case aiohttp.ClientConnectorError():
            return f"{way.where} cannot be reached: {said}", None
        case TimeoutError():
            return f"no connection to {way.proxy or way.where} within {way.connect_timeout:g} s", None
        case _ if way.proxy:
            return (
                f"the proxy {way.proxy} broke off before it had connected to {way.where}",
                "ask those who run it",
            )
        case _:
            return f"no connection to {way.where}: {said}", None


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
