/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends do the same at the same time: force one lane, send, and look whether it was that one.
 * What they agree on goes over any lane that carries. */
#include "lane_test.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "common/lock/clock.h"
#include "common/model/number.h"

#define TAG         4
#define SHORT_BYTES 8
#define SHORTS_WARM 5
#define SHORTS      20
#define LONGS       8
/* No more long ones begin when those before took so long. */
#define LONGS_S 0.5

#define NONE UINT32_MAX
/* A change of plans in between takes a lane's messages elsewhere. */
#define TRIES 3

/* The names of the lanes of one end. */
struct lane_names {
    uint32_t count;
    char names[MODEL_LANES_MAX][sizeof(((struct model_lane *) 0)->name)];
};

/* What one end saw of a lane. */
struct lane_end {
    bool works, is_wrong, is_tried;
    double one_way_s, bytes_s;
    uint64_t sent;
    char why[LANE_TEST_NOTE - 32];
};

static void exchange(const struct lane_pair *pair, const void *mine, void *other, size_t bytes)
{
    MPI_Sendrecv(mine, (int) bytes, MPI_BYTE, pair->peer, TAG, other, (int) bytes, MPI_BYTE,
                 pair->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static bool agree(const struct lane_pair *pair, bool mine)
{
    bool other;
    exchange(pair, &mine, &other, sizeof(mine));
    return mine && other;
}

/* --- messages --------------------------------------------------------------------------------- */

static void give(const struct lane_pair *pair, uint64_t bytes)
{
    MPI_Send(pair->traffic->memory, (int) bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD);
}

static void take(const struct lane_pair *pair, uint64_t bytes)
{
    MPI_Recv(pair->traffic->memory, (int) bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

/* Half of the median round trip, at the first end. */
static double shorts_run(const struct lane_pair *pair, uint32_t count)
{
    double times[SHORTS];
    for (uint32_t i = 0; i < count; i++) {
        double start = clock_exact_s();
        if (pair->is_first)
            give(pair, SHORT_BYTES);
        take(pair, SHORT_BYTES);
        if (!pair->is_first)
            give(pair, SHORT_BYTES);
        times[i] = clock_exact_s() - start;
    }
    return number_median(times, count) / 2;
}

/* Each is answered by a short one; its first byte says whether another one follows. */
static void longs_give(const struct lane_pair *pair, uint32_t most, struct lane_end *end)
{
    double times[LONGS], begun = clock_exact_s();
    uint32_t count = 0;
    for (bool follows = true; follows; count++) {
        double start = clock_exact_s();
        follows = count + 1 < most && start - begun < LONGS_S;
        pair->traffic->memory[0] = follows;
        give(pair, LANE_TEST_BYTES);
        take(pair, SHORT_BYTES);
        times[count] = clock_exact_s() - start;
    }
    end->sent = count * LANE_TEST_BYTES + SHORTS * SHORT_BYTES;
    end->bytes_s = (double) LANE_TEST_BYTES / number_median(times, count);
}

static void longs_take(const struct lane_pair *pair)
{
    for (bool follows = true; follows;) {
        take(pair, LANE_TEST_BYTES);
        follows = pair->traffic->memory[0];
        give(pair, SHORT_BYTES);
    }
}

/* There, and then back. */
static void longs_run(const struct lane_pair *pair, uint32_t most, struct lane_end *end)
{
    if (!pair->is_first)
        longs_take(pair);
    longs_give(pair, most, end);
    if (pair->is_first)
        longs_take(pair);
}

/* --- one lane --------------------------------------------------------------------------------- */

/* What has gone over the lane alone so far. */
static uint64_t lane_look(const struct lane_pair *pair, uint32_t lane, struct lane_end *end)
{
    uint64_t bytes = 0;
    char why[128] = "";
    int state = pair->traffic->pml->state(pair->peer, lane, &bytes, why, sizeof(why));
    end->is_tried = state == MULTILANE_MEASURE_TRIED;
    end->is_wrong = state < 0;
    end->works = !end->is_wrong;
    snprintf(end->why, sizeof(end->why), "on %.24s it %s", pair->here, why);
    return bytes;
}

/* From now on messages go by it. */
static bool lane_force(const struct lane_pair *pair, uint32_t lane, struct lane_end *end)
{
    (void) lane_look(pair, lane, end);
    if (end->works && pair->traffic->pml->force(pair->peer, MULTILANE_MEASURE_UNTIMED,
                                                UINT32_C(1) << lane) != 0) {
        end->works = false;
        snprintf(end->why, sizeof(end->why), "does not carry all messages alone");
    }
    return agree(pair, end->works);
}

static void lane_measure(const struct lane_pair *pair, uint32_t lane, struct lane_end *end)
{
    uint64_t before = lane_look(pair, lane, end);
    end->one_way_s = shorts_run(pair, SHORTS);
    longs_run(pair, LONGS, end);
    uint64_t after = lane_look(pair, lane, end);
    if (!end->works || after >= before + end->sent)
        return;
    end->works = false;
    snprintf(end->why, sizeof(end->why), "messages from %.24s went over other lanes", pair->here);
}

/* The first messages connect the lane; they may tell its round trip, and plans are made anew. */
static void lane_warm(const struct lane_pair *pair, uint32_t lane, struct lane_end *end)
{
    do {
        shorts_run(pair, SHORTS_WARM);
        (void) lane_look(pair, lane, end);
    } while (!agree(pair, !end->is_tried));
    longs_run(pair, 1, end);
}

static void lane_run(const struct lane_pair *pair, uint32_t lane, struct lane_end *end)
{
    if (!lane_force(pair, lane, end))
        return;
    lane_warm(pair, lane, end);
    for (int i = 0; i < TRIES && lane_force(pair, lane, end); i++) {
        lane_measure(pair, lane, end);
        if (agree(pair, end->works || end->is_wrong))
            break;
    }
}

static void lane_test(const struct lane_pair *pair, uint32_t lane, struct lane_row *row)
{
    struct lane_end mine = {.works = false}, other;
    lane_run(pair, lane, &mine);
    pair->traffic->pml->force(pair->peer, MULTILANE_MEASURE_UNTIMED, 0);
    exchange(pair, &mine, &other, sizeof(mine));
    row->is_wrong = mine.is_wrong || other.is_wrong;
    if (!mine.works || !other.works) {
        snprintf(row->note, sizeof(row->note), "%s%s", row->is_wrong ? "does not connect: " : "",
                 mine.is_wrong || (!mine.works && !other.is_wrong) ? mine.why : other.why);
        return;
    }
    row->one_way_s = mine.one_way_s;
    row->bytes_s[0] = mine.bytes_s;
    row->bytes_s[1] = other.bytes_s;
}

/* --- all lanes between two -------------------------------------------------------------------- */

static void names_read(const struct lane_pair *pair, struct lane_names *names)
{
    struct multilane_lanes to;
    names->count = pair->traffic->pml->lanes(pair->peer, &to) == 0 ? to.count : 0;
    for (uint32_t i = 0; i < names->count; i++)
        memcpy(names->names[i], to.lanes[i].name, sizeof(to.lanes[i].name));
}

bool lane_names_are_like(const char *one, const char *other)
{
    size_t length = strcspn(one, ":");
    return strncmp(one, other, length) == 0 && strcspn(other, ":") == length;
}

/* To each lane of the first end one of the second, of its name if there is one, for hosts may call
 * their devices differently; NONE: there is none left. */
static void lanes_match(const struct lane_names ends[2], uint32_t match[2][MODEL_LANES_MAX])
{
    memset(match, 0xff, 2 * sizeof(match[0]));
    for (int by_name = 1; by_name >= 0; by_name--)
        for (uint32_t i = 0; i < ends[0].count; i++)
            for (uint32_t j = 0; j < ends[1].count && match[0][i] == NONE; j++) {
                const char *one = ends[0].names[i], *other = ends[1].names[j];
                if (match[1][j] == NONE &&
                    (by_name ? strcmp(one, other) == 0 : lane_names_are_like(one, other))) {
                    match[0][i] = j;
                    match[1][j] = i;
                }
            }
}

int lane_pair_test(const struct lane_pair *pair, struct lane_row rows[LANE_TEST_ROWS])
{
    struct lane_names ends[2]; /* the first one's, the second one's */
    uint32_t match[2][MODEL_LANES_MAX];
    int count = 0, mine = pair->is_first ? 0 : 1;
    names_read(pair, &ends[mine]);
    exchange(pair, &ends[mine], &ends[!mine], sizeof(ends[0]));
    lanes_match(ends, match);
    for (int end = 0; end < 2; end++)
        for (uint32_t i = 0; i < ends[end].count; i++) {
            struct lane_row *row = &rows[count];
            uint32_t other = match[end][i];
            *row = (struct lane_row){.from = pair->traffic->rank, .to = pair->peer};
            text_more(row->lane, sizeof(row->lane), "%s", ends[end].names[i]);
            if (other == NONE)
                snprintf(row->note, sizeof(row->note), "%s alone has it",
                         end == mine ? pair->here : pair->there);
            else if (end == 1)
                continue;
            else if (strcmp(row->lane, ends[1].names[other]) != 0)
                text_more(row->lane, sizeof(row->lane), "-%s", ends[1].names[other]);
            if (other != NONE)
                lane_test(pair, mine == 0 ? i : other, row);
            count++;
        }
    return count;
}
