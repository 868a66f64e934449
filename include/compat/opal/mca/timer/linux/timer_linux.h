/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for Open MPI's timer_linux.h, which Debian does not install: it is read whenever a
 * header includes opal/mca/timer/base/base.h. */
#ifndef MULTILANE_COMPAT_TIMER_LINUX_H
#define MULTILANE_COMPAT_TIMER_LINUX_H

#include "opal_config.h"
#include "opal/sys/timer.h"

OPAL_DECLSPEC extern opal_timer_t (*opal_timer_base_get_cycles)(void);
OPAL_DECLSPEC extern opal_timer_t (*opal_timer_base_get_usec)(void);
OPAL_DECLSPEC extern opal_timer_t opal_timer_base_get_freq(void);

#endif
