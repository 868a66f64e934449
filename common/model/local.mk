# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/model: arithmetic of costs and plans.
libmultilane_common_la_SOURCES += \
	common/model/cluster.h \
	common/model/cost.h \
	common/model/equation.h \
	common/model/error.h \
	common/model/lane.h \
	common/model/number.c common/model/number.h \
	common/model/plan.h \
	common/model/protocol.h \
	common/model/split.h
