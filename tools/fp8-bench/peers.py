# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX and PyTorch, each a process of its own interpreter that measures what it is asked to.

The scripts in `peer/` read one request a line, in JSON, and answer each with one line: `{"error":
sentence}`, or the result.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import IO, Any

from failure import Failure

HERE = pathlib.Path(os.path.abspath(__file__)).parent
TITLES = {"jax": "JAX", "torch": "PyTorch"}

# The values of --install: the environment's name, pip's arguments, and the size that is announced before.
INSTALLS: dict[str, tuple[str, list[str], str]] = {
    "jax": ("jax", ["jax==0.10.2", "jaxlib==0.10.2"], "about 0.4 GB"),
    "torch": ("torch", ["torch==2.15.0", "numpy"], "several GB, as it brings CUDA; --install=torch-cpu brings less"),
    "torch-cpu": (
        "torch",
        ["torch==2.15.0", "numpy", "--index-url=https://download.pytorch.org/whl/cpu"],
        "about 1 GB, from download.pytorch.org",
    ),
}


def folder() -> pathlib.Path:
    """Where --install puts environments."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "fp8-mlir/peers"


def installed(name: str) -> pathlib.Path:
    return folder() / name / "bin/python"


def install(what: str) -> None:
    """Makes the environment of a peer; does nothing where it is."""
    name, packages, size = INSTALLS[what]
    if (folder() / name / "complete").exists():
        return
    print(f"Installing {TITLES[name]} in {folder() / name}: {size}", flush=True)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder() / name)],
        [str(installed(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise Failure(f"{TITLES[name]} was not installed: {lines[-1] if lines else 'no reason given'}")
    (folder() / name / "complete").touch()


class Peer:
    """A running peer. Use it in a `with` statement, which ends it."""

    def __init__(self, name: str, python: pathlib.Path, environment: dict[str, str], examples: pathlib.Path):
        self.name, self.python = name, python
        self.errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115
        command = [str(python), str(HERE / f"peer/{name}_peer.py"), str(examples)]
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment
            )
        except OSError as error:
            raise Failure(f"{TITLES[name]}'s interpreter {python} does not run: {error.strerror}") from None
        about = self._started()
        self.version: str = about["version"]
        self.kinds: list[str] = about["kinds"]  # types whose products this processor has fast code for

    def _started(self) -> dict[str, Any]:
        try:
            return self.ask("version")
        except Failure:
            self.__exit__()
            raise

    def ask(self, task: str, **details: object) -> dict[str, Any]:
        """The peer's answer to a request."""
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps({"task": task, **details}) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline() or "null")
        except (BrokenPipeError, json.JSONDecodeError):
            answer = None
        if isinstance(answer, dict) and "error" not in answer:
            return answer
        reason = answer["error"] if isinstance(answer, dict) else self._last_words()
        raise Failure(f"{TITLES[self.name]} ({self.python}) failed: {reason}")

    def _last_words(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return lines[-1] if lines else "it ended without an answer"

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.process.communicate(timeout=5)
        except (subprocess.TimeoutExpired, BrokenPipeError, ValueError):
            self.process.kill()
            self.process.wait()
        self.errors.close()
