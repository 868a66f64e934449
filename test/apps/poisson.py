# SPDX-License-Identifier: BSD-3-Clause
"""Poisson's equation in a cube by PETSc: conjugate gradients over a distributed grid."""
import sys

import petsc4py

petsc4py.init(["poisson", "-ksp_type", "cg", "-pc_type", "jacobi", "-ksp_rtol", "1e-8"])
from petsc4py import PETSc  # noqa: E402

side = int(sys.argv[1])
grid = PETSc.DMDA().create([side] * 3, stencil_width=1)
matrix = grid.createMatrix()
(x0, x1), (y0, y1), (z0, z1) = grid.getRanges()
here, there = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for place in ((x, y, z) for z in range(z0, z1) for y in range(y0, y1) for x in range(x0, x1)):
    here.index = place
    matrix.setValueStencil(here, here, 6)
    for axis in range(3):
        for step in (-1, 1):
            near = tuple(at + step * (number == axis) for number, at in enumerate(place))
            if all(0 <= at < side for at in near):
                there.index = near
                matrix.setValueStencil(here, there, -1)
matrix.assemble()
right, solution = grid.createGlobalVec(), grid.createGlobalVec()
right.set(1)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setFromOptions()
solver.solve(right, solution)
PETSc.Sys.Print(f"{solver.getIterationNumber()} iterations, norm {solution.norm():.9e}")
