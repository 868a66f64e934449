/* SPDX-License-Identifier: BSD-3-Clause */
/* The time by which lanes are judged; tests bring one of their own. */
#ifndef MULTILANE_CLOCK_H
#define MULTILANE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some moment; it never goes back. */
uint64_t clock_now_ns(void);

#endif
