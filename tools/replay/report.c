/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of a replayed job, for people and for programs; and a recording as text. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/model/number.h"
#include "common/report/json.h"
#include "common/report/table.h"
#include "tools/replay/replay.h"

static void total_text(FILE *out, const char *what, double takes_s, double waits_s,
                       double computes_s)
{
    double all_s = waits_s + computes_s;
    fprintf(out, "%s %s, %.1f %% of it in messages\n", what, number_time(takes_s).text,
            all_s > 0 ? 100 * waits_s / all_s : 0);
}

void replay_text(FILE *out, const struct recording *recording, const struct replay_result *result)
{
    struct table table;
    struct replay_rank sum = {0};
    fprintf(out, "%u ranks on %u node%s, %" PRIu64 " messages of %.4g MB in all%s\n",
            recording->rank_count, result->nodes, number_plural(result->nodes), result->messages,
            1e-6 * result->bytes,
            recording->is_cut ? "; the recording ends before the job did" : "");
    if (result->unmatched)
        fprintf(out,
                "sends and receives without their other end, which take no time: %" PRIu64 "\n",
                result->unmatched);
    for (uint32_t i = 0; i < recording->rank_count; i++) {
        sum.computes_s += result->ranks[i].computes_s;
        sum.waited_s += result->ranks[i].waited_s;
        sum.waits_s += result->ranks[i].waits_s;
    }
    total_text(out, "recorded", result->took_s, sum.waited_s, sum.computes_s);
    total_text(out, "with these lanes", result->takes_s, sum.waits_s, sum.computes_s);
    table_init(&table, "rank\tnode\tcomputes\tin messages: recorded\twith these lanes");
    for (uint32_t i = 0; i < recording->rank_count; i++)
        table_row(&table, "%u\t%s\t%s\t%s\t%s", i, recording->ranks[i].head.host,
                  number_time(result->ranks[i].computes_s).text,
                  number_time(result->ranks[i].waited_s).text,
                  number_time(result->ranks[i].waits_s).text);
    table_print(&table, out, "");
}

void replay_json(FILE *out, const struct recording *recording, const struct replay_result *result)
{
    fprintf(out,
            "{\"version\": 1, \"nodes\": %u, \"messages\": %" PRIu64 ", \"bytes\": %.0f, "
            "\"unmatched\": %" PRIu64 ", \"cut\": %s,\n \"recorded_s\": %.9f, \"takes_s\": %.9f, "
            "\"ranks\": [",
            result->nodes, result->messages, result->bytes, result->unmatched,
            recording->is_cut ? "true" : "false", result->took_s, result->takes_s);
    for (uint32_t i = 0; i < recording->rank_count; i++) {
        const struct replay_rank *rank = &result->ranks[i];
        fprintf(out, "%s\n  {\"node\": ", i ? "," : "");
        json_text(out, recording->ranks[i].head.host);
        fprintf(out, ", \"computes_s\": %.9f, \"recorded_s\": %.9f, \"takes_s\": %.9f}",
                rank->computes_s, rank->waited_s, rank->waits_s);
    }
    fputs("]}\n", out);
}

/* --- a schedule of LogGOPSim ------------------------------------------------------------------ */

/* Writes a recording in GOAL, which LogGOPSim's txt2bin reads. Event i of a rank is the label l<i>,
 * what the rank computes before it, and the message that it begins m<i>, whose tag is the number of
 * the message. */

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
