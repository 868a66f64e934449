# SPDX-License-Identifier: BSD-3-Clause
"""Heat in a square, by numpy: each rank has a strip, its edges go to both neighbours in each step."""
import sys

import numpy
from mpi4py import MPI

side, steps = int(sys.argv[1]), int(sys.argv[2])
world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
rows = side // ranks
above, below = rank - 1 if rank else MPI.PROC_NULL, rank + 1 if rank + 1 < ranks else MPI.PROC_NULL
heat = numpy.zeros((rows + 2, side))
heat[1:-1] = (numpy.arange(rank * rows, (rank + 1) * rows)[:, None] * 31 + numpy.arange(side) * 17) % 101
change = numpy.zeros(1)
for step in range(steps):
    world.Sendrecv(heat[1], above, recvbuf=heat[-1], source=below)
    world.Sendrecv(heat[-2], below, recvbuf=heat[0], source=above)
    new = (heat[:-2, 1:-1] + heat[2:, 1:-1] + heat[1:-1, :-2] + heat[1:-1, 2:]) * 0.25
    world.Allreduce(numpy.abs(new - heat[1:-1, 1:-1]).max(keepdims=True)[0], change, MPI.MAX)
    heat[1:-1, 1:-1] = new
if rank == 0:
    print(f"change {change[0]:.15e}")
