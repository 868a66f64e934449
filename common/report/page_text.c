/* SPDX-License-Identifier: BSD-3-Clause */
/* The words for waits and requests. */
#include "common/report/page_text.h"

#include <stdio.h>
#include <string.h>

const char *page_collective_name(uint32_t collective)
{
    static const char *const names[PAGE_COLLECTIVES] = {
        [PAGE_NO_COLLECTIVE] = "",
        [PAGE_ALLGATHER] = "MPI_Allgather",
        [PAGE_ALLGATHERV] = "MPI_Allgatherv",
        [PAGE_ALLREDUCE] = "MPI_Allreduce",
        [PAGE_ALLTOALL] = "MPI_Alltoall",
        [PAGE_ALLTOALLV] = "MPI_Alltoallv",
        [PAGE_ALLTOALLW] = "MPI_Alltoallw",
        [PAGE_BARRIER] = "MPI_Barrier",
        [PAGE_BCAST] = "MPI_Bcast",
        [PAGE_EXSCAN] = "MPI_Exscan",
        [PAGE_GATHER] = "MPI_Gather",
        [PAGE_GATHERV] = "MPI_Gatherv",
        [PAGE_REDUCE] = "MPI_Reduce",
        [PAGE_REDUCE_SCATTER] = "MPI_Reduce_scatter",
        [PAGE_REDUCE_SCATTER_BLOCK] = "MPI_Reduce_scatter_block",
        [PAGE_SCAN] = "MPI_Scan",
        [PAGE_SCATTER] = "MPI_Scatter",
        [PAGE_SCATTERV] = "MPI_Scatterv",
        [PAGE_NONBLOCKING] = "a nonblocking collective",
        [PAGE_OTHER_INTERNAL] = "an operation on communicators",
    };
    return collective < PAGE_COLLECTIVES ? names[collective] : "";
}

const char *page_call_name(const struct page_wait *wait)
{
    static const char *const names[PAGE_CALLS] = {
        [PAGE_NO_CALL] = "MPI",           [PAGE_RECV] = "MPI_Recv",
        [PAGE_SEND] = "MPI_Send",         [PAGE_PROBE] = "MPI_Probe",
        [PAGE_WAIT] = "MPI_Wait",         [PAGE_WAITALL] = "MPI_Waitall",
        [PAGE_WAITANY] = "MPI_Waitany",   [PAGE_WAITSOME] = "MPI_Waitsome",
        [PAGE_FINALIZE] = "MPI_Finalize",
    };
    uint32_t collective = wait->row_count ? wait->rows[0].collective : PAGE_NO_COLLECTIVE;
    if (collective && collective != PAGE_NONBLOCKING)
        return page_collective_name(collective);
    return names[wait->call < PAGE_CALLS ? wait->call : PAGE_NO_CALL];
}

const char *page_trouble_name(uint32_t kind)
{
    static const char *const names[PAGE_TROUBLES_KNOWN] = {
        [PAGE_SILENT] = "does not answer", [PAGE_BROKEN] = "is broken",
        [PAGE_WORSE] = "has become worse", [PAGE_RESERVE] = "is kept in reserve",
        [PAGE_DRAINED] = "is drained",
    };
    return kind < PAGE_TROUBLES_KNOWN ? names[kind] : "";
}

const struct page_waited_word page_waited_words[PAGE_WAITED_KINDS] = {
    [PAGE_FOR_SENDER] = {"late sender", "sender"},
    [PAGE_FOR_RECEIVER] = {"late receiver", "receiver"},
    [PAGE_IN_COLLECTIVE] = {"in collectives", "collective"},
    [PAGE_FOR_BYTES] = {"bytes moved", "bytes"},
};

uint64_t page_waited_ns(const struct page_waited *row)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < PAGE_WAITED_KINDS; kind++)
        sum += row->ns[kind];
    return sum;
}

void page_waited_json(struct json *json, const struct page_waited *rows, uint32_t count)
{
    json_put(json, "\"waited\": [");
    for (uint32_t i = 0; i < count; i++) {
        if (page_waited_ns(&rows[i]) == 0)
            continue;
        json_put(json, "{\"rank\": %lld",
                 rows[i].peer.rank == PAGE_ANY_RANK ? -1LL : (long long) rows[i].peer.rank);
        for (uint32_t kind = 0; kind < PAGE_WAITED_KINDS; kind++)
            json_put(json, "\"%s_s\": %.3f", page_waited_words[kind].key,
                     (double) rows[i].ns[kind] * 1e-9);
        json_put(json, "}");
    }
    json_put(json, "]");
}

struct words page_time_text(uint64_t ns)
{
    double seconds = (double) ns * 1e-9;
    if (seconds < 600)
        return words_of(seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
    return words_of("%.0f min", seconds / 60);
}

struct words page_comm_text(const struct page_comm *comm)
{
    if (strcmp(comm->name, "MPI_COMM_WORLD") == 0)
        return words_of("%s", comm->name);
    if (comm->name[0])
        return words_of("communicator \"%s\" of %u", comm->name, comm->size);
    return words_of("communicator %llu of %u", (unsigned long long) comm->id[1], comm->size);
}

struct words page_rank_text(uint32_t rank)
{
    return rank == PAGE_ANY_RANK ? words_of("any rank") : words_of("rank %u", rank);
}

static struct words target_text(const struct page_request *row)
{
    if (row->peer.rank == PAGE_ANY_RANK && row->rank != PAGE_ANY)
        return words_of("rank %d there", row->rank);
    return page_rank_text(row->peer.rank);
}

/* "rank 7, tag 12, MPI_COMM_WORLD". */
static struct words request_text(const struct page_request *row)
{
    if (row->kind == PAGE_OTHER && !row->collective)
        return words_of("a request of another kind");
    struct words words = row->kind == PAGE_OTHER
                             ? words_of("%s", page_collective_name(row->collective))
                             : target_text(row);
    if (row->collective)
        ; /* the call's name says it */
    else if (row->tag == PAGE_ANY)
        words_more(&words, ", any tag");
    else
        words_more(&words, ", tag %d", row->tag);
    words_more(&words, ", %s", page_comm_text(&row->comm).text);
    return words;
}

static const char *stage_text(const struct page_request *row)
{
    switch (row->stage) {
    case PAGE_ANNOUNCED:
        return " (which has posted no receive for it)";
    case PAGE_NO_CREDIT:
        return " (which keeps as many messages as it promised to)";
    case PAGE_NO_ROOM:
        return " (no lane to it has room)";
    case PAGE_MOVING:
        return " (bytes are under way)";
    default:
        return "";
    }
}

struct words page_wait_text(const struct page_wait *wait, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns > wait->since_ns ? now_ns - wait->since_ns : 0;
    struct words words =
        words_of("waits %s in %s", page_time_text(waited_ns).text, page_call_name(wait));
    if (wait->call == PAGE_FINALIZE)
        words_more(&words, " for the other ranks to come there");
    for (uint32_t i = 0; i < wait->row_count && i < 2; i++)
        words_more(&words, "%s %s%s", i ? ", and" : " for", request_text(&wait->rows[i]).text,
                   stage_text(&wait->rows[i]));
    if (wait->outstanding > 2)
        words_more(&words, ", and %u more requests", wait->outstanding - 2);
    return words;
}

const struct page_peer *page_peer_of(const struct page *page, const struct page_process *name)
{
    for (uint32_t i = 0; i < page->peer_count; i++)
        if (page_process_is(&page->peers[i].name, name))
            return &page->peers[i];
    return NULL;
}
