# SPDX-License-Identifier: BSD-3-Clause
# Part mpi-4.1.
about="MPI tests on Open MPI 4.1 (Debian 12)"
series=4.1
. "$top/test/parts/mpi-series.sh"
