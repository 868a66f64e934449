# SPDX-License-Identifier: BSD-3-Clause
# Sources of pml/multilane.
component_LTLIBRARIES += mca_pml_multilane.la
mca_pml_multilane_la_SOURCES = \
	pml/multilane/pml_multilane_component.c
mca_pml_multilane_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_pml_multilane_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_pml_multilane_la_LIBADD = $(COMPONENT_LIBADD) $(OMPI_LIBS) $(OPAL_LIBS)
