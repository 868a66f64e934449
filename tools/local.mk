# SPDX-License-Identifier: BSD-3-Clause
# Sources of tools: the programs that users run.
