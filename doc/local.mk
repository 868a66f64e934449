# SPDX-License-Identifier: BSD-3-Clause
# The man pages. The other documents are in a tarball by Makefile.am's dist-hook.

dist_man_MANS += doc/multilane-calibrate.1 doc/multilane-doctor.1 doc/multilane-plan.1 doc/multilane-top.1
