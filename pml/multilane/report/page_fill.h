/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills this process's page from the structures of the PML. */
#ifndef MULTILANE_PAGE_FILL_H
#define MULTILANE_PAGE_FILL_H

#include <stdbool.h>
#include <stdint.h>

struct lane;

/* What is wrong with a lane: an enum page_trouble_kind, and why, which begins with a verb. False:
 * nothing. */
bool lane_trouble(const struct lane *lane, uint32_t *kind, const char **why);

/* Who this process is; once, when its names are known. */
void page_fill_identity(void);

/* All that changes, with the waits of all threads. With the lock of wait_stories held, between
 * own_page_change and own_page_changed. Of the locks that messages need it takes each only if it
 * is free, for the copy of a row. */
void page_fill(uint64_t now);

#endif
