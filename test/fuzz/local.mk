# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/fuzz: tests with arbitrary input.

# Lane files, numbers and lists of protocols from arbitrary bytes. For a longer search, with clang:
# -DFUZZ_WITH_LIBFUZZER -fsanitize=fuzzer,address,undefined, the same three groups of sources.
check_PROGRAMS += test/fuzz/fuzz_lane_file
TESTS += test/fuzz/fuzz_lane_file
test_fuzz_fuzz_lane_file_SOURCES = test/fuzz/fuzz_lane_file.c tools/lane_file.c tools/lane_file.h
test_fuzz_fuzz_lane_file_LDADD = libmultilane_common.la
