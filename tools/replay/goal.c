/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a recording in GOAL, which LogGOPSim's txt2bin reads. Event i of a rank is the label l<i>,
 * what the rank computes before it, and the message that it begins m<i>, whose tag is the number of
 * the message. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/replay/match.h"
#include "tools/replay/replay.h"

struct sent {
    uint32_t from;
    uint64_t bytes;
};

static void event_write(FILE *out, const struct recording_rank *rank, const uint32_t *message,
                        const struct sent *sent, uint32_t i)
{
    const struct record_event *event = &rank->events[i];
    fprintf(out, "l%u: calc %" PRIu64 "\n", i, i ? event->computed_ns : 0);
    if (i)
        fprintf(out, "l%u requires l%u\n", i, i - 1);
    if (i && event[-1].kind == RECORD_DONE && message[event[-1].number] != MATCH_NONE)
        fprintf(out, "l%u requires m%u\n", i, event[-1].number);
    if (message[i] == MATCH_NONE)
        return;
    bool sends = event->kind == RECORD_SEND;
    fprintf(out, "m%u: %s %" PRIu64 "b %s %u tag %u\nm%u requires l%u\n", i,
            sends ? "send" : "recv", sent[message[i]].bytes, sends ? "to" : "from",
            sends ? event->peer : sent[message[i]].from, message[i], i, i);
}

bool replay_goal(FILE *out, const struct recording *recording, struct model_error *error)
{
    struct match match;
    struct sent *sent =
        match_make(recording, &match) ? calloc(match.message_count + 1u, sizeof(*sent)) : NULL;
    const struct recording_rank *rank = recording->ranks, *end = rank + recording->rank_count;
    if (!sent) {
        match_free(&match);
        return model_fail(error, "there is no memory to replay");
    }
    for (; rank < end; rank++)
        for (uint32_t i = 0; i < rank->count; i++)
            if (rank->events[i].kind == RECORD_SEND && match.message[rank->first + i] != MATCH_NONE)
                sent[match.message[rank->first + i]] =
                    (struct sent){rank->head.rank, rank->events[i].bytes};
    fprintf(out, "num_ranks %u\n", recording->rank_count);
    for (rank = recording->ranks; rank < end; rank++) {
        fprintf(out, "\nrank %u {\n", rank->head.rank);
        for (uint32_t i = 0; i < rank->count; i++)
            event_write(out, rank, match.message + rank->first, sent, i);
        fputs("}\n", out);
    }
    match_free(&match);
    free(sent);
    return true;
}
