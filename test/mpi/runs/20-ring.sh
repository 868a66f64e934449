# SPDX-License-Identifier: BSD-3-Clause
# That a plain MPI program still runs with the components in sight.
mpi ring.default 4 -- ring
