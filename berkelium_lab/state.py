"""What is known of a lab between two commands: one JSON file in its directory."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from berkelium_lab.errors import LabError
from berkelium_lab.paths import labs_dir, write_private
from berkelium_lab.processes import ProcessRecord

FILE = "lab.json"


class LabState(BaseModel):
    """A lab's name, its fleet as the user named it, its ports by listener and its processes by component."""

    model_config = ConfigDict(extra="forbid")

    name: str
    fleet: str
    ports: dict[str, int] = Field(default_factory=dict)
    processes: dict[str, ProcessRecord] = Field(default_factory=dict)

    def save(self, directory: Path) -> None:
        """Write the state into the lab's directory, at once."""
        write_private(directory / FILE, self.model_dump_json(indent=2) + "\n")


def load(directory: Path) -> LabState | None:
    """The state of the lab in `directory`; None when there is no lab. Raises `LabError` for a file it cannot read."""
    path = directory / FILE
    try:
        return LabState.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        text = f"{path} is no state of a lab ({error.error_count()} faults); `berkelium lab down` removes the lab"
        raise LabError(text) from None


def names() -> list[str]:
    """The names of all labs on this machine, running or not."""
    return sorted(path.parent.name for path in labs_dir().glob(f"*/{FILE}"))


def ports_of_other_labs(name: str) -> set[int]:
    """The ports that labs other than `name` have, running or not."""
    taken: set[int] = set()
    for path in labs_dir().glob(f"*/{FILE}"):
        if path.parent.name == name:
            continue
        try:
            state = load(path.parent)
        except LabError:
            continue
        taken.update(state.ports.values() if state else ())
    return taken
