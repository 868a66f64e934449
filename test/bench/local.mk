# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/bench: benchmarks.

# The bare ring, and the two ways of waiting.
check_PROGRAMS += test/bench/ring_bench
test_bench_ring_bench_SOURCES = test/bench/ring_bench.c
test_bench_ring_bench_LDADD = libmultilane_common.la

# What a plan costs to look up and to build.
check_PROGRAMS += test/bench/plan_lookup
test_bench_plan_lookup_SOURCES = test/bench/plan_lookup.c
test_bench_plan_lookup_LDADD = libmultilane_common.la
