/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of a replayed job, for people and for programs. */
#include <inttypes.h>

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
    struct json json = {.file = out};
    json_put(&json,
             "{\"version\": 1, \"nodes\": %u, \"messages\": %" PRIu64 ", \"bytes\": %.0f, "
             "\"unmatched\": %" PRIu64 ", \"cut\": %s, \"recorded_s\": %.9f, "
             "\"takes_s\": %.9f, \"ranks\": [",
             result->nodes, result->messages, result->bytes, result->unmatched,
             json_bool(recording->is_cut), result->took_s, result->takes_s);
    for (uint32_t i = 0; i < recording->rank_count; i++) {
        const struct replay_rank *rank = &result->ranks[i];
        json_put(&json,
                 "{\"node\": %s, \"computes_s\": %.9f, \"recorded_s\": %.9f, \"takes_s\": %.9f}",
                 json_text(recording->ranks[i].head.host).text, rank->computes_s, rank->waited_s,
                 rank->waits_s);
    }
    json_put(&json, "]}\n");
}
