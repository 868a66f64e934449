# SPDX-License-Identifier: BSD-3-Clause
# `make style`: the layout of the code and the rules that a program can check.
style:
	$(PYTHON3) $(top_srcdir)/test/style.py --rules --format "$(CLANG_FORMAT)"
	$(PYTHON3) $(top_srcdir)/test/layers.py
	$(PYTHON3) $(top_srcdir)/test/ledger.py
.PHONY: style
