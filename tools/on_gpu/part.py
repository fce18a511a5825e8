# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process of a part: python part.py NAME PLACE FILE appends a row, in JSON, to a file after each case."""

import dataclasses
import importlib
import json
import sys
from typing import IO

from rows import FAILED, LEFT_OUT, LeftOut, Part, Place, Row, sentence

#: The module and function of each part.
PARTS = {
    "kernels": "kernels.compare",
    "tests": "own_tests.run",
    "train_step": "training.train_step",
    "backend": "training.backend",
    "jax": "training_jax.jit",
    "steps": "steps.measure",
    "products": "products.measure",
    "casts": "casts.measure",
}


def run(name: str, place: Place, file: IO[str]) -> None:
    def write(row: Row) -> None:
        print(json.dumps(dataclasses.asdict(row)), file=file, flush=True)

    module, function = PARTS[name].split(".")
    try:
        part: Part = getattr(importlib.import_module(module), function)
        for row in part(place):
            write(row)
    except LeftOut as reason:
        write(Row("", LEFT_OUT, str(reason)))
    except ModuleNotFoundError as error:
        write(Row("", LEFT_OUT, f"needs the Python package {error.name}, which {sys.executable} lacks"))
    except Exception as error:  # The table says so.
        write(Row("", FAILED, sentence(error)))


if __name__ == "__main__":
    with open(sys.argv[3], "a") as file:
        run(sys.argv[1], Place(**json.loads(sys.argv[2])), file)
