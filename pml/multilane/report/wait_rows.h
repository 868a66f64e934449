/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, communicators and processes in the words of the page; how long this process has
 * waited, in what, and for whom. */
#ifndef MULTILANE_WAIT_ROWS_H
#define MULTILANE_WAIT_ROWS_H

#include <stdio.h>

#include "common/compat/pml.h"
#include "multilane/page.h"

struct wait_story;

/* What a wait waits for: its requests that are not complete, or its probe. */
void wait_rows_fill(const struct wait_story *story, struct page_wait *to);

/* Describes a communicator. */
void page_comm_of(const ompi_communicator_t *comm, struct page_comm *to);

/* A number that tells communicators apart, alike in all their processes. */
uint32_t page_comm_number(const ompi_communicator_t *comm);

/* The process of a rank; PAGE_ANY and what is no rank: any. */
struct page_process page_process_of(const ompi_communicator_t *comm, int rank);

/* So much longer the process waits for what `wait` says: its first request. This and the next one
 * with the lock of wait_stories held. */
void waited_add(const struct page_wait *wait, uint64_t ns);
void waited_fill(struct page *page);

/* For explain, when nothing waits any more: lines of text, or the elements of an array of JSON. */
void waited_print(FILE *file);
void waited_print_json(FILE *file);

void waited_forget(void);

#endif
