"""The rules of ``api/times.py``."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.api.times import Duration, MicroTime, Time

zones = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(timezone)
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)  # noqa: DTZ001
nanoseconds = st.integers(-(2**63), 2**63 - 1)
durations = st.builds(lambda length: Duration(nanoseconds=length), nanoseconds)


@given(moments)
def test_a_moment_read_back_from_the_wire_is_the_moment_set(moment: datetime) -> None:
    for kind in (Time, MicroTime):
        instant = kind.of(moment)
        assert type(instant) is kind
        assert kind.from_wire(instant.to_wire()) == instant
        assert timedelta(0) <= moment - instant < timedelta(seconds=1)


@given(moments)
def test_a_micro_time_keeps_its_microseconds_and_writes_six_digits(moment: datetime) -> None:
    assert MicroTime.of(moment) == moment
    assert len(MicroTime.of(moment).to_wire()) == len("2006-01-02T15:04:05.000000Z")


def test_times_are_written_in_utc() -> None:
    noon = datetime(2024, 2, 29, 12, 0, 1, 250, tzinfo=timezone(timedelta(hours=2)))
    assert Time.of(noon).to_wire() == str(Time.of(noon)) == "2024-02-29T10:00:01Z"
    assert MicroTime.of(noon).to_wire() == f"{MicroTime.of(noon)}" == "2024-02-29T10:00:01.000250Z"
    assert Time.of(noon).astimezone(timezone(timedelta(hours=9))).to_wire() == "2024-02-29T10:00:01Z"


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000000Z"),
        ("2024-02-29T12:00:00.5Z", "2024-02-29T12:00:00.500000Z"),
        ("2024-02-29T12:00:00,5Z", "2024-02-29T12:00:00.500000Z"),
        ("2024-02-29T12:00:00.123456789Z", "2024-02-29T12:00:00.123456Z"),
        ("2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00.000000Z"),
        ("2024-02-29T12:00:00-24:60", "2024-03-01T13:00:00.000000Z"),
        ("2024-02-29T9:00:00Z", "2024-02-29T09:00:00.000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_every_form_that_go_reads_is_read(text: str, wire: str) -> None:
    assert MicroTime.parse(text).to_wire() == wire
    assert Time.parse(text).to_wire() == wire[:19] + "Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-02-29",
        "2024-02-29 12:00:00Z",
        "2024-02-29T12:00:00",
        "2024-02-29t12:00:00z",
        "2024-02-29T12:00:00.Z",
        "2024-02-29T12:00:00+0200",
        "2024-02-29T12:00:00+25:00",
        "2023-02-29T12:00:00Z",
        "2024-02-29T24:00:00Z",
        "2024-02-29T24:00:00.000000Z",
        "2024-02-29T12:60:00Z",
        "2024-02-29T12:00:60Z",
        "2024-02-29T12:00:00Z\n",
        "\uff12024-02-29T12:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_what_is_no_rfc_3339_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot parse"):
        Time.parse(text)


@pytest.mark.parametrize("wire", [None, 5, True, {}, []])
def test_what_is_no_text_is_no_time_and_no_duration(wire: object) -> None:
    with pytest.raises(ValueError, match="a time is text"):
        Time.from_wire(wire)
    with pytest.raises(ValueError, match="a duration is text"):
        Duration.from_wire(wire)


def test_a_time_compares_with_and_subtracts_from_any_aware_datetime() -> None:
    created, now = Time.parse("2024-02-29T12:00:00Z"), datetime(2024, 2, 29, 12, 5, tzinfo=UTC)
    assert created < now
    assert now - created == timedelta(minutes=5)
    assert created == datetime(2024, 2, 29, 13, tzinfo=timezone(timedelta(hours=1)))
    assert hash(created) == hash(datetime(2024, 2, 29, 12, tzinfo=UTC))


def test_arithmetic_keeps_the_kind_and_drops_nothing() -> None:
    created = Time.parse("2024-02-29T12:00:00Z")
    later = created + timedelta(seconds=0.5)
    assert type(later) is Time
    assert later - created == timedelta(seconds=0.5)
    assert later.to_wire() == "2024-02-29T12:00:00Z"


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Time.of(datetime(2024, 2, 29))  # noqa: DTZ001
    with pytest.raises(ValueError, match="has no time zone"):
        Time(2024, 2, 29).to_wire()
    assert str(Time(2024, 2, 29)) == "2024-02-29T00:00:00"


@pytest.mark.parametrize(
    "value", [Time.parse("2024-02-29T12:00:00Z"), MicroTime.parse("2024-02-29T12:00:00.5Z"), Duration("1ns")]
)
def test_times_and_durations_survive_copy_and_pickle(value: object) -> None:
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value
        assert type(twin) is type(value)


def from_wire(kind: type, value: object) -> object:
    assert issubclass(kind, Time | MicroTime | Duration)
    return kind.from_wire(value)


class Lease(msgspec.Struct):
    created: Time
    renewed: MicroTime | None
    ttl: Duration


def test_msgspec_reads_and_writes_them_through_the_two_hooks() -> None:
    wire = b'{"created":"2024-02-29T12:00:00Z","renewed":"2024-02-29T12:00:00.000001Z","ttl":"1h0m0s"}'
    read = msgspec.json.decode(wire, type=Lease, dec_hook=from_wire)
    assert (type(read.created), type(read.renewed), read.ttl) == (Time, MicroTime, Duration("1h"))
    assert msgspec.json.encode(read, enc_hook=lambda value: value.to_wire()) == wire


@given(durations)
def test_parsing_a_printed_duration_gives_it_back(duration: Duration) -> None:
    assert Duration(str(duration)) == duration
    assert Duration.from_wire(duration.to_wire()).nanoseconds == duration.nanoseconds


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0s"),
        ("-0", "0s"),
        ("1.5h", "1h30m0s"),
        ("90m", "1h30m0s"),
        ("300ms", "300ms"),
        ("1us", "1µs"),
        ("1µs", "1µs"),
        ("1μs", "1µs"),  # the Greek letter
        ("1500us", "1.5ms"),
        ("999ns", "999ns"),
        ("1001ns", "1.001µs"),
        ("60.000000001s", "1m0.000000001s"),
        ("-1h1ns", "-1h0m0.000000001s"),
        ("+5s", "5s"),
        (".5s", "500ms"),
        ("1.s", "1s"),
        ("1h2h", "3h0m0s"),
        ("0.3333333333333333333h", "20m0s"),
        ("0.100000000000000000000h", "6m0s"),
        ("9223372036854775807ns", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
    ],
)
def test_durations_are_read_and_printed_as_go_does(text: str, printed: str) -> None:
    assert str(Duration(text)) == printed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("h", 'time: invalid duration "h"'),
        (" 1s", 'time: invalid duration " 1s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1h2", 'time: missing unit in duration "1h2"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1h 2m", 'time: unknown unit "h " in duration "1h 2m"'),
        ('1é"', r'time: unknown unit "\xc3\xa9\"" in duration "1\xc3\xa9\""'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9999999999999999999x", 'time: invalid duration "9999999999999999999x"'),
        ("2562048h", 'time: invalid duration "2562048h"'),
        ("9" * 5000 + "s", 'time: invalid duration "' + "9" * 5000 + 's"'),
    ],
)
def test_what_is_no_duration_is_refused_in_go_words(text: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        Duration(text)
    assert str(refused.value) == words


small = st.integers(-(2**61), 2**61).map(lambda length: Duration(nanoseconds=length))


@given(small, small)
def test_durations_add_subtract_and_compare_by_length(a: Duration, b: Duration) -> None:
    assert (a + b).nanoseconds == a.nanoseconds + b.nanoseconds
    assert (a - b).nanoseconds == a.nanoseconds - b.nanoseconds
    assert (a < b, a <= b, a == b, a > b) == tuple(
        compared(a.nanoseconds, b.nanoseconds)
        for compared in (int.__lt__, int.__le__, int.__eq__, int.__gt__)
    )
    assert (-a).nanoseconds == -a.nanoseconds
    assert abs(a).nanoseconds == abs(a.nanoseconds)
    assert (a * 2).nanoseconds == (2 * a).nanoseconds == 2 * a.nanoseconds
    assert bool(a) == bool(a.nanoseconds)


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_a_timedelta_goes_in_and_comes_out_unchanged(length: timedelta) -> None:
    duration = Duration(length)
    assert duration == length
    assert hash(duration) == hash(length)
    assert duration.as_timedelta() == length
    assert duration.total_seconds() == pytest.approx(length.total_seconds())


def test_a_duration_works_with_datetimes_and_timedeltas() -> None:
    created, ttl = Time.parse("2024-02-29T12:00:00Z"), Duration("1h30m")
    assert created + ttl == Time.parse("2024-02-29T13:30:00Z")
    assert created - ttl == Time.parse("2024-02-29T10:30:00Z")
    assert timedelta(hours=1) < ttl < timedelta(hours=2)
    assert timedelta(hours=1) + ttl == Duration("2h30m")
    assert timedelta(hours=2) - ttl == ttl - timedelta(hours=1) == Duration("30m")


def test_what_is_below_a_microsecond_is_dropped_towards_zero() -> None:
    assert Duration("1999ns").as_timedelta() == timedelta(microseconds=1)
    assert Duration("-1999ns").as_timedelta() == timedelta(microseconds=-1)


def test_a_duration_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError, match="292 years"):
        Duration(nanoseconds=2**63)
    with pytest.raises(OverflowError, match="292 years"):
        Duration("9223372036854775807ns") + Duration("1ns")


def test_what_is_no_length_of_time_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="cannot make a duration of 5"):
        Duration(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        sorted([Duration("1s"), 5])  # type: ignore[type-var]
    assert Duration("1s") != 1


def test_now_is_in_utc() -> None:
    for kind in (Time, MicroTime):
        before = kind.of(datetime.now(UTC))
        now = kind.now()
        assert isinstance(now, kind)
        assert before <= now <= kind.of(datetime.now(UTC))
        assert now.to_wire().endswith("Z")
