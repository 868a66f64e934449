/* SPDX-License-Identifier: BSD-3-Clause */
/* A page comes from another process, so all of it is checked before it is used. */
#ifndef COMMON_REPORT_PAGE_CHECK_H
#define COMMON_REPORT_PAGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "multilane/page.h"

#define PAGE_COMPLAINT 160

/* `bytes`: how many of the page were read. False: it is none that this program understands, and
 * `why` says so in one sentence. Else every count, kind and text of it is within bounds: what was
 * not is cut or unknown. */
bool page_check(struct page *page, size_t bytes, char why[PAGE_COMPLAINT]);

#endif
