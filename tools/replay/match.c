/* SPDX-License-Identifier: BSD-3-Clause */
/* Of messages with one sender, receiver, communicator and tag the first sent goes to the receive
 * that was posted first among those that got one: MPI keeps that order, whatever they asked for. */
#include "tools/replay/match.h"

#include <stdlib.h>
#include <string.h>

/* One end of a message, in the order in which they are sorted. */
struct end {
    uint32_t from, to, comm, tag;
    uint32_t receives;
    uint32_t event; /* among those of all ranks, which are in the order of each */
};

static int by_order(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    for (size_t i = 0; i < sizeof(struct end) / sizeof(*a); i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* What a receive got is known when it is done; without that, what it asked for. */
static uint32_t rank_gather(const struct recording_rank *rank, uint32_t *done, struct end *ends)
{
    uint32_t count = 0, me = rank->head.rank;
    for (uint32_t i = 0; i < rank->count; i++)
        if (rank->events[i].kind == RECORD_DONE)
            done[rank->events[i].number] = i;
    for (uint32_t i = 0; i < rank->count; i++) {
        const struct record_event *event = &rank->events[i];
        bool sends = event->kind == RECORD_SEND, receives = event->kind == RECORD_RECEIVE;
        const struct record_event *got = receives && done[i] ? &rank->events[done[i]] : event;
        done[i] = 0;
        if ((sends || receives) && got->peer != RECORD_ANY)
            ends[count++] = (struct end){sends ? me : got->peer,
                                         sends ? got->peer : me,
                                         event->comm,
                                         (uint32_t) got->tag,
                                         receives,
                                         rank->first + i};
    }
    return count;
}

/* Of each path the sends are first, then the receives. */
static void pair(const struct end *ends, uint32_t count, struct match *match)
{
    for (uint32_t first = 0, end = 0, sends = 0; first < count; first = end, sends = 0) {
        for (; end < count && !memcmp(&ends[first], &ends[end], offsetof(struct end, receives));
             end++)
            sends += !ends[end].receives;
        for (uint32_t i = first; i < first + sends && i + sends < end; i++)
            match->message[ends[i].event] = match->message[ends[i + sends].event] =
                match->message_count++;
    }
    match->unmatched = count - 2u * match->message_count;
}

bool match_make(const struct recording *recording, struct match *match)
{
    size_t events = recording->event_count;
    struct end *ends = malloc(events * sizeof(*ends));
    uint32_t *done = calloc(events, sizeof(*done)), count = 0;
    *match = (struct match){.message = malloc(events * sizeof(*match->message))};
    bool has_memory = ends && done && match->message;
    if (has_memory) {
        memset(match->message, 0xff, events * sizeof(*match->message)); /* MATCH_NONE */
        for (uint32_t i = 0; i < recording->rank_count; i++)
            count += rank_gather(&recording->ranks[i], done, ends + count);
        qsort(ends, count, sizeof(*ends), by_order);
        pair(ends, count, match);
    }
    free(ends);
    free(done);
    return has_memory;
}

void match_free(struct match *match)
{
    free(match->message);
}
