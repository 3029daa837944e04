"""CEL selectors as text: terms, reads, and the guarded form."""

import pytest

from berkelium_lab.check import expressions

NVIDIA = 'device.attributes["gpu.nvidia.com"]'


@pytest.mark.parametrize(
    ("expression", "terms"),
    [
        ("a && b", ["a", "b"]),
        ("a && (b && c) && d[0 && 1]", ["a", "(b && c)", "d[0 && 1]"]),
        ('x == "a && b" && c', ['x == "a && b"', "c"]),
        ("a && b || c", ["a && b || c"]),
        ("(a || b) && c", ["(a || b)", "c"]),
        ("a && b ? c : d", ["a && b ? c : d"]),
        (f'{NVIDIA}.?profile.orValue("") == "x" && c', [f'{NVIDIA}.?profile.orValue("") == "x"', "c"]),
        ("a", ["a"]),
    ],
)
def test_a_conjunction_is_cut_at_its_top_level_only(expression: str, terms: list[str]) -> None:
    assert expressions.terms(expression) == terms


def test_reads_are_found_in_every_spelling() -> None:
    text = (
        f"{NVIDIA}.type == \"gpu\" && device.attributes['a.example'].?b.orValue(0) == 0 "
        '&& device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("1Gi")) > 0 '
        '&& device.attributes["d.example"]["e"] == 1'
    )
    found = [(access.kind, access.qualified, access.guarded) for access in expressions.accesses(text)]
    assert found == [
        ("attributes", "gpu.nvidia.com/type", False),
        ("attributes", "a.example/b", True),
        ("capacity", "gpu.nvidia.com/memory", False),
        ("attributes", "d.example/e", False),
    ]


@pytest.mark.parametrize(
    ("value_type", "default"), [("string", '""'), ("int", "0"), ("bool", "false"), ("version", 'semver("0.0.0")')]
)
def test_the_guarded_form_has_a_default_of_the_attributes_type(value_type: str, default: str) -> None:
    expression = f"{NVIDIA}.x == y"
    (access,) = expressions.accesses(expression)
    assert expressions.guarded(expression, access, value_type, None) == f"{NVIDIA}.?x.orValue({default}) == y"


def test_the_driver_is_asked_first_when_other_drivers_devices_fail() -> None:
    expression = f'{NVIDIA}.profile == "a" || {NVIDIA}.profile == "b"'
    access = next(expressions.accesses(expression))
    safe = f'{NVIDIA}.?profile.orValue("")'
    assert expressions.guarded(expression, access, "string", "gpu.nvidia.com") == (
        f'device.driver == "gpu.nvidia.com" && ({safe} == "a" || {safe} == "b")'
    )
