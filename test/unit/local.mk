# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/unit: unit tests without MPI.
