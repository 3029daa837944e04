"""One operation of the Pulumi engine on a copy of the project, in a process of its own.

`python -P -m berkelium_lab.engine` reads a `Request` as JSON from its standard input and writes `Message`s, one JSON
object per line, to the file descriptor named in it. A process of its own, since Pulumi keeps its state in globals and
reads the environment, and since the program's modules must be the copy's, whatever the caller has imported.

No language host is needed: the Automation API serves the program to the engine itself.
"""

import os
import re
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from berkelium_lab.api import Api, connect
from berkelium_lab.recovery import ACCEPT, NotRecoverable, reconcile

if TYPE_CHECKING:
    from pulumi import automation

PROVIDER = "pulumi:providers:kubernetes"
Action = Literal["up", "preview", "refresh", "destroy", "recover"]


class Request(BaseModel):
    """What to do: on the project directory `project`, with `pulumi` in `root`/bin, on the stack `stack`.

    `provider_version` is the version of the provider in the lab's toolchain. `unlock` removes a lock first; the caller
    has made sure that its holder is dead. `rebuilt` says that the cluster was wiped and built anew. `secrets` are
    settings, by path, that are put into the stack encrypted.
    """

    action: Action
    project: Path
    project_name: str
    stack: str
    root: Path
    provider_version: str
    report_fd: int = -1
    refresh: bool = False
    unlock: bool = False
    rebuilt: bool = False
    secrets: dict[str, str] = {}


class Message(BaseModel):
    """What is reported: a resource (`kind` resource), a `warning`, an `error`, a `note`, or the `result` at the end.

    `state` of a resource is `started`, `done` or `failed`; `paths` are the properties that differ, each with the kind
    of its difference (add, update, delete, …). `text` is that of a diagnostic, or the differences that a preview
    printed, without colours.
    """

    kind: Literal["resource", "warning", "error", "note", "result"]
    operation: str = ""
    state: str = ""
    type: str = ""
    name: str = ""
    text: str = ""
    paths: dict[str, str] = {}
    changes: dict[str, int] = {}
    outputs: dict[str, Any] = {}
    failed: bool = False


class Reporter:
    """Turns the engine's events into messages."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self.changes: dict[str, int] = {}
        self.failed = False

    def __call__(self, event: Any) -> None:
        """Called for every event of the engine, in the Automation API's thread."""
        if event.resource_pre_event:
            self._resource(event.resource_pre_event.metadata, "started")
        elif event.res_outputs_event:
            self._resource(event.res_outputs_event.metadata, "done")
        elif event.res_op_failed_event:
            self._resource(event.res_op_failed_event.metadata, "failed")
        elif event.diagnostic_event:
            self._diagnostic(event.diagnostic_event)
        elif event.summary_event:
            self.changes = {str(name): count for name, count in event.summary_event.resource_changes.items()}

    def note(self, text: str) -> None:
        """Report something that a person should know."""
        self._send(Message(kind="note", text=text))

    def _resource(self, metadata: Any, state: str) -> None:
        operation = getattr(metadata.op, "value", str(metadata.op))
        name = metadata.urn.rsplit("::", 1)[-1]
        paths = {path: difference.diff_kind.value for path, difference in (metadata.detailed_diff or {}).items()}
        self._send(
            Message(kind="resource", operation=operation, state=state, type=metadata.type, name=name, paths=paths)
        )

    def _diagnostic(self, diagnostic: Any) -> None:
        if diagnostic.severity not in ("error", "warning"):
            return
        self.failed = self.failed or diagnostic.severity == "error"
        name = diagnostic.urn.rsplit("::", 1)[-1] if diagnostic.urn else ""
        text = re.sub(r"<\{%.*?%\}>|\x1b\[[0-9;]*m", "", diagnostic.message).strip()
        self._send(Message(kind=diagnostic.severity, name=name, text=text))


def program(project: Path, provider_version: str) -> Callable[[], None]:
    """The project's own `__main__.py` as an inline program, with the lab's provider in place of the SDK's."""

    def run() -> None:
        import pulumi

        def lab_provider(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
            if args.type_ != PROVIDER:
                return None
            version = pulumi.ResourceOptions(version=provider_version)
            return pulumi.ResourceTransformResult(args.props, pulumi.ResourceOptions.merge(args.opts, version))

        pulumi.runtime.register_resource_transform(lab_provider)
        _use_modules_of(project)
        runpy.run_path(str(project / "__main__.py"), run_name="__main__")

    return run


def _use_modules_of(project: Path) -> None:
    """Let the program import its modules from the copy, whatever of them this process has imported from elsewhere."""
    if str(project) not in sys.path:
        sys.path.insert(0, str(project))
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] == "berkelium_infra" and file and not Path(file).is_relative_to(project):
            del sys.modules[name]


def run(request: Request, send: Callable[[Message], None]) -> Message:
    """Carry the request out; the engine's errors are sent as they come. The result is the last message."""
    from pulumi import automation

    reporter = Reporter(send)
    try:
        stack = automation.create_or_select_stack(
            request.stack,
            request.project_name,
            program(request.project, request.provider_version),
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(request.project), pulumi_command=automation.PulumiCommand(str(request.root))
            ),
        )
        for path, value in request.secrets.items():
            stack.set_config(path, automation.ConfigValue(value, secret=True), path=True)
        outputs, text = _operate(stack, request, reporter)
    except NotRecoverable as error:
        send(Message(kind="error", text=str(error)))
        return Message(kind="result", failed=True)
    except automation.errors.CommandError as error:
        if not (reporter.failed and request.action == "preview"):
            # A preview that prints differences repeats its errors there.
            send(Message(kind="error", text=_standard_error(str(error))))
        return Message(kind="result", failed=True, changes=reporter.changes)
    changes = reporter.changes
    if request.action == "destroy":
        # The program is run for its hooks; what it declares is counted too, before it is deleted.
        changes = {operation: count for operation, count in changes.items() if operation == "delete"}
    return Message(kind="result", changes=changes, outputs=outputs, text=text)


def _operate(stack: "automation.Stack", request: Request, reporter: Reporter) -> tuple[dict[str, Any], str]:
    """Carry the operation out; the stack's outputs after an `up`, and what a `preview` printed."""
    if request.unlock or request.action == "recover":
        # The program runs in this process, and reads its environment.
        given = reconcile(stack, _cluster(), reporter.note, locked=request.unlock, rebuilt=request.rebuilt)
        os.environ |= given
        request = request.model_copy(update={"refresh": request.refresh or ACCEPT in given})
    if request.action in ("up", "recover"):
        result = stack.up(on_event=reporter, **_refreshing(request))
        return {name: output.value for name, output in result.outputs.items()}, ""
    if request.action == "preview":
        shown = stack.preview(on_event=reporter, diff=True, color="never", **_refreshing(request))
        return {}, shown.stdout
    if request.action == "refresh":
        stack.refresh(on_event=reporter)
    else:
        # With the program, whose hooks say whether anything may be deleted.
        stack.destroy(on_event=reporter, run_program=True)
    return {}, ""


def _cluster() -> Api:
    return connect(Path(os.environ["KUBECONFIG"]))


def _refreshing(request: Request) -> dict[str, Any]:
    """The refresh runs in the program, after it has made sure that this is the stack's cluster."""
    return {"refresh": True, "run_program": True} if request.refresh else {}


def _standard_error(text: str) -> str:
    """What the command line itself wrote as its error; the engine's own errors have come as events before."""
    _, _, stderr = text.partition("\n stderr: ")
    return stderr.strip().removeprefix("error: ")


def main() -> None:
    """Entry of the process; exits 1 after a failed operation."""
    # The engine is told to stop by its own signal; this process stays to report how that ended.
    signal.signal(signal.SIGINT, lambda *_: None)
    request = Request.model_validate_json(sys.stdin.read())
    with os.fdopen(request.report_fd, "w", encoding="utf-8") as channel:

        def send(message: Message) -> None:
            if message.kind == "error":
                # The log keeps the whole text; who reads the messages may shorten it.
                print(f"error: {message.name} {message.text}", flush=True)
            channel.write(message.model_dump_json(exclude_defaults=True) + "\n")
            channel.flush()

        result = run(request, send)
        send(result)
    sys.exit(1 if result.failed else 0)


if __name__ == "__main__":
    main()
