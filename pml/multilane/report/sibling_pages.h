/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of other processes of the job on this node. */
#ifndef MULTILANE_SIBLING_PAGES_H
#define MULTILANE_SIBLING_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "multilane/page.h"

/* The page of the next process on this node, after `*rank`, which does not look for messages now.
 * False: the next one looks, so it answers itself; or there is none. */
bool sibling_page_next(uint32_t *rank, struct page *page);

#endif
