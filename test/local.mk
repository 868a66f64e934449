# SPDX-License-Identifier: BSD-3-Clause
# Scripts of test/ itself, and `make style`.
