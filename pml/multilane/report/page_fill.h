/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps this process's page: fills it from the structures of the PML, by the clock. */
#ifndef MULTILANE_PAGE_FILL_H
#define MULTILANE_PAGE_FILL_H

#include <stdbool.h>
#include <stdint.h>

struct lane;

/* What is wrong with a lane: an enum page_trouble_kind, and why, which begins with a verb. False:
 * nothing. */
bool lane_trouble(const struct lane *lane, uint32_t *kind, const char **why);

/* All that changes, with the waits of all threads. With the lock of wait_stories held, between
 * own_page_change and own_page_changed. Of the locks that messages need it takes each only if it
 * is free, for the copy of a row. */
void page_fill(uint64_t now);

/* --- from progress ---------------------------------------------------------------------------- */

/* Keeps this process's page: from progress, by the clock. */

/* Makes the page and begins to keep it. OMPI_ERR_OUT_OF_RESOURCE: no memory. */
int page_keeper_begin(void);
void page_keeper_end(void);

#endif
