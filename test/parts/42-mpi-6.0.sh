# SPDX-License-Identifier: BSD-3-Clause
# Part mpi-6.0.
about="MPI tests on Open MPI 6.0 (Debian forky)"
series=6.0
. "$top/test/parts/mpi-series.sh"
