/* SPDX-License-Identifier: BSD-3-Clause */
/* What the requests of a wait are, in the words of the page, and how long such waits have taken. */
#include "report/report.h"

#include <string.h>

#include "common/compat/collective.h"
#include "match/comm.h"
#include "request/recv_request.h"
#include "request/request.h"
#include "request/send_request.h"
#include "common/report/page_text.h"

struct page_process page_process_of(const ompi_communicator_t *comm, int rank)
{
    const struct mca_pml_comm_t *own = comm->c_pml_comm;
    if (!own || rank < 0 || (uint32_t) rank >= own->size)
        return (struct page_process){.job = 0, .rank = PAGE_ANY_RANK};
    opal_process_name_t name = comm_name_of(own, (uint32_t) rank);
    return (struct page_process){.job = name.jobid, .rank = name.vpid};
}

void page_comm_of(const ompi_communicator_t *comm, struct page_comm *to)
{
    memset(to, 0, sizeof(*to));
    compat_comm_cid(comm, &to->id[0], &to->id[1]);
    to->my_rank = comm->c_my_rank;
    to->size = comm->c_pml_comm ? comm->c_pml_comm->size : 0;
    to->first = page_process_of(comm, 0);
    memcpy(to->name, compat_comm_name(comm), strnlen(compat_comm_name(comm), PAGE_NAME - 1));
}

uint32_t page_comm_number(const ompi_communicator_t *comm)
{
    uint64_t base, sub;
    compat_comm_cid(comm, &base, &sub);
    return (uint32_t) (sub ^ sub >> 32) + (base == sub ? 0 : 31 * (uint32_t) (base ^ base >> 32));
}

/* Relaxed, both: what other threads move meanwhile is described next time. */
static enum page_stage receive_stage(const struct recv_request *receive, uint64_t *left)
{
    if (!recv_request_peer(receive))
        return PAGE_UNMATCHED;
    size_t received = atomic_load_explicit(&receive->received, memory_order_relaxed);
    *left = *left > received ? *left - received : 0;
    return PAGE_MOVING;
}

static enum page_stage send_stage(const struct send_request *send, uint64_t *left)
{
    struct peer *peer = send->out.peer;
    enum page_stage stage = PAGE_UNKNOWN;
    if (OPAL_THREAD_TRYLOCK(&peer->credit_lock) == 0) {
        if (send->is_waiting)
            stage = send->is_admitted ? PAGE_NO_ROOM : PAGE_NO_CREDIT;
        OPAL_THREAD_UNLOCK(&peer->credit_lock);
    }
    *left = atomic_load_explicit(&send->unsent, memory_order_relaxed);
    /* The state belongs to the thread that moves the message. */
    if (stage != PAGE_UNKNOWN || opal_using_threads())
        return stage;
    if (send->out.answer.generation && *left == 0) /* it waits for its receive */
        return PAGE_ANNOUNCED;
    return send_state_of(send) == SEND_ANNOUNCED ? PAGE_ANNOUNCED
           : send_state_of(send) == SEND_IDLE    ? PAGE_UNKNOWN
                                                 : PAGE_MOVING;
}

static void pml_request_describe(const mca_pml_base_request_t *base, struct page_request *to)
{
    to->rank = base->req_peer;
    to->tag = base->req_tag;
    to->collective = (uint8_t) compat_collective_of_tag(base->req_tag);
    to->peer = page_process_of(base->req_comm, base->req_peer);
    page_comm_of(base->req_comm, &to->comm);
    to->bytes = to->left = base->req_datatype->super.size * base->req_count;
    if (base->req_type == MCA_PML_REQUEST_SEND) {
        to->kind = PAGE_SENDING;
        to->stage = (uint8_t) send_stage((const struct send_request *) base, &to->left);
    } else {
        to->kind = PAGE_RECEIVE;
        to->stage = (uint8_t) receive_stage((const struct recv_request *) base, &to->left);
    }
}

static void other_request_describe(const ompi_request_t *request, struct page_request *to)
{
    to->kind = PAGE_OTHER;
    to->rank = to->tag = PAGE_ANY;
    to->peer.rank = PAGE_ANY_RANK;
    if (request->req_type == OMPI_REQUEST_COLL && request->req_mpi_object.comm) {
        to->collective = PAGE_NONBLOCKING;
        page_comm_of(request->req_mpi_object.comm, &to->comm);
    }
}

/* A wait for a message without a request. */
static void message_describe(const ompi_communicator_t *comm, int rank, int tag,
                             enum page_request_kind kind, struct page_wait *to)
{
    struct page_request *row = &to->rows[to->row_count++];
    *row = (struct page_request){.kind = kind, .stage = PAGE_UNMATCHED, .rank = rank, .tag = tag};
    to->outstanding = 1;
    row->peer = page_process_of(comm, rank);
    page_comm_of(comm, &row->comm);
}

/* As a receive from the process that has not come. */
static void word_describe(const struct multilane_wait *word, struct page_wait *to)
{
    message_describe(word->comm, word->missing(word->with), word->tag, PAGE_RECEIVE, to);
    to->rows[0].collective = (uint8_t) compat_collective_of_tag(word->tag);
}

/* The requests that are not complete. */
static void requests_describe(ompi_request_t **requests, size_t count, struct page_wait *to)
{
    for (size_t i = 0; i < count; i++) {
        const ompi_request_t *request = requests[i];
        if (!request || request->req_state != OMPI_REQUEST_ACTIVE || request_is_complete(request))
            continue;
        to->outstanding++;
        if (to->row_count == PAGE_REQUESTS)
            continue;
        struct page_request *row = &to->rows[to->row_count++];
        memset(row, 0, sizeof(*row));
        if (request->req_type == OMPI_REQUEST_PML)
            pml_request_describe((const mca_pml_base_request_t *) request, row);
        else
            other_request_describe(request, row);
    }
}

void wait_rows_fill(const struct wait_story *story, struct page_wait *to)
{
    to->row_count = to->outstanding = to->reserved = 0;
    if (story->requests)
        requests_describe(story->requests, story->count, to);
    else if (story->word)
        word_describe(story->word, to);
    else
        message_describe(story->comm, story->source, story->tag, PAGE_PROBING, to);
}

/* --- for how long, in sum --------------------------------------------------------------------- */

/* Sums of waiting time by peer and kind. Nothing is timed for them: page_fill.c reads a clock
 * anyway in some rounds of progress, and a wait that it sees twice has lasted in between.
 * That clock has ticks of some milliseconds, so a short wait counts as none or as a whole tick, as
 * often as its length says: many short ones add up rightly. */

/* Row 0: any process, and those that have no row. */
static struct page_waited rows[PAGE_WAITED];
static uint32_t row_count;

void waited_forget(void)
{
    memset(rows, 0, sizeof(rows));
    rows[0].peer.rank = PAGE_ANY_RANK;
    row_count = 1;
}

/* Where all rows are taken, the peer takes that of the one waited for least. */
static struct page_waited *row_of(const struct page_process *peer)
{
    uint32_t least = 1;
    if (peer->rank == PAGE_ANY_RANK)
        return &rows[0];
    for (uint32_t i = 1; i < row_count; i++) {
        if (page_process_is(&rows[i].peer, peer))
            return &rows[i];
        if (page_waited_ns(&rows[i]) < page_waited_ns(&rows[least]))
            least = i;
    }
    if (row_count < PAGE_WAITED)
        least = row_count++;
    for (int kind = 0; kind < PAGE_WAITED_KINDS; kind++) {
        rows[0].ns[kind] += rows[least].ns[kind];
        rows[least].ns[kind] = 0;
    }
    rows[least].peer = *peer;
    return &rows[least];
}

static enum page_waited_kind kind_of(const struct page_request *row)
{
    if (row->collective)
        return PAGE_IN_COLLECTIVE;
    if (row->kind == PAGE_OTHER || row->stage == PAGE_MOVING || row->stage == PAGE_NO_ROOM)
        return PAGE_FOR_BYTES;
    return row->kind == PAGE_SENDING ? PAGE_FOR_RECEIVER : PAGE_FOR_SENDER;
}

void waited_add(const struct page_wait *wait, uint64_t ns)
{
    const struct page_request *first = &wait->rows[0];
    if (wait->row_count) /* else all has come */
        row_of(&first->peer)->ns[kind_of(first)] += ns;
}

void waited_fill(struct page *page)
{
    page->waited_count = row_count;
    memcpy(page->waited, rows, sizeof(rows));
}

/* Less than a tick says nothing. */
#define SHOWN_NS 10000000u

void waited_print(FILE *file)
{
    for (uint32_t i = 0; i < row_count; i++) {
        const char *between = ": ";
        if (page_waited_ns(&rows[i]) < SHOWN_NS)
            continue;
        fprintf(file, "  waited %.2f s for %s", (double) page_waited_ns(&rows[i]) * 1e-9,
                page_rank_text(rows[i].peer.rank).text);
        for (uint32_t kind = 0; kind < PAGE_WAITED_KINDS; kind++) {
            if (rows[i].ns[kind] < SHOWN_NS)
                continue;
            fprintf(file, "%s%.2f s %s", between, (double) rows[i].ns[kind] * 1e-9,
                    page_waited_words[kind].name);
            between = ", ";
        }
        fputc('\n', file);
    }
}

void waited_json(struct json *json)
{
    page_waited_json(json, rows, row_count);
}
