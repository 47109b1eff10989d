"""What is wrong with the configuration of webhooks."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from setpoint.server.registry.resources import Object
from setpoint.server.registry.validation import texts
from setpoint.server.registry.validation.found import Found
from setpoint.server.registry.validation.selectors import check_selector

Json = dict[str, Any]
_REVIEWS: Final = ("v1", "v1beta1")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_FORM: Final = "; desired format: https://host[/path]"
_MOST_CONDITIONS: Final = 64  # what is more is not looked at: each is an expression to compile


def check_webhooks(obj: Object, found: Found) -> None:
    names: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        _check_hook(hook, path, found)
        _check_reviews(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions", found)
        if name := hook.get("name"):
            found.unique(f"{path}.name", name, names)


def _check_hook(hook: Json, path: str, found: Found) -> None:
    _check_full_name(hook.get("name", ""), f"{path}.name", found)
    for index, rule in enumerate(hook.get("rules") or ()):
        check_rule(rule, f"{path}.rules[{index}]", found)
    if (policy := hook.get("failurePolicy")) is not None:
        found.one_of(f"{path}.failurePolicy", policy, ("Fail", "Ignore"))
    if (policy := hook.get("matchPolicy")) is not None:
        found.one_of(f"{path}.matchPolicy", policy, ("Equivalent", "Exact"))
    effects = hook.get("sideEffects")
    if effects is None:
        found.required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        found.one_of(f"{path}.sideEffects", effects, _SIDE_EFFECTS)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        found.invalid(f"{path}.timeoutSeconds", seconds, detail)
    for field in ("namespaceSelector", "objectSelector"):
        check_selector(hook.get(field), f"{path}.{field}", found)
    if (policy := hook.get("reinvocationPolicy")) is not None:
        found.one_of(f"{path}.reinvocationPolicy", policy, ("IfNeeded", "Never"))
    check_client(hook.get("clientConfig") or {}, f"{path}.clientConfig", found)
    check_conditions(hook.get("matchConditions") or [], f"{path}.matchConditions", found)


def _check_full_name(name: str, path: str, found: Found) -> None:
    if not name:
        found.required(path)
    elif errors := texts.subdomain(name):
        found.invalid(path, name, ",".join(errors))
    elif name.count(".") < 2:
        found.invalid(path, name, "should be a domain with at least three segments separated by dots")


def _check_reviews(versions: list[str], path: str, found: Found) -> None:
    if not versions:
        found.required(path, f"must specify one of {', '.join(_REVIEWS)}")
        return
    seen: set[str] = set()
    for index, one in enumerate(versions):
        if one in seen:
            found.invalid(f"{path}[{index}]", one, "duplicate version")
            continue
        seen.add(one)
        found.told(f"{path}[{index}]", one, texts.label_1035(one))
    if not seen.intersection(_REVIEWS):
        found.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")


# ── Rules ───────────────────────────────────────────────────────────────────────────────────────────


def check_rule(rule: Json, path: str, found: Found) -> None:
    operations = rule.get("operations") or []
    if not operations:
        found.required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        found.invalid(f"{path}.operations", operations, detail)
    for index, one in enumerate(operations):
        found.one_of(f"{path}.operations[{index}]", one, _OPERATIONS)
    for field, word in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            found.required(f"{path}.{field}")
        if len(values) > 1 and "*" in values:
            detail = f"if '*' is present, must not specify other {word}"
            found.invalid(f"{path}.{field}", values, detail)
    for index, one in enumerate(rule.get("apiVersions") or ()):
        if not one:
            found.required(f"{path}.apiVersions[{index}]")
    _check_resources(rule.get("resources") or [], f"{path}.resources", found)
    if (scope := rule.get("scope")) is not None:
        found.one_of(f"{path}.scope", scope, ("*", "Cluster", "Namespaced"))


def _check_resources(resources: list[str], path: str, found: Found) -> None:
    if not resources:
        found.required(path)
    whole: set[str] = set()  # resources of which every subresource is named
    below: set[str] = set()  # subresources that are named of every resource
    has_plain = False
    for index, one in enumerate(resources):
        at = f"{path}[{index}]"
        if not one:
            found.required(at)
            continue
        resource, slash, sub = one.partition("/")
        if not slash:
            has_plain = one != "*"
            continue
        if resource in whole:
            found.invalid(at, one, f"if '{resource}/*' is present, must not specify {one}")
        if sub in below:
            found.invalid(at, one, f"if '*/{sub}' is present, must not specify {one}")
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            below.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        found.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and has_plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        found.invalid(path, resources, detail)


def check_conditions(conditions: list[Json], path: str, found: Found, *, has_params: bool = False) -> None:
    if len(conditions) > _MOST_CONDITIONS:
        found.too_many(path, len(conditions), _MOST_CONDITIONS)
    seen: set[str] = set()
    for index, one in enumerate(conditions[:_MOST_CONDITIONS]):
        at, name = f"{path}[{index}]", one.get("name", "")
        if not (text := one.get("expression", "").strip()):
            found.required(f"{at}.expression")
        else:
            _check_expression(text, f"{at}.expression", found, has_params=has_params)
        if not name:
            found.required(f"{at}.name")
            continue
        found.told(f"{at}.name", name, texts.qualified(name))
        found.unique(f"{at}.name", name, seen)


def _check_expression(text: str, path: str, found: Found, *, has_params: bool) -> None:
    from setpoint.server.admission.cel import Scope, compile_error  # noqa: PLC0415 - the engine is large

    if told := compile_error(text, Scope(has_params=has_params), "bool"):
        found.invalid(path, text, told)


# ── Who is called ───────────────────────────────────────────────────────────────────────────────────


def check_client(config: Json, path: str, found: Found) -> None:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        found.required(path, "exactly one of url or service is required")
    elif url is not None:
        _check_url(url, f"{path}.url", found)
    elif service is not None:
        _check_service(service, f"{path}.service", found)


def _check_url(text: str, path: str, found: Found) -> None:
    try:
        url = urlsplit(text)
    except ValueError as error:
        found.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    user, at, host = url.netloc.rpartition("@")
    if url.scheme != "https":
        found.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        found.invalid(path, host, f"host must be specified{_FORM}")
    if at:
        found.invalid(path, user, "user information is not permitted in the URL")
    if url.fragment:
        found.invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        found.invalid(path, url.query, "query parameters are not permitted in the URL")


def _check_service(service: Json, path: str, found: Found) -> None:
    for field in ("name", "namespace"):
        if not service.get(field):
            found.required(f"{path}.{field}")
    number = service.get("port", 443)
    if errors := texts.port(number):
        found.invalid(f"{path}.port", number, f"port is not valid: {', '.join(errors)}")
    where, at = service.get("path"), f"{path}.path"
    if where in (None, "", "/"):
        return
    if where == "//":
        found.invalid(at, where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        found.invalid(at, where, "must start with a '/'")
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        if found.is_full:
            break
        if not step:
            found.invalid(at, where, f"segment[{index}] may not be empty")
            continue
        found.told(at, where, [f"segment[{index}]: {told}" for told in texts.subdomain(step)])
