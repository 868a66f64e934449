# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/model: arithmetic of costs and plans.
libmultilane_common_la_SOURCES += \
	common/model/attribute.c common/model/attribute.h \
	common/model/candidate.c common/model/candidate.h \
	common/model/cost.c common/model/cost.h \
	common/model/error.h \
	common/model/flow.c common/model/flow.h \
	common/model/group.c common/model/group.h \
	common/model/lane.c common/model/lane.h \
	common/model/learned.c common/model/learned.h \
	common/model/number.c common/model/number.h \
	common/model/plan.c common/model/plan.h \
	common/model/plan_input.c common/model/plan_input.h \
	common/model/protocol.c common/model/protocol.h
# A fused multiply-add where one compiler sees one and another does not would give them different
# times, and so other plans.
libmultilane_common_la_CFLAGS += -ffp-contract=off
