# SPDX-License-Identifier: BSD-3-Clause
# Part mpi-5.0.
about="MPI tests on Open MPI 5.0 (Debian 13)"
series=5.0
. "$top/test/parts/mpi-series.sh"
