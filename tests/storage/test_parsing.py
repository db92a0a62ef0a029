"""JSON and TOML of strangers: plain data or ValueError, whatever the text is."""

import json

import pytest

from wonderland.storage.parsing import DEEPEST, LONGEST_TOML, parse_json, parse_toml


def test_what_is_sound_is_read():
    value = {"a": [1, 2.5, None, True, "é\U0001f600"], "b": {}}
    assert parse_json(json.dumps(value)) == parse_json(json.dumps(value, ensure_ascii=False).encode()) == value
    assert parse_json("3") == 3
    assert parse_toml(b"a = [1, 'x']") == {"a": [1, "x"]}


@pytest.mark.parametrize("depth", [DEEPEST + 1, 1000, 100_000])
@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"a":', "}")])
def test_deep_nests_are_refused(depth, opening, closing):
    with pytest.raises(ValueError, match="nested more than"):
        parse_json(opening * depth + ("0" if opening != "[" else "") + closing * depth)


def test_as_deep_as_is_allowed():
    parse_json("[" * DEEPEST + "]" * DEEPEST)
    parse_toml("a = " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1))
    with pytest.raises(ValueError, match="nested"):
        parse_toml("a = " + "[" * 10_000 + "]" * 10_000)
    with pytest.raises(ValueError, match="nested"):
        parse_toml("[" + ".".join("a" * 100) + "]")


@pytest.mark.parametrize(
    "text", [b"\xff", b"", "{", '{"a": 1, "a": 2}', '["\\ud800"]', '{"\\udfff": 1}', "9" * 5000, b"\xef\xbb\xbf{}"]
)
def test_other_damage_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
        parse_json(text)


@pytest.mark.parametrize("text", [b"\xff = 1", "a = ", "a = 1\na = 2", "x" * (LONGEST_TOML + 1), "a = " + "9" * 5000])
def test_other_damage_of_toml(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
        parse_toml(text)
