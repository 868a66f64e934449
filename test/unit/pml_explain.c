/* SPDX-License-Identifier: BSD-3-Clause */
/* What the explain report says of lanes whose numbers are fixed, to the letter:
 * test/unit/explain.txt and explain.json hold it. A change of the report changes these files: run
 * with MULTILANE_GOLDEN set to write them anew, and read what has changed. */
#include "check.h"

#include <locale.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lanes_standin.h"
#include "report/report.h"
#include "plan/costs.h"
#include "base/parameters.h"
#include "plan/learning.h"
#include "plan/peer_class.h"

/* A lane of which the user gave the latency and a profile all the rest, and one by default. */
static void lanes_fill(struct model_lane *lanes)
{
    const struct model_lane_range sends[] = {{4096, 0.5e-6, 4e9, 0.2e-6, 0.1e-6, 0, 0},
                                             {UINT64_MAX, 0.5e-6, 8e9, 0.6e-6, 0.4e-6, 0, 0}};
    const struct model_lane_range gets = {UINT64_MAX, 0.5e-6, 12e9, 0.5e-6, 0.5e-6, 30e-9, 0};
    model_lane_init(&lanes[0], "shm:shm");
    lanes[0].can = MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET;
    lanes[0].short_max_bytes = 1000;
    lanes[0].copied_max_bytes = 16384;
    lanes[0].zcopied_max_bytes = UINT64_MAX;
    lanes[0].cost[MODEL_BY_SEND].range_count = 2;
    memcpy(lanes[0].cost[MODEL_BY_SEND].ranges, sends, sizeof(sends));
    model_lane_set_cost(&lanes[0], MODEL_BY_GET, &gets);
    model_lane_set_source(&lanes[0], MODEL_WAYS, MODEL_ATTRIBUTES, MODEL_SOURCE_PROFILE);
    model_lane_set_source(&lanes[0], MODEL_WAYS, MODEL_LATENCY, MODEL_SOURCE_USER);
    model_lane_init(&lanes[1], "tcp");
    lanes[1].can = MODEL_CAN_SEND;
    lanes[1].copied_max_bytes = 65536;
    lanes[1].zcopied_max_bytes = 131072;
    model_lane_set_cost(&lanes[1], MODEL_BY_SEND,
                        &(struct model_lane_range){0, 20e-6, 1e8, 5e-6, 5e-6, 0, 0});
}

static struct peer_class *class_new(void)
{
    struct peer_class *class = calloc(1, sizeof(*class));
    class->lane_count = 2;
    class->peers = 3;
    class->placement = PROFILE_HOST;
    class->lanes = calloc(2, sizeof(*class->lanes));
    lanes_fill(class->lanes);
    for (int i = 0; i < CLASS_DEVICE; i++) { /* as where there is no device */
        struct planned *planned = class_plan(class, (enum class_buffer) i, 0);
        CHECK(planned, "%s", standin_sentence);
        class_set_plan(class, (enum class_buffer) i, planned);
    }
    return class;
}

static void class_end(struct peer_class *class)
{
    for (int i = 0; i < CLASS_BUFFERS; i++)
        planned_free(class_planned(class, (enum class_buffer) i));
    free(class->lanes);
    free(class);
}

static void file_read(const char *name, char *text, size_t size)
{
    FILE *file = fopen(name, "r");
    CHECK(file, "%s cannot be read", name);
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
}

static void report_is_golden(const char *name)
{
    static char is[65536], wanted[65536];
    char written[256], golden[512];
    const char *source = getenv("srcdir");
    snprintf(golden, sizeof(golden), "%s/test/unit/%s", source ? source : ".", name);
    snprintf(written, sizeof(written), "/tmp/multilane-%d-%s", (int) getpid(), name);
    parameters.explain_file = getenv("MULTILANE_GOLDEN") ? golden : written;
    explain_write();
    file_read(parameters.explain_file, is, sizeof(is));
    file_read(golden, wanted, sizeof(wanted));
    CHECK(strcmp(is, wanted) == 0, "%s is now:\n%s", name, is);
    unlink(written);
}

/* Messages of that size took that long, some of them much longer. */
static void took(struct peer_class *class, size_t size, double seconds)
{
    for (int i = 0; i < 9; i++)
        learning_add(class, class_route_at(class, CLASS_CONTIGUOUS, size), size,
                     i % 3 ? seconds : 50 * seconds);
}

static void operation(struct multilane_calls *calls, enum multilane_call call, uint64_t bytes,
                      enum multilane_way way, unsigned times)
{
    struct multilane_call_count *count = &calls->of[call][multilane_call_class(bytes)][way];
    count->calls += times;
    count->ns += UINT64_C(2500) * times;
}

/* Each class of size ends where the next begins; and each way has its words. */
static void operations_fill(void)
{
    struct multilane_calls *calls = collectives_begin();
    CHECK(calls, "explain is asked for");
    operation(calls, MULTILANE_BARRIER, 0, MULTILANE_FIRST, 4);
    operation(calls, MULTILANE_BARRIER, 0, MULTILANE_BY_NODE, 1000000);
    for (uint64_t most = 8; most <= UINT64_C(8) << 18; most *= 8) {
        operation(calls, MULTILANE_BCAST, most, MULTILANE_BY_LEADERS, 1);
        operation(calls, MULTILANE_BCAST, most + 1, MULTILANE_BY_CHAIN, 2);
    }
    operation(calls, MULTILANE_BCAST, UINT64_MAX, MULTILANE_BY_CHAIN, 4);
    for (int way = MULTILANE_FIRST; way < MULTILANE_SINGLE; way++)
        operation(calls, MULTILANE_ALLTOALL, 9, (enum multilane_way) way, 1);
    calls->left[MULTILANE_SINGLE] = 1;
    calls->left[MULTILANE_INTER] = 2;
}

int main(void)
{
    standin_begin();
    parameters.profile = "none";
    parameters.explain = 1;
    operations_fill();
    used_profile_load();
    used_history_load();
    multilane.unexpected_messages = 7;
    multilane.early_messages = 1;
    struct peer_class *class = class_new();
    for (int i = 0; i < CLASS_DEVICE; i++) {
        enum class_buffer buffer = (enum class_buffer) i;
        route_count(class_route_at(class, buffer, 8), 8);
        route_count(class_route_at(class, buffer, 100000), 100000);
        route_count(class_route_at(class, buffer, 10000000), 10000000);
    }
    multilane.peer_classes = class;
    learning_begin();
    took(class, 8, 302e-9);
    took(class, 1 << 20, 100e-6);
    static struct plan_move move = {.at_s = 0.25, .bucket = 20, .from_s = 2e-4, .to_s = 1e-4};
    move.from_messages = 23;
    move.to_messages = 5;
    move.from = class_route_at(class, CLASS_CONTIGUOUS, 8)->entry;
    move.to = class_route_at(class, CLASS_CONTIGUOUS, 1 << 20)->entry;
    class->moves = &move;
    static struct route tried[2];
    tried[0] = (struct route){.entry = move.from, .messages = 2, .bytes = 16};
    tried[1] = (struct route){.entry = move.to, .next = &tried[0], .messages = 1, .bytes = 1 << 20};
    class->tried[CLASS_CONTIGUOUS] = &tried[1];
    static struct lane_observed seen[2] = {{{0}, {0}}, {{3e8, 0}, {2, 0}}};
    class->observed = seen;
    report_is_golden("explain.txt");
    report_is_golden("explain.json");
    if (setlocale(LC_ALL, "de_DE.UTF-8")) { /* which not every machine has */
        report_is_golden("explain.txt");
        report_is_golden("explain.json");
    }
    learning_end();
    multilane.peer_classes = NULL;
    class_end(class);
    return check_end();
}
