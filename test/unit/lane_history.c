/* SPDX-License-Identifier: BSD-3-Clause */
/* The history of a node: what was written is read again, and what lies is as if it were not there.
 */
#include "check.h"

#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/lane/history.h"
#include "common/model/protocol.h"

static char folder[64], path[128];

static struct startup_costs costs_of(double factor)
{
    struct startup_costs costs = {.empty_s = factor * 1e-7, .both_s = factor * 5e-5};
    for (int i = 0; i < STARTUP_SIZES; i++) {
        costs.ring_s[i] = factor * (2e-7 + (double) STARTUP_BYTES(i) / 2e10);
        costs.kernel_s[i] = factor * (6e-7 + (double) STARTUP_BYTES(i) / 1e10);
    }
    return costs;
}

static struct history_way way_of(uint32_t bucket, double seconds)
{
    struct history_way way = {.class = "cache/shm:shm",
                              .buffer = 1,
                              .key = {.lanes = 3, .protocol_index = MODEL_RNDV_AM, .copies = true},
                              .bucket = bucket,
                              .messages = 7,
                              .seconds = seconds};
    return way;
}

static void text_write(const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0, "%s", path);
    if (file)
        fclose(file);
}

static void what_was_written_is_read(void)
{
    struct history history = {0}, read;
    struct startup_costs costs = costs_of(1), busy = {.change_s = 1.5e-6};
    struct history_way way = way_of(20, 1.2345e-5);
    history_add_start(&history, HISTORY_CROWDED, &costs);
    history_add_start(&history, 0, &busy);
    history_add_way(&history, &way);
    way.seconds = 2.5e-5;
    history_add_way(&history, &way); /* replaces it */
    way.bucket = 21;
    history_add_way(&history, &way);
    CHECK(history.way_count == 2, "%u ways", history.way_count);
    if (setlocale(LC_ALL, "de_DE.UTF-8")) /* which not every machine has */
        CHECK(history_write(path, &history), "%s", path);
    CHECK(history_write(path, &history), "%s", path);
    history_read(path, &read);
    CHECK(read.starts[true].count == 1 && read.starts[true].busy == 0, "%u starts",
          read.starts[true].count);
    CHECK(read.starts[false].count == 0 && read.starts[false].busy == 1, "%u busy starts",
          read.starts[false].busy);
    CHECK(fabs(read.starts[true].costs[0].both_s / 5e-5 - 1) < 1e-6, "both %g",
          read.starts[true].costs[0].both_s);
    CHECK(read.way_count == 2 && read.ways[0].bucket == 20 && read.ways[1].bucket == 21 &&
              fabs(read.ways[0].seconds / 2.5e-5 - 1) < 1e-6 && read.ways[0].messages == 7 &&
              read.ways[0].buffer == 1 && learned_key_equals(read.ways[0].key, way.key) &&
              strcmp(read.ways[0].class, way.class) == 0,
          "%u ways", read.way_count);
    history_free(&read);
    history_free(&history);
}

static void a_busy_start_is_outvoted(void)
{
    struct history history = {0};
    struct startup_costs costs;
    static const double factors[] = {1, 40, 1.01, 0.99, 1, 1.02};
    for (int i = 0; i < 6; i++) {
        costs = costs_of(factors[i]);
        costs.empty_s = 1e-7;
        CHECK(history_has_starts(&history.starts[0]) == (i > 4), "%d starts are enough", i);
        history_add_start(&history, 0, &costs);
    }
    CHECK(history_costs(&history.starts[0], &costs), "the newest ones");
    CHECK(fabs(costs.kernel_s[STARTUP_1M] / costs_of(1).kernel_s[STARTUP_1M] - 1) < 0.03,
          "1 MiB: %g s", costs.kernel_s[STARTUP_1M]);
    CHECK(!history_costs(&history.starts[1], &costs) && !history_has_starts(&history.starts[1]),
          "other starts");
}

/* A node that uses crowded and other jobs in turns forgets neither, and one that is always busy is
 * not measured in each start. */
static void measuring_comes_to_an_end(void)
{
    struct history history = {0};
    struct startup_costs costs = costs_of(1), none = {0};
    for (int i = 0; i < HISTORY_STARTS; i++)
        for (uint32_t crowded = 0; crowded < 2; crowded++)
            history_add_start(&history, crowded, &costs);
    CHECK(history_has_starts(&history.starts[0]) && history_has_starts(&history.starts[1]),
          "one kind of start has pushed the other out");
    CHECK(history_write(path, &history), "%s", path);
    history_read(path, &history);
    CHECK(history_has_starts(&history.starts[0]) && history_has_starts(&history.starts[1]),
          "so it did when read");
    history = (struct history){0};
    for (int i = 0; i < 2 * HISTORY_BUSY; i++) {
        CHECK(history_has_starts(&history.starts[0]) == (i >= HISTORY_BUSY), "after %d busy starts",
              i);
        history_add_start(&history, 0, &none);
    }
    CHECK(!history_costs(&history.starts[0], &costs), "busy starts have measured something");
}

/* A virtual machine whose processors its host moves apart has other costs then. */
static void starts_apart_are_kept_apart(void)
{
    struct history history = {0};
    struct startup_costs near = costs_of(1), apart = costs_of(4), costs;
    for (int i = 0; i < HISTORY_STARTS; i++)
        history_add_start(&history, history_kind(&history, false, apart.empty_s), &apart);
    CHECK(history_has_starts(&history.starts[0]), "the first ones are the only ones");
    history_add_start(&history, history_kind(&history, false, near.empty_s), &near);
    CHECK(!history_kind(&history, false, apart.empty_s), "one start may be wrong");
    history_add_start(&history, history_kind(&history, false, near.empty_s), &near);
    CHECK(history.starts[0].count == 2 &&
              history.starts[HISTORY_IS_APART].count == HISTORY_STARTS - 2,
          "%u are near, %u apart", history.starts[0].count, history.starts[HISTORY_IS_APART].count);
    CHECK(history_kind(&history, true, apart.empty_s) == (HISTORY_CROWDED | HISTORY_IS_APART) &&
              history_kind(&history, true, near.empty_s) == HISTORY_CROWDED &&
              history_kind(&history, false, 0) == 0,
          "a start is of another kind");
    CHECK(history_write(path, &history), "%s", path);
    history_read(path, &history);
    CHECK(history_costs(&history.starts[0], &costs) && costs.empty_s < 1.1e-7, "near ones read: %g",
          costs.empty_s);
    CHECK(history_costs(&history.starts[HISTORY_IS_APART], &costs) && costs.empty_s > 3.9e-7,
          "those apart read: %g", costs.empty_s);
}

/* None of it is used, and none of it does harm. */
static void lies_are_not_there(void)
{
    static const char *const texts[] = {
        "",
        "multilane history 1\n",
        "multilane history 2\nway c/l 0 rndv-am 1 0 20 5 1000000\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 1 0 20 5 1000000\n", /* cut off */
        "multilane history 1\nway c/l 0 rndv-am 1 0 20 5 0\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 1 0 20 5 999\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 1 0 20 5 -5\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 1 0 20 5 99999999999999999999\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 1 0 99 5 1000000\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 0 0 20 5 1000000\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 1 7 20 5 1000000\nend\n",
        "multilane history 1\nway c/l 0 nonsense 1 0 20 5 1000000\nend\n",
        "multilane history 1\nway c/l 0 rndv-am 1 0 20 0 1000000\nend\n",
        "multilane history 1\nway c/l\nend\n",
        "multilane history 1\nstart 0 1 2 3\nend\n",
        "multilane history 1\nstart 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nend\n",
        "multilane history 1\nstart 0 1000000000000000 0 1 1 1 1 1 1 1 1 1 1 1 1 1\nend\n"};
    struct history history;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        text_write(texts[i]);
        history_read(path, &history);
        CHECK(history.starts[0].count == 0 && history.starts[1].count == 0 &&
                  history.way_count == 0,
              "file %zu is believed", i);
        history_free(&history);
    }
    CHECK(history_read(path, &history), "one that is none of ours is not replaced");
    history_free(&history);
    unlink(path);
    CHECK(history_read(path, &history), "none is not made");
    history_free(&history);
    CHECK(mkdir(path, 0700) == 0, "%s", path);
    CHECK(!history_read(path, &history), "one that cannot be read is replaced");
    history_free(&history);
    CHECK(rmdir(path) == 0, "%s", path);
    FILE *file = fopen(path, "w");
    fputs("multilane history 1\n", file);
    for (int i = 0; i < 10000; i++)
        fprintf(file, "way c%d/l 0 rndv-am 1 0 20 5 1000000\n", i);
    fputs("end\n", file);
    fclose(file);
    history_read(path, &history);
    CHECK(history.way_count == HISTORY_WAYS_MAX, "10,000 lines: %u", history.way_count);
    history_free(&history);
}

static void way_class(struct history_way *way, unsigned number)
{
    snprintf(way->class, sizeof(way->class), "c%u/l", number);
}

static void a_full_one_forgets_what_was_timed_longest_ago(void)
{
    struct history history = {0}, later;
    struct history_way way = {.key = {.lanes = 1}, .bucket = 20, .messages = 5, .seconds = 1e-6};
    for (unsigned i = 0; i < HISTORY_WAYS_MAX; i++) {
        way_class(&way, i);
        history_add_way(&history, &way);
    }
    way_class(&way, 0); /* timed again */
    history_add_way(&history, &way);
    way_class(&way, HISTORY_WAYS_MAX);
    history_add_way(&history, &way);
    CHECK(history_write(path, &history), "it is not written");
    history_read(path, &later);
    CHECK(later.way_count == HISTORY_WAYS_MAX, "%u ways", later.way_count);
    CHECK(strcmp(later.ways[0].class, "c2/l") == 0, "the oldest is %s", later.ways[0].class);
    CHECK(strcmp(later.ways[HISTORY_WAYS_MAX - 1].class, way.class) == 0 &&
              strcmp(later.ways[HISTORY_WAYS_MAX - 2].class, "c0/l") == 0,
          "the newest are %s and %s", later.ways[HISTORY_WAYS_MAX - 2].class,
          later.ways[HISTORY_WAYS_MAX - 1].class);
    history_free(&history);
    history_free(&later);
}

static void no_file_of_others_is_read(void)
{
    struct history history;
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0, "no pipe");
    history_read(path, &history); /* does not wait for a writer */
    CHECK(history.way_count == 0, "a pipe");
    unlink(path);
    text_write("multilane history 1\nway c/l 0 rndv-am 1 0 20 5 1000000\nend\n");
    history_read(path, &history);
    CHECK(history.way_count == 1, "an own file");
    history_free(&history);
    if (geteuid() == 0) { /* else it cannot be given away */
        CHECK(chown(path, 12345, 12345) == 0, "it stays ours");
        history_read(path, &history);
        CHECK(history.way_count == 0, "another user's file");
    }
    unlink(path);
    history_read(path, &history);
    CHECK(history.way_count == 0, "no file");
    CHECK(!history_write("/proc/none/multilane/history", &history), "no folder");
}

/* The signal of a file that is too large would end the process. */
static void a_limit_of_files_is_kept(void)
{
    struct history history = {0};
    struct history_way way = {.buffer = 0, .bucket = 20, .messages = 5, .seconds = 1e-6};
    struct rlimit before, small;
    for (unsigned i = 0; i < 100; i++) {
        way_class(&way, i);
        history_add_way(&history, &way);
    }
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "no limit");
    small = (struct rlimit){.rlim_cur = 1024, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0, "no limit");
    CHECK(!history_write(path, &history), "it is written");
    (void) setrlimit(RLIMIT_FSIZE, &before);
    CHECK(history_write(path, &history), "it is not written");
    history_free(&history);
}

int main(void)
{
    snprintf(folder, sizeof(folder), "/tmp/multilane-history-%d", (int) getpid());
    snprintf(path, sizeof(path), "%s/multilane/history", folder);
    what_was_written_is_read();
    a_busy_start_is_outvoted();
    measuring_comes_to_an_end();
    starts_apart_are_kept_apart();
    lies_are_not_there();
    a_full_one_forgets_what_was_timed_longest_ago();
    no_file_of_others_is_read();
    a_limit_of_files_is_kept();
    unlink(path);
    snprintf(path, sizeof(path), "%s/multilane", folder);
    rmdir(path);
    rmdir(folder);
    return check_end();
}
