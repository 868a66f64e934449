# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/memory: what kind of memory a pointer is.
