/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of what include/multilane/measure.h offers. */
#ifndef MULTILANE_CALIBRATE_HOOK_H
#define MULTILANE_CALIBRATE_HOOK_H

/* Before the classes of peers go. */
void calibrate_hook_fini(void);

#endif
