/* SPDX-License-Identifier: BSD-3-Clause */
/* The history of a node: one line a start, one a way. */
#include "common/lane/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/file/whole_file.h"
#include "common/lane/host.h"
#include "common/model/number.h"
#include "common/model/protocol.h"

#define FIRST_LINE "multilane history 1\n"
#define LAST_LINE  "end\n"
#define BYTES_MAX  ((size_t) 1 << 20)

/* Times are whole picoseconds: the program may have set a locale with another decimal point. No
 * message takes less than a nanosecond, and none longer than a quarter of an hour. */
#define PS_LEAST UINT64_C(1000)
#define PS_MOST  UINT64_C(1000000000000000)

/* The numbers of a start. */
#define COSTS ((int) (sizeof(struct startup_costs) / sizeof(double)))

void history_path(const struct fingerprint *machine, char path[PROFILE_PATH_CHARS])
{
    profile_path(PROFILE_OF_USER, NULL, machine, path);
    char *name = strrchr(path, '/');
    if (name)
        memcpy(name + 1, "history", strlen("history")); /* for "profile" */
}

static double *cost_at(struct startup_costs *costs, int index)
{
    return (double *) (void *) costs + index;
}

static double cost_value(const struct startup_costs *costs, int index)
{
    return ((const double *) (const void *) costs)[index];
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool is_time(uint64_t ps)
{
    return ps >= PS_LEAST && ps <= PS_MOST;
}

static uint64_t ps_of(double seconds)
{
    return (uint64_t) (seconds * 1e12 + 0.5);
}

static void start_read(const char *line, struct history *history)
{
    struct startup_costs costs;
    unsigned kind;
    int at = 0;
    if (sscanf(line, "start %u%n", &kind, &at) != 1 || kind >= HISTORY_KINDS)
        return;
    for (int i = 0; i < COSTS; i++) {
        int length = 0;
        uint64_t ps;
        if (sscanf(line + at, "%" SCNu64 "%n", &ps, &length) != 1 || !(ps == 0 || is_time(ps)))
            return;
        *cost_at(&costs, i) = 1e-12 * (double) ps;
        at += length;
    }
    history_add_start(history, kind, &costs);
}

static void way_append(struct history *history, const struct history_way *way)
{
    uint32_t count = history->way_count;
    if (count == HISTORY_WAYS_MAX)
        return;
    if (count % 64 == 0) {
        struct history_way *more = realloc(history->ways, (count + 64) * sizeof(*more));
        if (!more)
            return;
        history->ways = more;
    }
    history->ways[history->way_count++] = *way;
}

static void way_read(const char *line, struct history *history)
{
    struct history_way way;
    char protocol[32];
    unsigned copies;
    uint64_t ps;
    if (sscanf(line, "way %159s %u %31s %x %u %u %u %" SCNu64, way.class, &way.buffer, protocol,
               &way.key.lanes, &copies, &way.bucket, &way.messages, &ps) != 8 ||
        copies > 1 || way.bucket >= LEARNED_BUCKETS || !way.key.lanes || !way.messages ||
        !is_time(ps))
        return;
    int index = model_protocol_find(protocol, NULL);
    if (index < 0)
        return;
    way.seconds = 1e-12 * (double) ps;
    way.key.protocol_index = (uint8_t) index;
    way.key.copies = copies;
    way_append(history, &way);
}

bool history_read(const char *path, struct history *history)
{
    size_t length = 0;
    bool is_absent;
    memset(history, 0, sizeof(*history));
    char *rest, *text = whole_file_read(path, BYTES_MAX, WHOLE_FILE_OWN, &length, &is_absent, NULL);
    bool is_whole = text && length > strlen(FIRST_LINE LAST_LINE) &&
                    strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) == 0 &&
                    strcmp(text + length - strlen(LAST_LINE), LAST_LINE) == 0;
    for (char *line = is_whole ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "start ", 6) == 0)
            start_read(line, history);
        else if (strncmp(line, "way ", 4) == 0)
            way_read(line, history);
    }
    bool is_known = text || is_absent;
    free(text);
    return is_known;
}

void history_free(struct history *history)
{
    free(history->ways);
    memset(history, 0, sizeof(*history));
}

/* --- adding ----------------------------------------------------------------------------------- */

static int by_time(const void *one, const void *other)
{
    double a = *(const double *) one, b = *(const double *) other;
    return (a > b) - (a < b);
}

/* What an empty message takes on near processors: the second shortest of all starts, as one may be
 * wrong; infinite: there is no start. */
static double near_empty_s(const struct history *history)
{
    double times[HISTORY_KINDS * HISTORY_STARTS];
    size_t count = 0;
    for (uint32_t kind = 0; kind < HISTORY_KINDS; kind++)
        for (uint32_t i = 0; i < history->starts[kind].count; i++)
            times[count++] = history->starts[kind].costs[i].empty_s;
    qsort(times, count, sizeof(times[0]), by_time);
    return count == 0 ? INFINITY : times[count > 1];
}

static uint32_t kind_of(double near_s, bool is_crowded, double empty_s)
{
    return (is_crowded ? HISTORY_CROWDED : 0) |
           (empty_s > HISTORY_APART * near_s ? HISTORY_IS_APART : 0);
}

uint32_t history_kind(const struct history *history, bool is_crowded, double empty_s)
{
    return kind_of(near_empty_s(history), is_crowded, empty_s);
}

static void start_append(struct history_starts *starts, const struct startup_costs *costs)
{
    if (starts->count == HISTORY_STARTS)
        memmove(&starts->costs[0], &starts->costs[1], (--starts->count) * sizeof(*costs));
    starts->costs[starts->count++] = *costs;
}

/* A start may show that all before it were apart. */
static void starts_place(struct history *history)
{
    const struct history before = *history;
    double near_s = near_empty_s(history);
    for (uint32_t kind = 0; kind < HISTORY_KINDS; kind++)
        history->starts[kind].count = 0;
    for (uint32_t kind = 0; kind < HISTORY_KINDS; kind++)
        for (uint32_t i = 0; i < before.starts[kind].count; i++) {
            const struct startup_costs *costs = &before.starts[kind].costs[i];
            uint32_t to = kind_of(near_s, kind & HISTORY_CROWDED, costs->empty_s);
            start_append(&history->starts[to], costs);
        }
}

void history_add_start(struct history *history, uint32_t kind, const struct startup_costs *costs)
{
    bool is_crowded = kind & HISTORY_CROWDED;
    if (!startup_check(costs)) {
        history->starts[kind].busy += history->starts[kind].busy < HISTORY_BUSY;
        return;
    }
    start_append(&history->starts[history_kind(history, is_crowded, costs->empty_s)], costs);
    starts_place(history);
}

static void way_remove(struct history *history, uint32_t at)
{
    struct history_way *way = &history->ways[at];
    memmove(way, way + 1, (--history->way_count - at) * sizeof(*way));
}

/* The newest is the last one. */
void history_add_way(struct history *history, const struct history_way *way)
{
    uint32_t at = 0;
    while (at < history->way_count &&
           !(history->ways[at].bucket == way->bucket && history->ways[at].buffer == way->buffer &&
             learned_key_equals(history->ways[at].key, way->key) &&
             strcmp(history->ways[at].class, way->class) == 0))
        at++;
    if (at < history->way_count)
        way_remove(history, at);
    else if (at == HISTORY_WAYS_MAX)
        way_remove(history, 0);
    way_append(history, way);
}

bool history_has_starts(const struct history_starts *starts)
{
    return starts->count == HISTORY_STARTS || starts->busy == HISTORY_BUSY;
}

bool history_costs(const struct history_starts *starts, struct startup_costs *costs)
{
    double values[HISTORY_STARTS];
    for (int i = 0; i < COSTS && starts->count > 0; i++) {
        for (uint32_t j = 0; j < starts->count; j++)
            values[j] = cost_value(&starts->costs[j], i);
        *cost_at(costs, i) = number_median(values, starts->count);
    }
    return starts->count > 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void start_write(FILE *file, uint32_t kind, const struct startup_costs *costs)
{
    fprintf(file, "start %" PRIu32, kind);
    for (int i = 0; i < COSTS; i++)
        fprintf(file, " %" PRIu64, ps_of(cost_value(costs, i)));
    fputc('\n', file);
}

static void starts_write(FILE *file, uint32_t kind, const struct history_starts *starts)
{
    static const struct startup_costs none;
    for (uint32_t i = 0; i < starts->busy; i++)
        start_write(file, kind, &none);
    for (uint32_t i = 0; i < starts->count; i++)
        start_write(file, kind, &starts->costs[i]);
}

static void all_write(FILE *file, const struct history *history)
{
    fputs(FIRST_LINE, file);
    for (uint32_t kind = 0; kind < HISTORY_KINDS; kind++)
        starts_write(file, kind, &history->starts[kind]);
    for (uint32_t i = 0; i < history->way_count; i++) {
        const struct history_way *way = &history->ways[i];
        fprintf(file, "way %s %u %s %x %u %u %u %" PRIu64 "\n", way->class, way->buffer,
                model_protocols[way->key.protocol_index]->name, way->key.lanes, way->key.copies,
                way->bucket, way->messages, ps_of(way->seconds));
    }
    fputs(LAST_LINE, file);
}

bool history_write(const char *path, const struct history *history)
{
    struct whole_file file;
    /* The signal of a file that is larger than allowed would end the process. */
    if (!host_allows_file(BYTES_MAX) || !whole_file_begin(&file, path, 0600, NULL))
        return false;
    all_write(file.out, history);
    return whole_file_end(&file, NULL);
}
