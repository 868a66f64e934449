# SPDX-License-Identifier: BSD-3-Clause
# Sources of osc/multilane, which refuses device memory in one-sided operations.
if BUILD_CUDA
component_LTLIBRARIES += mca_osc_multilane.la
mca_osc_multilane_la_SOURCES = osc/multilane/component.c \
	osc/multilane/guard.c osc/multilane/guard.h
mca_osc_multilane_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_osc_multilane_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_osc_multilane_la_LIBADD = $(COMPONENT_LIBADD) $(OMPI_LIBS) $(OPAL_LIBS)
endif
