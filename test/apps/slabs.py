# SPDX-License-Identifier: BSD-3-Clause
"""Rows and then columns of one HDF5 file, written and read by all ranks together, each its part."""
import os
import sys

import h5py
import numpy
from mpi4py import MPI

SIDE, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
comm = MPI.COMM_WORLD
first, last = (SIDE * rank // comm.size for rank in (comm.rank, comm.rank + 1))
total = 0.0
for step in range(ROUNDS):
    name = f"slabs.{step}.h5"
    with h5py.File(name, "w", driver="mpio", comm=comm) as file:
        grid = file.create_dataset("grid", (SIDE, SIDE), "f8")
        rows = numpy.arange(first * SIDE, last * SIDE, dtype="f8").reshape(last - first, SIDE) * (step + 1)
        with grid.collective:
            grid[first:last, :] = rows
        file.attrs["round"] = step
    with h5py.File(name, "r", driver="mpio", comm=comm) as file:
        with file["grid"].collective:
            columns = file["grid"][:, first:last]
        weights = numpy.arange(SIDE, dtype="f8")[:, None]
        total += comm.allreduce(float((columns * weights).sum()))
    if comm.rank == 0:
        os.remove(name)
    comm.Barrier()
if comm.rank == 0:
    print(f"sum {total:.17g}")
