# SPDX-License-Identifier: BSD-3-Clause
# Sources of btl/verbs, the lane over InfiniBand, RoCE and soft RoCE.
if BUILD_VERBS
component_LTLIBRARIES += mca_btl_verbs.la
mca_btl_verbs_la_SOURCES = \
	btl/verbs/btl_verbs_component.c
mca_btl_verbs_la_CPPFLAGS = $(COMPONENT_CPPFLAGS) $(VERBS_CPPFLAGS)
mca_btl_verbs_la_LDFLAGS = $(COMPONENT_LDFLAGS) $(VERBS_LDFLAGS)
mca_btl_verbs_la_LIBADD = $(COMPONENT_LIBADD) $(VERBS_LIBS) $(OPAL_LIBS)
endif
