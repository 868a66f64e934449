# SPDX-License-Identifier: BSD-3-Clause
# Sources of btl/shm, the lane over shared memory.
component_LTLIBRARIES += mca_btl_shm.la
mca_btl_shm_la_SOURCES = \
	btl/shm/btl_shm_component.c
mca_btl_shm_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_btl_shm_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_btl_shm_la_LIBADD = $(COMPONENT_LIBADD) $(OPAL_LIBS)
