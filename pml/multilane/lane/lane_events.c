/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what is done when a lane fails. */
#include "lane/lane_events.h"

struct lane_events lane_events;
