"""Makes model classes: from an annotated class body to a msgspec Struct that behaves as ``model.py`` says.

Decides three things about a class as it is made, and nothing about its types:

1. Every default but None becomes a factory.  msgspec then leaves out exactly the fields that are None (it
   compares a value with a plain default, and with nothing where a factory of ours makes it), and no
   default is shared between instances.
2. Fields are keyword-only and camelCase on the wire, but for the names that ``rename`` gives.
3. A class that gives its version stands for a kind: it has ``resource`` and ``gvk``, and its instances say
   ``apiVersion`` and ``kind`` without being told.

Annotations may be values, text (``from __future__ import annotations``), or the function that Python 3.14
leaves in their place.  They are read only for their names here, for hundreds of classes are made at import.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from msgspec import NODEFAULT, Struct, StructMeta, field

from setpoint.api.keywords import check_keywords, suggestion
from setpoint.api.names import Resource

_Meta = TypeVar("_Meta", bound="ModelMeta")

_Field: type[Any] = type(field(default=None))


class ModelMeta(StructMeta):
    """Makes model classes.

    ``group`` to ``subresources`` say which kind the class stands for; ``rename`` gives the wire names that
    are not plain camelCase; ``rules`` hold for the whole of a value in a schema (see ``markers.Rule``).
    """

    def __new__(  # noqa: PYI019 (Self cannot be used in a metaclass)
        mcls: type[_Meta],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        *,
        group: str = "",
        version: str | None = None,
        kind: str | None = None,
        plural: str | None = None,
        namespaced: bool = True,
        singular: str | None = None,
        short_names: Iterable[str] = (),
        categories: Iterable[str] = (),
        verbs: Iterable[str] = (),
        subresources: Iterable[str] = (),
        rename: Mapping[str, str] | str | None = None,
        rules: Iterable[object] = (),
        **config: Any,
    ) -> _Meta:
        if not config.keys() <= _STRUCT_OPTIONS:
            check_keywords(f"class {name}", config, [*_STRUCT_OPTIONS, *_class_keywords(mcls)])
        _default_by_factory(name, namespace)
        if version is not None:
            kind = kind or name
            resource = Resource(
                group=group,
                version=version,
                kind=kind,
                plural=plural or plural_of(kind),
                namespaced=namespaced,
                singular=singular or kind.lower(),
                short_names=words("short_names", short_names),
                categories=words("categories", categories),
                verbs=words("verbs", verbs),
                subresources=words("subresources", subresources),
            )
            _add_kind(namespace, resource)
        elif group or kind or plural:
            raise TypeError(f"{name} does not say its version; a class that stands for a kind needs one")
        if rules:
            namespace["__rules__"] = tuple(rules)
        if isinstance(rename, Mapping):  # the names that are not plain camelCase
            config["rename"] = lambda attribute: rename.get(attribute) or wire_name(attribute)
        elif rename is not None:
            config["rename"] = rename
        config.setdefault("kw_only", True)  # msgspec does not inherit it
        if config.get("dict"):
            config.setdefault("gc", True)  # it may hold anything, and msgspec insists
        return super().__new__(mcls, name, bases, namespace, **config)

    if not TYPE_CHECKING:  # a type checker would no longer know the fields

        def __call__(cls, /, *args: Any, **fields: Any) -> Any:  # noqa: N805 - what it makes is an instance
            """Make an instance; msgspec's errors do not say of which class."""
            try:
                return _make(cls, *args, **fields)
            except TypeError as error:
                known = cls.__struct_fields__
                for name in fields:
                    if name not in known:
                        raise TypeError(
                            f"{cls.__name__} has no field {name!r}{suggestion(name, known)}"
                        ) from None
                raise TypeError(f"{cls.__name__}: {error}") from error


_make = StructMeta.__call__
# The class keywords of msgspec.Struct.
_STRUCT_OPTIONS = {
    *("array_like", "cache_hash", "dict", "eq", "forbid_unknown_fields", "frozen", "gc", "kw_only"),
    *("omit_defaults", "order", "rename", "repr_omit_defaults", "tag", "tag_field", "weakref"),
}


def _class_keywords(meta: type[ModelMeta]) -> list[str]:
    """What a class of ours may say of itself, in its first line."""
    makers = [cls.__new__ for cls in inspect.getmro(meta) if issubclass(cls, ModelMeta)]
    return [name for each in makers for name in (each.__kwdefaults__ or ())]


def words(what: str, given: Iterable[str]) -> tuple[str, ...]:
    """Several words; a text alone would be taken for as many words as it has letters."""
    if isinstance(given, str):
        raise TypeError(f"{what} is a list of words: write {what}=[{given!r}]")
    return tuple(given)


def wire_name(attribute: str) -> str:
    """The name on the wire of an attribute: ``available_replicas`` → ``availableReplicas``."""
    first, *rest = attribute.strip("_").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def plural_of(kind: str) -> str:
    """The plural that Kubernetes' own tools would guess for a kind."""
    word = kind.lower()
    if word.endswith("y") and word[-2:-1] not in ("", *"aeiou"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _default_by_factory(name: str, namespace: dict[str, Any]) -> None:
    """Turn every default but None into a factory."""
    for attribute, annotation in _annotations(namespace).items():
        default = namespace.get(attribute, NODEFAULT)
        if default is None or _is_class_variable(annotation):
            continue
        called = None
        if type(default) is _Field:
            called, factory, default = default.name, default.default_factory, default.default
            if factory is not NODEFAULT:
                # msgspec knows the bare types: it would leave out an empty list.
                make = (lambda factory=factory: factory()) if factory in (list, dict, set) else factory
                namespace[attribute] = field(default_factory=make, name=called)
                continue
        if default is NODEFAULT:
            if _may_be_none(annotation):
                raise TypeError(
                    f"{name}.{attribute} may be None and has no default: write `= None`, "
                    "for None is left out on the wire and then reads as absent"
                )
        elif default is not None:
            namespace[attribute] = field(default_factory=_factory(default), name=called)


def _factory(default: Any) -> Callable[[], Any]:
    """Makes the default anew, as deep as it can be changed."""
    if isinstance(default, Struct):
        try:
            if default == type(default)():
                return partial(
                    _make, type(default)
                )  # what reads objects makes them, too, and needs no errors
        except TypeError:  # it has fields that must be given
            pass
    elif not isinstance(default, list | dict | set):
        return lambda: default
    elif not default:
        return type(default)().copy
    kept = copy.deepcopy(default)
    return lambda: copy.deepcopy(kept)


def _annotations(namespace: dict[str, Any]) -> dict[str, Any]:
    """The annotations of a class about to be made, as far as they can be known by now."""
    found: dict[str, Any] | None = namespace.get("__annotations__")
    if found is None:
        annotate = _annotate(namespace)
        return {} if annotate is None else _call_annotate(annotate)
    return found


def _annotate(namespace: dict[str, Any]) -> Callable[[Any], dict[str, Any]] | None:
    """The function that Python 3.14 leaves in place of annotations."""
    return namespace.get("__annotate__") or namespace.get("__annotate_func__")


def _call_annotate(annotate: Callable[[Any], dict[str, Any]], form: Any = None) -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415 (it is not there before)

        return annotationlib.call_annotate_function(annotate, form or annotationlib.Format.FORWARDREF)
    return annotate(form or 1)


_TAKEN = frozenset({"api_version", "decode", "gvk", "kind", "resource"})


def _add_kind(namespace: dict[str, Any], resource: Resource) -> None:
    """Have the class, and the defaults of ``api_version`` and ``kind``, say which kind it is."""
    for taken in sorted(_TAKEN.intersection(_annotations(namespace))):
        raise TypeError(f"{resource.kind}.{taken}: every kind has this name already; call the field {taken}_")
    api_version, kind = resource.api_version, resource.kind
    namespace["resource"] = resource
    namespace["gvk"] = resource.gvk
    namespace["api_version"] = field(default_factory=lambda: api_version)
    namespace["kind"] = field(default_factory=lambda: kind)
    fields = {"api_version": str, "kind": str}
    annotate = _annotate(namespace)
    if annotate is None or "__annotations__" in namespace:
        namespace["__annotations__"] = {**fields, **namespace.get("__annotations__", {})}
    else:
        key = "__annotate__" if "__annotate__" in namespace else "__annotate_func__"
        namespace[key] = lambda form, /: {**fields, **_call_annotate(annotate, form)}


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar", "t.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _may_be_none(annotation: Any) -> bool:
    text = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(text, str):
        return annotation is None or NoneType in get_args(bare(annotation))
    if "None" not in text and "Optional" not in text:
        return False
    text = re.sub(r"^(\w+\.)?Annotated\[(.*)\]$", r"\2", text)
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    choices = [choice.strip() for choice in text.partition(",")[0].split("|")]
    return "None" in choices or choices[0].endswith("Optional")


def bare(hint: Any) -> Any:
    """A type without the notes of Annotated, and behind its alias."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif hasattr(hint, "__value__"):  # `type X = ...` of Python 3.12
            hint = hint.__value__
        else:
            return hint
