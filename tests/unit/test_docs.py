"""The documentation keeps step with the code: generated pages, links, the list of commands."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from berkelium_cli.main import SUBCOMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(
        page
        for folder in ("docs", "examples", "policies", "tools", "berkelium_lab")
        for page in (ROOT / folder).rglob("*.md")
    ),
]
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize(
    ("page", "command"),
    [("catalog.md", ["catalog", "--markdown"]), ("configuration.md", ["config", "reference", "--markdown"])],
)
def test_a_generated_page_is_what_its_command_prints(page: str, command: list[str]) -> None:
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0
    assert (ROOT / "docs" / page).read_text() == result.stdout, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    missing = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert missing == []


def test_the_readme_lists_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    assert [name for name in SUBCOMMANDS if f"`berkelium {name}" not in text] == []


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_help_of_a_command_has_examples(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.output
