# SPDX-License-Identifier: BSD-3-Clause
# Sources of doc: the man pages, a document for each subject, the script that writes one of them.

dist_man_MANS += doc/multilane-calibrate.1 doc/multilane-doctor.1 doc/multilane-plan.1 doc/multilane-top.1
EXTRA_DIST += doc/install.md doc/parameters.md doc/explain-and-calibrate.md doc/device-memory.md \
	doc/collectives.md doc/diagnose.md doc/failover.md doc/ledger.md doc/limits.md doc/model.md \
	doc/overlap.md doc/scale.md doc/sock.md doc/testing.md doc/architecture.md doc/parameters.py
