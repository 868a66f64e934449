/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the page of another process through /proc, and checks it. Nothing is stopped, and no
 * right to trace is needed. */
#ifndef COMMON_REPORT_PAGE_TAKE_H
#define COMMON_REPORT_PAGE_TAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/model/error.h"
#include "multilane/page.h"

enum page_found {
    PAGE_IS_READ,
    PAGE_NONE,      /* the process has no page: no rank of Multilane */
    PAGE_FORBIDDEN, /* another user's process */
    PAGE_GONE,      /* there is no such process */
    PAGE_REFUSED    /* there is a page, and it cannot be used */
};

/* A descriptor of one of the process's files (PAGE_FILE_NAME, DRAIN_FILE_NAME); -1: none, with
 * *found and errno. */
int page_descriptor(int pid, const char *file, int mode, enum page_found *found);

/* The page of a process, checked; else *why says why it is refused. */
enum page_found page_read(int pid, struct page *page, struct error_text *why);

/* `bytes`: how many of the page were read. False: it is none that this program understands, and
 * *why says so. Else every count, kind and text of it is within bounds: what was
 * not is cut or unknown. */
bool page_check(struct page *page, size_t bytes, struct error_text *why);

#endif
