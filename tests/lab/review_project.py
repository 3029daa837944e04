"""A copy of the project in a git repository of its own, for reviews of changes made to it."""

import subprocess
from pathlib import Path

from ruamel.yaml import YAML

from berkelium_lab.project_copy import PROJECT
from berkelium_lab.review import trees

SETTINGS = "berkelium-infra:"


class ReviewProject:
    """The program, the stack `lab` and the examples, with one commit on the branch main."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        trees.copy(PROJECT, directory, "lab")
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """The output of a git command in the repository."""
        identity = ("-c", "user.name=Reviewer", "-c", "user.email=reviewer@example.com")
        command = ["git", "-C", str(self.directory), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def commit(self, subject: str) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", subject)

    def configure(self, **settings: object) -> None:
        """Set entries of the stack's file."""
        path = self.directory / "Pulumi.lab.yaml"
        content = YAML().load(path.read_text())
        content["config"] |= {f"{SETTINGS}{key}": value for key, value in settings.items()}
        with path.open("w") as file:
            YAML().dump(content, file)
