"""The engine's process seen from the command that runs it: start, messages, interruption, end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from berkelium_lab.engine import Message, Request
from berkelium_lab.interrupts import Interrupts
from berkelium_lab.processes import stop

GRACE_SECONDS = 60
"""Seconds that the engine may take to end in order after an interruption: Helm must write down how far it got."""


class Interrupted(Exception):
    """The operation was stopped by a signal; the text says whether the engine ended in order."""


def run_engine(
    request: Request, environment: dict[str, str], log: Path, on_message: Callable[[Message], None]
) -> Message:
    """Run one operation and return its result, a `Message` of kind `result`; every other one goes to `on_message`.

    SIGINT, SIGTERM and SIGHUP end the engine in order, and at once when they come again; then `Interrupted` is raised.
    Whatever happens, no process of it is left. What the processes print is appended to `log`.
    """
    receiver, sender = os.pipe()
    with os.fdopen(receiver, encoding="utf-8") as messages, log.open("ab") as output, Interrupts() as interrupts:
        with interrupts.held():
            process = _start(request, environment, output.fileno(), sender)
            os.close(sender)
        try:
            result = _receive(messages, on_message)
            process.wait()
            return result
        except KeyboardInterrupt:
            raise Interrupted(_interrupt(process)) from None
        finally:
            with interrupts.held():
                _end(process)


def _start(request: Request, environment: dict[str, str], output: int, sender: int) -> subprocess.Popen[bytes]:
    request = request.model_copy(update={"report_fd": sender})
    process = subprocess.Popen(
        # -P: the working directory is not searched for modules, else the copy's laboratory would be run.
        [sys.executable, "-P", "-m", "berkelium_lab.engine"],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        cwd=request.project,
        env=environment,
        pass_fds=(sender,),
        # A group of its own: the terminal's Ctrl-C reaches the command alone, which passes it on in order.
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(request.model_dump_json().encode())
    process.stdin.close()
    return process


def _receive(messages: Iterable[str], on_message: Callable[[Message], None]) -> Message:
    result = Message(kind="result", failed=True)
    for line in messages:
        message = Message.model_validate_json(line)
        if message.kind == "result":
            result = message
        else:
            on_message(message)
    return result


def _interrupt(process: subprocess.Popen[bytes]) -> str:
    try:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(GRACE_SECONDS)
        return "The engine ended in order."
    except ProcessLookupError:
        return "The engine had ended."
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        return "The engine was killed before it had ended in order."


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process's tree."""
    try:
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    if process.poll() is None:
        stop(tree, 5)
        process.wait()
