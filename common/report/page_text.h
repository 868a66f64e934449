/* SPDX-License-Identifier: BSD-3-Clause */
/* What a page says, in words: for multilane-top, and for the rank itself (pml_multilane_hang_s).
 * All texts are cut where they do not fit, and end. */
#ifndef COMMON_REPORT_PAGE_TEXT_H
#define COMMON_REPORT_PAGE_TEXT_H

#include <stddef.h>

#include "common/model/number.h"
#include "common/report/json.h"
#include "multilane/page.h"

/* "MPI_Barrier", "MPI_Recv", ...: a wait inside a collective has the collective's name. */
const char *page_call_name(const struct page_wait *wait);

const char *page_collective_name(uint32_t collective);

/* "does not answer", "is broken", ... */
const char *page_trouble_name(uint32_t kind);

/* The kinds of waiting in words ("late sender") and as keys of JSON and metrics ("sender"). */
struct page_waited_word {
    const char *name, *key;
};
extern const struct page_waited_word page_waited_words[PAGE_WAITED_KINDS];

/* Of all kinds together. */
uint64_t page_waited_ns(const struct page_waited *row);

/* The member "waited": peers that were waited for, -1 for any. */
void page_waited_json(struct json *json, const struct page_waited *rows, uint32_t count);

/* "0.4 s", "41 s", "12 min". */
struct words page_time_text(uint64_t ns);

/* "rank 7", "any rank". */
struct words page_rank_text(uint32_t rank);

/* "MPI_COMM_WORLD", or the communicator's other name with this process's rank in it. */
struct words page_comm_text(const struct page_comm *comm);

/* "waits 41 s in MPI_Recv for rank 7, tag 12, MPI_COMM_WORLD". */
struct words page_wait_text(const struct page_wait *wait, uint64_t now_ns);

/* The peer's row; null: none. */
const struct page_peer *page_peer_of(const struct page *page, const struct page_process *name);

#endif
