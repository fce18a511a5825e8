# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that the three benchmarks share: options, tools, peers that are there, progress, a list of the
peers left out."""

import argparse
import contextlib
import datetime
import pathlib
import tempfile
from collections.abc import Callable, Iterator

import display
import machine
import peers
from compiler import Tools
from failure import Failure


class Session:
    def __init__(self, options: argparse.Namespace, tools: Tools, running: dict[str, peers.Peer], left_out: list[str]):
        self.options, self.tools, self.peers, self.left_out = options, tools, running, left_out
        self.about: dict[str, object] = {
            "benchmark": options.benchmark,
            "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
            "processor": machine.describe(options.host, read_cpuinfo()),
            "cpu": options.cpu,
            "sums": options.sums,
            "versions": {"fp8-mlir": tools.version(), **{peers.TITLES[name]: p.version for name, p in running.items()}},
            "rounds": options.rounds,
            "left_out": left_out,
        }

    def header(self) -> list[str]:
        processor, versions = self.about["processor"], self.about["versions"]
        assert isinstance(processor, dict) and isinstance(versions, dict)
        date = str(self.about["date"])[:16].replace("T", " ")
        code = "this processor" if self.options.cpu == "native" else self.options.cpu
        code += ", sums of the hardware" if self.options.sums == "hardware" else ""
        kind = f" ({processor['llvm_name']})" if processor["llvm_name"] else ""
        return [
            f"fp8-bench {self.options.benchmark}, {date}",
            f"{processor['name']}{kind}, {processor['cores']} cores, {processor['vectors']}; code for {code}",
            ", ".join(f"{name} {version}" for name, version in versions.items()),
            "One round" if self.options.rounds == 1 else f"Least of {self.options.rounds} interleaved rounds",
            *(f"Left out: {sentence}" for sentence in self.left_out),
        ]

    def columns(self, titles: dict[str, dict[str, str]]) -> dict[str, tuple[str, str]]:
        """Column -> peer and type, of those in `titles` (peer -> column -> type) that can be measured."""
        found: dict[str, tuple[str, str]] = {}
        for name, peer in self.peers.items():
            for title, kind in titles[name].items():
                if kind in peer.kinds:
                    found[title] = name, kind
                else:
                    self.left_out.append(f"{title}, which has no fast code for the instructions of this processor")
        return found

    def progress(self, total: int) -> Callable[[str], None]:
        """Call the result with a note before each of `total` pieces of work; draws to a terminal only."""
        line, done = display.Progress(f"fp8-bench {self.options.benchmark}"), 0

        def advance(note: str) -> None:
            nonlocal done
            line.draw(min(done, total - 1), total, note)
            done += 1

        return advance


def read_cpuinfo() -> str:
    try:
        return pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def interpreter(options: argparse.Namespace, name: str) -> pathlib.Path | None:
    """The peer's interpreter: the one that was named, else the installed one, if any."""
    named = getattr(options, f"{name}_python")
    if named:
        if not pathlib.Path(named).is_file():
            raise Failure(f"--{name}-python={named}: there is no such file")
        return pathlib.Path(named)
    return peers.installed(name) if (peers.folder() / name / "complete").exists() else None


@contextlib.contextmanager
def start(options: argparse.Namespace, examples: pathlib.Path) -> Iterator[Session]:
    """A session with every peer that was asked for and is there; all ends with the `with` statement."""
    left_out: list[str] = []
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="fp8-bench-"))
        tools = Tools(options.bin, pathlib.Path(scratch), options.cpu, options.sums)
        tools.version()  # a missing fp8-compile is reported before anything long
        for what in options.install:
            peers.install(what)
        running: dict[str, peers.Peer] = {}
        for name in options.peers:
            python = interpreter(options, name)
            if python:
                peer = peers.Peer(name, python, machine.environment(options.cpu), examples)
                running[name] = stack.enter_context(peer)
            else:
                left_out.append(f"{peers.TITLES[name]}, which is not here (--install={name}, or --{name}-python=PYTHON)")
        if running and options.cpu != "native" and options.cpu not in machine.LIMITS:
            left_out.append(f"a limit for {' and '.join(map(peers.TITLES.get, running))}: they use all of this processor")
        if "jax" in running and options.cpu in machine.LIMITS:
            left_out.append("a limit for the library of products in XLA, which uses all of this processor; XLA's own code is limited")
        yield Session(options, tools, running, left_out)
