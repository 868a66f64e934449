# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/fuzz: tests with arbitrary input.
