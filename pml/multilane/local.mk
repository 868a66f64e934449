# SPDX-License-Identifier: BSD-3-Clause
# Sources of pml/multilane.
component_LTLIBRARIES += mca_pml_multilane.la
# All but what happens in the end when a lane fails: the fuzzer of headers has its own.
multilane_sources = \
	common/compat/pml.h \
	pml/multilane/arrival.c pml/multilane/arrival.h \
	pml/multilane/attributes.c pml/multilane/attributes.h \
	pml/multilane/awaited.c pml/multilane/awaited.h \
	pml/multilane/clock.c pml/multilane/clock.h \
	pml/multilane/comm.c pml/multilane/comm.h \
	pml/multilane/component.c \
	pml/multilane/counter.h \
	pml/multilane/counters.c pml/multilane/counters.h \
	pml/multilane/credit.c pml/multilane/credit.h \
	pml/multilane/delivery.c pml/multilane/delivery.h \
	pml/multilane/departure.c pml/multilane/departure.h \
	pml/multilane/device.c pml/multilane/device.h \
	pml/multilane/device_memory.c pml/multilane/device_memory.h \
	pml/multilane/errors.h \
	pml/multilane/explain.c pml/multilane/explain.h \
	pml/multilane/flow.c pml/multilane/flow.h \
	pml/multilane/handle.c pml/multilane/handle.h \
	pml/multilane/inbound.c pml/multilane/inbound.h \
	pml/multilane/lane.c pml/multilane/lane.h \
	pml/multilane/lost.c pml/multilane/lost.h \
	pml/multilane/match.c pml/multilane/match.h \
	pml/multilane/measure.c pml/multilane/measure.h \
	pml/multilane/measured.c pml/multilane/measured.h \
	pml/multilane/module.c pml/multilane/multilane.h \
	pml/multilane/parameters.c pml/multilane/parameters.h \
	pml/multilane/peer.c pml/multilane/peer.h \
	pml/multilane/peer_lanes.c \
	pml/multilane/peer_class.c pml/multilane/peer_class.h \
	pml/multilane/pending.c pml/multilane/pending.h \
	pml/multilane/progress_thread.c pml/multilane/progress_thread.h \
	pml/multilane/pieces.c pml/multilane/pieces.h \
	pml/multilane/probe.c \
	pml/multilane/record.c pml/multilane/record.h \
	pml/multilane/recv.c \
	pml/multilane/recv_request.c pml/multilane/recv_request.h \
	pml/multilane/request.c pml/multilane/request.h \
	pml/multilane/rma.c pml/multilane/rma.h \
	pml/multilane/send.c \
	pml/multilane/send_request.c pml/multilane/send_request.h \
	pml/multilane/sockets.c pml/multilane/sockets.h \
	pml/multilane/staging.c pml/multilane/staging.h \
	pml/multilane/spans.c pml/multilane/spans.h \
	pml/multilane/stripe.c pml/multilane/stripe.h \
	pml/multilane/switch_points.c \
	pml/multilane/transfer.c pml/multilane/transfer.h \
	pml/multilane/watch.c pml/multilane/watch.h \
	pml/multilane/work.c pml/multilane/work.h \
	pml/multilane/view.c pml/multilane/view.h \
	pml/multilane/wire.h \
	pml/multilane/protocol/protocol.c pml/multilane/protocol/protocol.h \
	pml/multilane/protocol/eager_copy.c \
	pml/multilane/protocol/eager_short.c \
	pml/multilane/protocol/eager_zcopy.c \
	pml/multilane/protocol/rndv_am.c \
	pml/multilane/protocol/rndv_both.c \
	pml/multilane/protocol/rndv_device.c \
	pml/multilane/protocol/rndv_get.c \
	pml/multilane/protocol/rndv_put.c \
	pml/multilane/protocol/rndv_ring.c \
	pml/multilane/protocol/rndv_staged.c
mca_pml_multilane_la_SOURCES = $(multilane_sources) pml/multilane/errors.c
mca_pml_multilane_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_pml_multilane_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_pml_multilane_la_LIBADD = $(COMPONENT_LIBADD) $(OMPI_LIBS) $(OPAL_LIBS)
