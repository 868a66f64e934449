# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/mpi: tests that are MPI programs.
