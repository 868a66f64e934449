# SPDX-License-Identifier: BSD-3-Clause
# Sources of osc/multilane, which refuses windows in device memory.
if BUILD_CUDA
component_LTLIBRARIES += mca_osc_multilane.la
mca_osc_multilane_la_SOURCES = osc/multilane/component.c
mca_osc_multilane_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_osc_multilane_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_osc_multilane_la_LIBADD = $(COMPONENT_LIBADD) $(OPAL_LIBS)
endif
