# SPDX-License-Identifier: BSD-3-Clause
# Sources of coll/node: collective operations through memory that a node's processes share.
component_LTLIBRARIES += mca_coll_node.la
mca_coll_node_la_SOURCES = \
	coll/node/across.c \
	coll/node/agree.c \
	coll/node/area.c \
	coll/node/calls.c \
	coll/node/component.c \
	coll/node/count.c \
	coll/node/entry.h \
	coll/node/image.c \
	coll/node/image.h \
	coll/node/levels.c \
	coll/node/levels.h \
	coll/node/module.c \
	coll/node/node.h \
	coll/node/operations.c \
	coll/node/sums.c \
	coll/node/sums.h \
	coll/node/turn.h \
	coll/node/waits.c
mca_coll_node_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_coll_node_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_coll_node_la_LIBADD = $(COMPONENT_LIBADD) $(OMPI_LIBS) $(OPAL_LIBS)
