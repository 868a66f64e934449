# SPDX-License-Identifier: BSD-3-Clause
# Sources of pml/multilane.
# Its folders are named in its includes: "peer/peer.h".
PML_CPPFLAGS = -I$(srcdir)/pml/multilane
component_LTLIBRARIES += mca_pml_multilane.la
# All but what happens in the end when a lane fails: the fuzzer of headers has its own.
multilane_sources = \
	common/compat/pml.h \
	pml/multilane/wire/wire.h \
	pml/multilane/base/clock.c pml/multilane/base/clock.h \
	pml/multilane/base/counter.h \
	pml/multilane/base/datatype.c pml/multilane/base/datatype.h \
	pml/multilane/base/handle.c pml/multilane/base/handle.h \
	pml/multilane/base/multilane.h \
	pml/multilane/base/offer_word.h \
	pml/multilane/base/own_page.c pml/multilane/base/own_page.h \
	pml/multilane/base/parameters.c pml/multilane/base/parameters.h \
	pml/multilane/base/pending.c pml/multilane/base/pending.h \
	pml/multilane/base/protocol.h \
	pml/multilane/base/spans.c pml/multilane/base/spans.h \
	pml/multilane/lane/lane.c pml/multilane/lane/lane.h \
	pml/multilane/lane/summed.c pml/multilane/lane/summed.h \
	pml/multilane/lane/transfer.c pml/multilane/lane/transfer.h \
	pml/multilane/peer/peer.c pml/multilane/peer/peer.h \
	pml/multilane/plan/attributes.c \
	pml/multilane/plan/costs.h \
	pml/multilane/plan/device_costs.c \
	pml/multilane/plan/learned_plan.c \
	pml/multilane/plan/learning.c pml/multilane/plan/learning.h \
	pml/multilane/plan/peer_class.c pml/multilane/plan/peer_class.h \
	pml/multilane/plan/stripe.c pml/multilane/plan/stripe.h \
	pml/multilane/plan/machine.c \
	pml/multilane/contact/contact.c pml/multilane/contact/contact.h \
	pml/multilane/contact/peer_lanes.c pml/multilane/contact/peer_lanes.h \
	pml/multilane/lane/waiting.c pml/multilane/lane/waiting.h \
	pml/multilane/lane/waited.h \
	pml/multilane/delivery/control.c pml/multilane/delivery/control.h \
	pml/multilane/match/comm.c pml/multilane/match/comm.h \
	pml/multilane/match/inbound.c pml/multilane/match/inbound.h \
	pml/multilane/match/match.c pml/multilane/match/match.h \
	pml/multilane/memory/device.h \
	pml/multilane/memory/device_ends.c \
	pml/multilane/memory/rma.c pml/multilane/memory/rma.h \
	pml/multilane/memory/staging.c \
	pml/multilane/memory/view.c \
	pml/multilane/request/taking.c \
	pml/multilane/request/pieces.c pml/multilane/request/pieces.h \
	pml/multilane/request/recv_request.c pml/multilane/request/recv_request.h \
	pml/multilane/request/request.c pml/multilane/request/request.h \
	pml/multilane/request/timer.c pml/multilane/request/timer.h \
	pml/multilane/request/send_request.c pml/multilane/request/send_request.h \
	pml/multilane/request/send_start.c \
	pml/multilane/protocol/common.c pml/multilane/protocol/common.h \
	pml/multilane/protocol/eager_copy.c \
	pml/multilane/protocol/eager_short.c \
	pml/multilane/protocol/eager_zcopy.c \
	pml/multilane/protocol/rndv_am.c \
	pml/multilane/protocol/rndv_both.c \
	pml/multilane/protocol/rndv_device.c \
	pml/multilane/protocol/rndv_get.c \
	pml/multilane/protocol/rndv_put.c \
	pml/multilane/protocol/rndv_staged.c \
	pml/multilane/protocol/table.c \
	pml/multilane/join/order.c \
	pml/multilane/join/posting.c pml/multilane/join/posting.h \
	pml/multilane/liveness/drain.c \
	pml/multilane/liveness/liveness.c pml/multilane/liveness/liveness.h \
	pml/multilane/liveness/lost.c \
	pml/multilane/liveness/watch.c \
	pml/multilane/liveness/wrong.c \
	pml/multilane/liveness/worse.c \
	pml/multilane/report/calibrate_hook.c pml/multilane/report/report.h \
	pml/multilane/report/shown.c \
	pml/multilane/report/explain.c \
	pml/multilane/report/job_pages.c \
	pml/multilane/report/page_fill.c \
	pml/multilane/report/wait_rows.c \
	pml/multilane/entry/arrival.c \
	pml/multilane/entry/blackbox.c \
	pml/multilane/entry/calls.h \
	pml/multilane/entry/comms.c \
	pml/multilane/entry/module.c \
	pml/multilane/entry/progress_thread.c \
	pml/multilane/entry/recv.c \
	pml/multilane/entry/send.c \
	pml/multilane/entry/service.c
# The library holds all but the component's own structure: the unit tests link it too.
noinst_LTLIBRARIES += libmultilane_pml.la
libmultilane_pml_la_SOURCES = $(multilane_sources) pml/multilane/liveness/errors.c
libmultilane_pml_la_CPPFLAGS = $(PML_CPPFLAGS) $(COMPONENT_CPPFLAGS)
mca_pml_multilane_la_SOURCES = pml/multilane/entry/component.c
mca_pml_multilane_la_CPPFLAGS = $(PML_CPPFLAGS) $(COMPONENT_CPPFLAGS)
mca_pml_multilane_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_pml_multilane_la_LIBADD = libmultilane_pml.la $(COMPONENT_LIBADD) $(OMPI_LIBS) $(OPAL_LIBS)
