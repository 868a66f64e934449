/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that measures the silence of lanes and peers. Unit tests link a clock of their own. */
#ifndef MULTILANE_CLOCK_H
#define MULTILANE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since a fixed, unknown moment; never goes back. */
uint64_t clock_now_ns(void);

#endif
