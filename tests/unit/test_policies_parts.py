"""The named patterns of the policies, each by the texts that it says it accepts and rejects."""

import re
from pathlib import Path

import pytest

from berkelium_infra.policy_source import compose
from berkelium_infra.policy_source.parts import Letter, Parts, PartsError, Pattern, load

WITH_PARTS = [name for name in compose.names() if compose.parts_of(name)]


def parts(policy: str) -> Parts:
    found = compose.parts_of(policy)
    assert found is not None
    return found


def cases(*groups: str) -> list:
    """Every (policy, pattern) of the named groups of parts."""
    return [
        pytest.param(policy, pattern, id=f"{policy}: {pattern.name}")
        for policy in WITH_PARTS
        for group in groups
        for pattern in getattr(parts(policy), group)
    ]


def statement_cases() -> list:
    return [
        pytest.param(policy, letter, pattern, id=f"{policy}: {letter.letter} {pattern.name}")
        for policy in WITH_PARTS
        for letter in (*parts(policy).letters, *parts(policy).programs)
        for pattern in letter.patterns
    ]


def siblings(policy: str, letter: Letter) -> tuple[Letter, ...]:
    """The letters among which this one is chosen."""
    return parts(policy).letters if letter in parts(policy).letters else parts(policy).programs


@pytest.mark.parametrize(("policy", "pattern"), cases("fragments"))
def test_a_fragment_matches_whole_texts_as_it_says(policy: str, pattern: Pattern) -> None:
    expression = re.compile(parts(policy).pattern(pattern.name))
    assert [text for text in pattern.accepts if not expression.fullmatch(text)] == []
    assert [text for text in pattern.rejects if expression.fullmatch(text)] == []


@pytest.mark.parametrize(("policy", "pattern"), cases("looks", "scanners", "shapes"))
def test_a_pattern_is_found_in_texts_as_it_says(policy: str, pattern: Pattern) -> None:
    expression = re.compile(parts(policy).pattern(pattern.name))
    assert [text for text in pattern.accepts if not expression.search(text)] == []
    assert [text for text in pattern.rejects if expression.search(text)] == []


@pytest.mark.parametrize(("policy", "letter", "pattern"), statement_cases())
def test_a_letter_matches_whole_statements_as_it_says(policy: str, letter: Letter, pattern: Pattern) -> None:
    assert letter
    expression = re.compile(parts(policy).statement(pattern))
    assert [text for text in pattern.accepts if not expression.fullmatch(text)] == []
    assert [text for text in pattern.rejects if expression.fullmatch(text)] == []


@pytest.mark.parametrize(("policy", "letter", "pattern"), statement_cases())
def test_no_earlier_letter_takes_a_statement_away(policy: str, letter: Letter, pattern: Pattern) -> None:
    others = siblings(policy, letter)
    first = {
        text: next(each.letter for each in others if re.match(parts(policy).letter(each), text))
        for text in pattern.accepts
    }
    assert {text: taken for text, taken in first.items() if taken != letter.letter} == {}


@pytest.mark.parametrize("policy", WITH_PARTS)
def test_what_can_be_idle_is_looked_at(policy: str) -> None:
    looks = [re.compile(parts(policy).pattern(look.name)) for look in parts(policy).looks]
    idle = [
        p
        for letter in (*parts(policy).letters, *parts(policy).programs)
        if letter.letter in "etrF"
        for p in letter.patterns
    ]
    # `yes` alone is only looked at when it fills /dev/null.
    unseen = [
        text for p in idle for text in p.accepts if text != "yes" and not any(look.search(text) for look in looks)
    ]
    assert unseen == []


@pytest.mark.parametrize("policy", WITH_PARTS)
def test_a_look_begins_with_a_plain_word_so_that_it_costs_nothing(policy: str) -> None:
    slow = [look.name for look in parts(policy).looks if not re.match(r"[\w/ ]{3}|\\\)\\\.", look.pattern)]
    assert slow == []


@pytest.mark.parametrize("policy", WITH_PARTS)
def test_a_statement_that_is_no_plain_work_tells(policy: str) -> None:
    telling = re.compile(parts(policy).pattern("telling"))
    letters = [each for each in (*parts(policy).letters, *parts(policy).programs) if each.letter not in "qbx-"]
    plain = [
        text for each in letters for pattern in each.patterns for text in pattern.accepts if not telling.search(text)
    ]
    assert plain == []


@pytest.mark.parametrize("policy", WITH_PARTS)
def test_every_wrapper_is_known_as_one(policy: str) -> None:
    wrapped = re.compile(parts(policy).pattern("wrapped"))
    wrapper = next(pattern for pattern in parts(policy).fragments if pattern.name == "wrapper")
    assert [text for text in wrapper.accepts if not wrapped.search(text + "x")] == []


@pytest.mark.parametrize("policy", WITH_PARTS)
def test_all_patterns_stay_within_what_re2_knows(policy: str) -> None:
    found = parts(policy)
    everything = [*found.looks, *found.fragments, *found.scanners, *found.shapes]
    everything += [p for letter in (*found.letters, *found.programs) for p in letter.patterns]
    beyond = re.compile(r"\(\?[=!<P(]|\\[1-9Z]|[*+?]\+")
    assert [pattern.name for pattern in everything if beyond.search(pattern.pattern)] == []


@pytest.mark.parametrize("policy", WITH_PARTS)
def test_names_are_unique_and_every_pattern_has_a_text_that_it_accepts(policy: str) -> None:
    found = parts(policy)
    named = [p.name for p in (*found.looks, *found.fragments, *found.scanners, *found.shapes)]
    assert len(named) == len(set(named))
    assert [p.name for p in (*found.looks, *found.fragments, *found.scanners, *found.shapes) if not p.accepts] == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of parts without any pattern."""
    for group in Parts.model_fields:
        (tmp_path / f"{group}.yaml").write_text("[]")
    return tmp_path


def test_one_space_stands_for_any_number_outside_brackets(folder: Path) -> None:
    (folder / "fragments.yaml").write_text("[{name: two, pattern: 'a [b c] *d', accepts: [], rejects: []}]")
    assert load(folder).pattern("two") == "a +[b c] *d"


def test_a_reference_to_an_unknown_fragment_is_an_error(folder: Path) -> None:
    (folder / "fragments.yaml").write_text("[{name: one, pattern: '{none}', accepts: [], rejects: []}]")
    with pytest.raises(PartsError, match="'none'"):
        load(folder).pattern("one")


def test_an_unknown_key_is_named_with_its_file(folder: Path) -> None:
    (folder / "shapes.yaml").write_text("[{name: one, pattern: x, accepts: [], rejects: [], extra: 1}]")
    with pytest.raises(PartsError, match=r"shapes\.yaml: 0\.extra"):
        load(folder)


def test_an_unknown_group_is_named_with_the_known_ones(folder: Path) -> None:
    (folder / "words.yaml").write_text("[]")
    with pytest.raises(PartsError, match=r"words is no group; write looks, fragments"):
        load(folder)


def test_a_missing_group_is_named(folder: Path) -> None:
    (folder / "shapes.yaml").unlink()
    with pytest.raises(PartsError, match=r"shapes\.yaml: file"):
        load(folder)
