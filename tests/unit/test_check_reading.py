"""What `berkelium check` makes of files, good and bad: objects with their lines, and one clear line for the rest."""

import json
from pathlib import Path

import pytest

from berkelium_lab.check.reading import MAX_BYTES, Input, InputError, read

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


def given(content: bytes | str) -> Input:
    """The input of one file named `f`."""
    found = Input()
    found.add("f", content.encode() if isinstance(content, str) else content)
    return found


def complaint(content: bytes | str) -> tuple[int, str, str]:
    """Line, code and message of the only complaint about a file that holds no object."""
    found = given(content)
    assert found.items == []
    (only,) = found.complaints
    return only.line, only.finding.code, only.finding.message


@pytest.mark.parametrize(
    ("content", "line", "code", "words"),
    [
        (b"\x7fELF\0\1\2", 1, "not-text", "binary"),
        ("kind: é\n".encode("latin-1"), 1, "not-text", "UTF-8"),
        ("kind: Pod\n".encode("utf-16"), 1, "not-text", "UTF-16"),
        (b"", 1, "empty", "no object"),
        ("# only\n---\n# comments\n", 1, "empty", "no object"),
        ("a: b: c\n", 1, "not-yaml", "mapping values are not allowed"),
        ("ok: 1\nlist: [1,\n", 3, "not-yaml", "flow"),
        ("only words\n", 1, "not-an-object", "plain text"),
        ("- a\n- b\n", 1, "not-an-object", "a list"),
        ("apiVersion: v1\nmetadata: {name: x}\n", 1, "not-an-object", "kind is missing"),
        ("a: &a\n  b: *a\n", 1, "not-yaml", "contains itself"),
        ("[" * 100_000, 1, "not-yaml", "nest"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n", 4, "template", "Helm"),
        ("{{- if .Values.gpu }}\nkind: Pod\n{{- end }}\n", 1, "template", "Helm"),
    ],
)
def test_a_file_that_is_no_manifest_is_said_so_with_its_line(
    content: bytes | str, line: int, code: str, words: str
) -> None:
    found_line, found_code, message = complaint(content)
    assert (found_line, found_code) == (line, code)
    assert words in message


def test_aliases_that_expand_without_end_are_refused_without_being_expanded() -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]\n" for i in range(1, 12))
    _, code, message = complaint("l0: &l0 [x]\n" + levels)
    assert code == "not-yaml"
    assert "aliases expand to" in message


def test_ordinary_aliases_and_merge_keys_are_read() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: &a {k: '1'}\n  b: {<<: *a, l: '2'}\n"
    (item,) = given(text).items
    assert item.obj["data"] == {"a": {"k": "1"}, "b": {"k": "1", "l": "2"}}


def test_a_file_too_large_is_not_read() -> None:
    _, code, message = complaint(b"# x\n" * (MAX_BYTES // 4 + 1))
    assert code == "too-large"
    assert "8 MB" in message


def test_a_fault_in_one_document_leaves_the_others() -> None:
    found = given(
        "a: b: c\n---\n" + CONFIG_MAP.format(name="one") + "---\n{{ .Values.x }}\n---\n" + CONFIG_MAP.format(name="two")
    )
    assert [(item.name, item.line) for item in found.items] == [("one", 3), ("two", 10)]
    assert [(c.line, c.finding.code) for c in found.complaints] == [(1, "not-yaml"), (8, "template")]


def test_templates_of_other_programs_in_quotes_are_no_helm_templates() -> None:
    text = CONFIG_MAP.format(name="x") + "data: {argo: '{{inputs.parameters.image}}'}\n"
    assert given(text).complaints == []


def test_a_key_that_stands_twice_is_an_error_with_its_second_line() -> None:
    (item,) = given("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n").items
    (finding,) = item.findings
    assert (finding.code, item.line_of(finding.path)) == ("duplicate-key", 5)


def test_the_objects_of_a_list_are_checked_one_by_one_with_their_own_lines() -> None:
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}"}} for i in range(2000)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=1)
    items = given(text).items
    assert len(items) == 2000
    lines = text.splitlines()
    for item in (items[0], items[1999]):
        assert f'"name": "{item.name}"' in lines[item.line_of("metadata.name") - 1]


def test_an_entry_of_a_typed_list_may_leave_out_its_kind() -> None:
    (item,) = given("apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: p}\n").items
    assert (item.kind, item.api_version) == ("Pod", "v1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01", "2024-01-01"),
        ("12:30:00", "12:30:00"),
        ("1e3", 1000.0),
        ("0o17", 15),
        ("0x1F", 31),
        ("yes", True),
        ("~", None),
        ("1_000", 1000),
        ('"5"', "5"),
    ],
)
def test_scalars_are_read_as_kubernetes_reads_them(text: str, value: object) -> None:
    (item,) = given(f"{CONFIG_MAP.format(name='x')}data: {text}\n").items
    assert item.obj["data"] == value
    assert type(item.obj["data"]) is type(value)


def test_a_directory_is_read_to_the_bottom_and_other_files_in_it_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep" / "er" / "b.yml").write_text(CONFIG_MAP.format(name="b"))
    (tmp_path / "a.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}')
    (tmp_path / "README.md").write_text("# no manifest")
    (tmp_path / ".git" / "c.yaml").write_text(CONFIG_MAP.format(name="c"))
    (tmp_path / "values.yaml").write_text("replicas: 1\n")
    found = read([str(tmp_path)])
    assert sorted(item.name for item in found.items) == ["a", "b"]
    assert [(c.finding.code, c.finding.severity) for c in found.complaints] == [("not-a-manifest", "note")]


def test_a_file_that_was_named_must_be_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 1\n")
    (only,) = read([str(tmp_path / "values.yaml")]).complaints
    assert only.finding.severity == "error"


def test_a_path_that_does_not_exist_is_a_mistake_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read([str(tmp_path / "absent.yaml")])


def test_standard_input_is_a_file_of_its_own() -> None:
    (item,) = read(["-"], CONFIG_MAP.format(name="x").encode()).items
    assert (item.file, item.title) == ("<stdin>", "ConfigMap x")
