/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds the table. */
#include "lane/lane_events.h"

struct lane_events lane_events;
