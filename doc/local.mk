# SPDX-License-Identifier: BSD-3-Clause
# Sources of doc: man pages.

dist_man_MANS += doc/multilane-calibrate.1 doc/multilane-plan.1
