# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rows that parts give, and the place that they run on."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

OK, WRONG, FAILED, LEFT_OUT = "ok", "wrong", "failed", "left out"


class LeftOut(Exception):
    """Why something cannot run here, in a sentence."""


@dataclasses.dataclass
class Row:
    case: str
    status: str = OK
    reason: str = ""  # why the case has no values
    values: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Place:
    """Where the parts run, and how large their programs are."""

    device: str  # "cuda", or "emulator", whose programs take arrays of the CPU
    chip: str  # as "sm_90a"
    quick: bool
    build: str | None  # the build folder

    @property
    def options(self) -> dict[str, str]:
        """Of fp8.torch and fp8.jax: arrays that lie on a GPU say by themselves where a program runs."""
        return {"device": self.device, "target": self.chip} if self.device == "emulator" else {}

    def need_gpu(self) -> None:
        if self.device != "cuda":
            raise LeftOut("needs a GPU")


#: A part yields its rows as it goes, so that those before a failure or the time limit are kept.
Part = Callable[[Place], Iterator[Row]]


def sentence(error: BaseException) -> str:
    """The first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def attempt(case: str, measure: Callable[..., dict[str, Any]], *arguments: Any) -> Row:
    """A row with the values of `measure`, whose "ok", where it has one, is the verdict; a row with the reason where it cannot."""
    try:
        values = measure(*arguments)
        return Row(case, OK if values.pop("ok", True) else WRONG, values=values)
    except LeftOut as reason:
        return Row(case, LEFT_OUT, str(reason))
    except Exception as error:  # The other cases go on after any error.
        return Row(case, FAILED, sentence(error))
