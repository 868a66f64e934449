# SPDX-License-Identifier: BSD-3-Clause
# Sources of doc: man pages, the guide to the source.

dist_man_MANS += doc/multilane-calibrate.1 doc/multilane-plan.1
EXTRA_DIST += doc/way-of-a-message.md
