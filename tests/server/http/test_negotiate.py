"""How ``Accept`` is read; each case was tried on the real server."""

from __future__ import annotations

import pytest

from setpoint.server.http.negotiate import JSON, YAML, Form, Negotiator, of_discovery, of_refusal, of_stream
from setpoint.server.statuses import StatusError

PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
WHOLE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json", Form()),
        ("application/json;q=0", Form()),
        ("application/json;foo=bar", Form()),
        ("application/json;stream=watch", Form()),
        ("application/yaml", Form(YAML)),
        ("application/json;q=0.1, application/yaml", Form(YAML)),
        ("application/cbor, application/json;q=0.5", Form()),
        (f"{PROTOBUF},application/json", Form()),
        (f"{PROTOBUF}, */*", Form()),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", Form()),
        ("application/json;pretty=1", Form(is_pretty=True)),
        (TABLE, Form(kind="table")),
        (f"{TABLE},application/json", Form(kind="table")),
        (TABLE.replace("v1", "v1beta1"), Form(kind="table", version="v1beta1")),
        (TABLE.replace("v1", "v9") + ",application/json", Form()),
        (TABLE.replace("json", "yaml"), Form(YAML, "table")),
        (TABLE.replace("Table", "PartialObjectMetadata"), Form(kind="partial")),
        (TABLE.replace("Table", "PartialObjectMetadataList"), Form(kind="partial list")),
    ],
)
@pytest.mark.parametrize("is_custom", [False, True])
def test_the_first_clause_that_can_be_met_decides(accept: str, form: Form, is_custom: bool) -> None:
    negotiator = Negotiator()
    assert negotiator.form(accept, is_custom=is_custom) == form
    assert negotiator.form(accept, is_custom=is_custom) == form, "and again, from what is kept"


@pytest.mark.parametrize("accept", ["text/plain", "text/*", "garbage", "application/cbor"])
def test_for_built_in_kinds_what_is_unknown_is_refused_in_one_way(accept: str) -> None:
    with pytest.raises(StatusError) as refused:
        Negotiator().form(accept, is_custom=False)
    assert refused.value.status["message"].startswith("406: Not Acceptable\n\nAvailable representations: ")
    assert refused.value.details == {}


@pytest.mark.parametrize("accept", [PROTOBUF, TABLE.replace("v1", "v9"), TABLE.replace("Table", "Foo")])
@pytest.mark.parametrize("is_custom", [False, True])
def test_what_is_known_and_cannot_be_given_is_refused_in_another(accept: str, is_custom: bool) -> None:
    negotiator = Negotiator()
    for _ in range(2):
        with pytest.raises(StatusError) as refused:
            negotiator.form(accept, is_custom=is_custom)
        assert refused.value.code == 406
        assert refused.value.message.startswith(
            "only the following media types are accepted: application/json"
        )


@pytest.mark.parametrize("is_many", [False, True])
@pytest.mark.parametrize("accept", [PROTOBUF, f"{PROTOBUF};stream=watch", "text/plain"])
def test_a_406_names_only_what_is_written(accept: str, is_many: bool) -> None:
    for is_custom in (False, True):
        with pytest.raises(StatusError) as refused:
            Negotiator().form(accept, is_custom=is_custom, is_many=is_many)
        assert "protobuf" not in refused.value.message
    for root in ("api", "apis"):
        with pytest.raises(StatusError) as refused:
            of_discovery(accept, root)
        assert "protobuf" not in refused.value.message


def test_discovery_is_whole_for_who_asks_for_it_and_plain_for_others() -> None:
    assert of_discovery(f"{WHOLE},application/json", "apis").kind == "discovery"
    assert (
        of_discovery(f"{WHOLE.replace('v2', 'v2beta1')},{WHOLE},application/json", "apis").kind == "discovery"
    )
    assert of_discovery(f"{WHOLE.replace('v2', 'v2beta1')},application/json", "apis") == Form()
    assert of_discovery("application/yaml", "apis") == Form(YAML)
    with pytest.raises(StatusError):
        of_discovery(WHOLE.replace("v2", "v9"), "apis")


def test_a_watch_is_in_json() -> None:
    assert of_stream(Form(kind="table")).media == JSON
    with pytest.raises(StatusError, match="application/json;stream=watch"):
        of_stream(Form(YAML))


def test_a_refusal_is_sent_whatever_was_asked_for() -> None:
    assert of_refusal("") == Form()
    assert of_refusal("application/yaml") == Form(YAML)
    assert of_refusal(TABLE) == Form(is_pretty=True)
    assert of_refusal("text/plain") == Form(is_pretty=True)


def test_texts_that_never_come_again_do_not_fill_the_memory() -> None:
    negotiator = Negotiator()
    for number in range(3000):
        negotiator.form(f"application/json;n={number}", is_custom=False)
    assert len(negotiator._kept) <= 1000


def test_a_text_without_end_is_read_and_not_kept() -> None:
    negotiator = Negotiator()
    assert negotiator.form("application/json;n=" + "9" * 100_000, is_custom=False) == Form()
    assert not negotiator._kept
