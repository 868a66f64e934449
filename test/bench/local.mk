# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/bench: benchmarks.
