# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.config`: settings of this package. The environment is read once, at import."""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass
class Config:
    """Settings that can be changed at any time; a change holds for the compilations after it.

    >>> Config.from_environment({"FP8_CACHE_DIR": "/data/cache"}).cache_dir
    PosixPath('/data/cache')
    """

    #: Where compiled libraries are kept ($FP8_CACHE_DIR, else $XDG_CACHE_HOME/fp8-mlir, else ~/.cache/fp8-mlir).
    cache_dir: pathlib.Path
    #: Where the tools are looked for first ($FP8_TOOLS): a build or installation folder, or its bin.
    tool_dir: pathlib.Path | None = None
    #: Seconds after which a compilation is given up ($FP8_COMPILE_TIMEOUT). None: no limit for fp8-compile, 600 s for passes of jaxlib and torch-mlir.
    compile_timeout: float | None = None
    #: Whether a line per compilation goes to standard error, besides to the log ($FP8_VERBOSE=1).
    verbose: bool = False
    #: Where programs run that do not say it ($FP8_DEVICE): "cpu", "cuda", "cuda:N", "emulator". None: where their arguments lie.
    device: str | None = None
    #: The chip that they are compiled for ($FP8_TARGET): "cpu", "sm_89", "sm_90a", "sm_100a", "sm_120a". None: the chip of the device, on the emulator sm_90a.
    target: str | None = None

    def __setattr__(self, name: str, value: object) -> None:
        """Folders may be given as text, as in a notebook. Raises AttributeError for a setting that there is not."""
        names = [field.name for field in fields(self)]
        if name not in names:
            raise AttributeError(f"fp8.config has no {name}: its settings are {', '.join(names)}")
        if name in ("cache_dir", "tool_dir") and isinstance(value, (str, os.PathLike)):
            value = pathlib.Path(value).expanduser().absolute()
        object.__setattr__(self, name, value)

    @staticmethod
    def from_environment(environment: Mapping[str, str]) -> Config:
        """The settings that the environment asks for. Raises ValueError for a time that is no number."""
        cache = environment.get("FP8_CACHE_DIR")
        if not cache:
            cache = os.path.join(environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fp8-mlir")
        tools, timeout = environment.get("FP8_TOOLS"), environment.get("FP8_COMPILE_TIMEOUT")
        try:
            seconds = float(timeout) if timeout else None
        except ValueError:
            raise ValueError(f"FP8_COMPILE_TIMEOUT={timeout} is no number of seconds") from None
        return Config(
            cache_dir=_folder(cache),
            tool_dir=pathlib.Path(tools) if tools else None,
            compile_timeout=seconds,
            verbose=environment.get("FP8_VERBOSE", "0") not in ("", "0"),
            device=environment.get("FP8_DEVICE") or None,
            target=environment.get("FP8_TARGET") or None,
        )


def _folder(path: str) -> pathlib.Path:
    """An absolute path; a temporary folder, where the user has no home to put it in."""
    if (expanded := os.path.expanduser(path)).startswith("~"):
        expanded = tempfile.mkdtemp(prefix="fp8-mlir-")
        atexit.register(shutil.rmtree, expanded, ignore_errors=True)
    return pathlib.Path(expanded).absolute()


config = Config.from_environment(os.environ)
