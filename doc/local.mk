# SPDX-License-Identifier: BSD-3-Clause
# Sources of doc: man pages.

dist_man_MANS += doc/multilane-plan.1
