# SPDX-License-Identifier: BSD-3-Clause
# That a plain MPI program still runs with the components in sight.
mpi ring.default 4 -- ring
mpi ring.multilane-$sm 4 --mca pml multilane --mca btl self,$sm -- ring
mpi ring.multilane-tcp 4 --mca pml multilane --mca btl self,tcp \
    --mca btl_tcp_if_include lo -- ring
mpi alone.multilane 1 --mca pml multilane -- components
