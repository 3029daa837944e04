"""`python -m tests.lab.pulumi_shim …`: the `pulumi` command line of the lab's toolchain as an admin calls it.

The engine, the provider, the stack file and every flag are the real ones. Only the Python language host, which is not
built from a Go module, is replaced: this process serves the project's `__main__.py`, as the Automation API does.
"""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from pulumi.automation._server import LanguageServer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import language_pb2_grpc

from berkelium_lab.engine import program

PULUMI, VERSION = "BERKELIUM_TEST_PULUMI", "BERKELIUM_TEST_PROVIDER_VERSION"
"""Environment variables: the path of the real program, and the version of the provider that the lab has."""

_RUNS_ALWAYS = ("up", "update", "preview", "pre")
_RUNS_IF_ASKED = ("destroy", "refresh")


def runs_program(arguments: list[str]) -> bool:
    """Whether this command makes the engine run the program."""
    command = next((each for each in arguments if not each.startswith("-")), "")
    return command in _RUNS_ALWAYS or (command in _RUNS_IF_ASKED and "--run-program" in arguments)


def main() -> None:
    """Run the real program with the same arguments; its exit code is this one's."""
    arguments = sys.argv[1:]
    if not runs_program(arguments):
        os.execv(os.environ[PULUMI], ["pulumi", *arguments])
    # Ctrl-C reaches the whole process group; the engine decides how it ends.
    signal.signal(signal.SIGINT, lambda *_: None)
    server = grpc.server(ThreadPoolExecutor(max_workers=4), options=_GRPC_CHANNEL_OPTIONS)
    served = LanguageServer(program(Path.cwd(), os.environ[VERSION]))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(served, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ended = subprocess.run([os.environ[PULUMI], *arguments, f"--client=127.0.0.1:{port}"], check=False)
    server.stop(0)
    os._exit(ended.returncode)


if __name__ == "__main__":
    main()
