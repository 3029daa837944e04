"""Runs the program without an engine and writes down the objects that it declares.

`python -P -m berkelium_lab.adopt.recorder` reads `{"project": …, "stack": …, "config": …, "secret": …}` as JSON from
its standard input (`config` with the project's prefix, each value as the engine would hand it over, and the keys of
those that hold secrets) and prints a list of `{"type": …, "inputs": …}`. A process of its own, since Pulumi keeps its
state in globals and the modules must be the project's. A fault of the configuration is printed to standard error, and
the exit code is 1.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any


def record(project: Path, stack: str, config: dict[str, str], secret: list[str]) -> list[dict[str, Any]]:
    """The type and the inputs of every resource that the program in `project` declares for the stack."""
    import pulumi
    from google.protobuf import json_format
    from pulumi.runtime import mocks

    class Answers(mocks.Mocks):
        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
            return f"{args.name}-id", dict(args.inputs)

        def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
            raise AssertionError(f"the program must not call {args.token}")

    class Monitor(mocks.MockMonitor):
        def RegisterResource(self, request: Any) -> Any:
            declared.append({"type": request.type, "inputs": json_format.MessageToDict(request.object)})
            return super().RegisterResource(request)

    declared: list[dict[str, Any]] = []
    answers = Answers()
    name = next(iter(config)).partition(":")[0]
    pulumi.runtime.set_mocks(answers, project=name, stack=stack, preview=False, monitor=Monitor(answers))
    pulumi.runtime.set_all_config(config, secret)

    @pulumi.runtime.test
    def program() -> None:
        runpy.run_path(str(project / "__main__.py"), run_name="__main__")

    program()
    return declared


def main() -> None:
    """Entry of the process."""
    request = json.load(sys.stdin)
    sys.path.insert(0, request["project"])
    # What is declared does not depend on the cluster, and the program must not look for one.
    os.environ["BERKELIUM_WITHOUT_CLUSTER"] = "1"
    import pulumi

    try:
        declared = record(Path(request["project"]), request["stack"], request["config"], request["secret"])
    except pulumi.RunError as error:
        sys.exit(str(error))
    json.dump(declared, sys.stdout)


if __name__ == "__main__":
    main()
