# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that run side by side, each on its part of the cores."""

import os
import pathlib
import selectors
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src"


class Failure(Exception):
    """The error and its remedy, in one line."""


def threads_each():
    return max(1, len(os.sched_getaffinity(0)) // 2)


class Processes:
    """One process for each variant, side by side; what they print comes line by line."""

    def __init__(self, commands):
        self.running, self.selector = {}, selectors.DefaultSelector()
        source = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads_each()), "FP8EMU_CHECKS": "1", "PYTHONPATH": source}
        for name, command in commands.items():
            errors = tempfile.TemporaryFile()  # a pipe that no one empties would stop the process
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, bufsize=0)
            self.running[name] = process, errors
            self.selector.register(process.stdout, selectors.EVENT_READ, [name, b""])

    def lines(self, timeout=0.2):
        """(name, line) as they come; (None, None) where nothing came for `timeout` seconds."""
        while self.selector.get_map():
            ready = self.selector.select(timeout)
            if not ready:
                yield None, None
            for key, _ in ready:
                name, rest = key.data
                data = os.read(key.fd, 65536)
                *whole, key.data[1] = (rest + data).split(b"\n")
                yield from ((name, line.decode()) for line in whole)
                if not data:
                    self.selector.unregister(key.fileobj)
                    self.finish(name)

    def finish(self, name):
        process, errors = self.running.pop(name)
        if process.wait() == 0:
            return
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
        tool = pathlib.Path(process.args[0]).name
        raise Failure(f"{name}: {said[0] if said else f'{tool} ended with code {process.returncode}'}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, _ in self.running.values():
            process.kill()
            process.wait()
