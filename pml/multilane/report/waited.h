/* SPDX-License-Identifier: BSD-3-Clause */
/* How long this process has waited, in what, and for whom. */
#ifndef MULTILANE_WAITED_H
#define MULTILANE_WAITED_H

#include <stdio.h>

#include "multilane/page.h"

/* So much longer the process waits for what `wait` says: its first request. This and the next one
 * with the lock of wait_stories held. */
void waited_add(const struct page_wait *wait, uint64_t ns);
void waited_fill(struct page *page);

/* For explain, when nothing waits any more: lines of text, or the elements of an array of JSON. */
void waited_print(FILE *file);
void waited_print_json(FILE *file);

void waited_forget(void);

#endif
