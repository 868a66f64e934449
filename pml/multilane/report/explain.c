/* SPDX-License-Identifier: BSD-3-Clause */
/* The explain report, as a table for people or as JSON for programs; and how collective operations
 * went, which is a part of it. */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/report/json.h"
#include "common/model/number.h"
#include "common/report/page_text.h"
#include "common/report/plan_table.h"
#include "common/memory/driver.h"
#include "plan/costs.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "plan/learning.h"
#include "plan/peer_class.h"
#include "common/report/table.h"

/* --- collective operations: a row for each, class of size and way ------------------------------
 */

/* Its address is what coll/node has. */
static struct multilane_calls counted;

static const char *const ways[MULTILANE_CALL_WAYS] = {
    [MULTILANE_BY_NODE] = "memory of the node",
    [MULTILANE_BY_LEADERS] = "leaders of nodes",
    [MULTILANE_BY_CHAIN] = "leaders of nodes in a chain",
    [MULTILANE_FIRST] = "Open MPI: first operations of a communicator",
    [MULTILANE_LARGE] = "Open MPI: too many bytes",
    [MULTILANE_OPERAND] = "Open MPI: its datatype or MPI_Op",
    [MULTILANE_UNEVEN] = "Open MPI: unlike numbers of processes on nodes",
    [MULTILANE_UNSHARED] = "Open MPI: no process shares its processor",
    [MULTILANE_RECORDED] = "Open MPI: messages are recorded",
    [MULTILANE_DEVICE] = "Open MPI: a node has a GPU",
    [MULTILANE_ULFM] = "Open MPI: ULFM is on",
    [MULTILANE_MANY] = "Open MPI: too many communicators over several nodes",
    [MULTILANE_NO_MEMORY] = "Open MPI: no room in memory",
    [MULTILANE_NO_SHM] = "Open MPI: no memory of btl/shm",
    [MULTILANE_APART] = "Open MPI: no two processes of one job on a node",
    [MULTILANE_SINGLE] = "Open MPI: one process",
    [MULTILANE_INTER] = "Open MPI: an intercommunicator",
};

struct multilane_calls *collectives_begin(void)
{
    memset(&counted, 0, sizeof(counted));
    return &counted;
}

/* The largest of a class. */
static uint64_t class_bytes(unsigned call, unsigned class)
{
    if (call == MULTILANE_BARRIER)
        return 0;
    return class == MULTILANE_CALL_CLASSES - 1 ? UINT64_MAX : UINT64_C(8) << 3 * class;
}

/* A row for each that has calls, in the one or in the other. */
static void rows_print(struct table *table, struct json *json)
{
    const struct multilane_call_count *count = &counted.of[0][0][0];
    for (unsigned i = 0; i < sizeof(counted.of) / sizeof(*count); i++, count++) {
        unsigned call = i / MULTILANE_CALL_WAYS / MULTILANE_CALL_CLASSES;
        uint64_t bytes = class_bytes(call, i / MULTILANE_CALL_WAYS % MULTILANE_CALL_CLASSES);
        uint64_t calls = atomic_load_explicit(&count->calls, memory_order_relaxed);
        uint64_t ns = atomic_load_explicit(&count->ns, memory_order_relaxed);
        const char *name = multilane_call_name(call), *way = ways[i % MULTILANE_CALL_WAYS];
        double mean_s = calls ? 1e-9 * (double) ns / (double) calls : 0;
        if (calls && table)
            table_row(table, "%s\t%s\t%" PRIu64 "\t%s\t%s", name, number_size(bytes).text, calls,
                      number_time(mean_s).text, way);
        else if (calls)
            json_put(json,
                     "{\"operation\": \"%s\", \"last\": %" PRIu64 ", \"calls\": %" PRIu64
                     ", \"mean_s\": %.9g, \"by\": \"%s\"}",
                     name, bytes, calls, mean_s, way);
    }
}

/* Communicators that are Open MPI's alone, by reason. `json` null: as text. */
static void left_print(FILE *file, struct json *json)
{
    for (unsigned way = 0; way < MULTILANE_CALL_WAYS; way++) {
        uint64_t left = atomic_load_explicit(&counted.left[way], memory_order_relaxed);
        if (left && json)
            json_put(json, "{\"communicators\": %" PRIu64 ", \"by\": \"%s\"}", left, ways[way]);
        else if (left)
            fprintf(file, "  communicators without coll/node: %" PRIu64 ", by %s\n", left,
                    ways[way]);
    }
}

static void collectives_print(FILE *file)
{
    struct table table;
    table_init(&table, "operation\tup to\tcalls\tmean\tby");
    rows_print(&table, NULL);
    if (table.row_count > 1)
        fputs("  collective operations:\n", file);
    table_print(&table, file, "    ");
    left_print(file, NULL);
}

static void collectives_json(struct json *json)
{
    json_put(json, "\"collectives\": [");
    rows_print(NULL, json);
    json_put(json, "], \"left\": [");
    left_print(NULL, json);
    json_put(json, "]");
}

static const char *const buffer_names[CLASS_BUFFERS] = {
    "contiguous memory",
    "memory in several pieces",
    "contiguous memory, synchronous sends",
    "memory in several pieces, synchronous sends",
    "contiguous memory, nonblocking sends of 256 KiB and more",
    "contiguous memory, behind others that are under way",
    "memory in several pieces, behind others that are under way",
    "device memory",
    "device memory in several pieces",
    "received: announced from host memory, to device memory",
    "received: announced from device memory, to host memory"};

/* --- what messages took ----------------------------------------------------------------------- */

/* The range of sizes within the entry of which most messages were timed; null: of none. */
static const struct learning_range *timed_most(const struct peer_class *class,
                                               const struct route *route)
{
    const struct plan_entry *entry = route->entry;
    const struct learning_range *most = NULL;
    uint32_t last = learned_bucket(entry->largest_bytes);
    for (uint32_t i = learned_bucket(entry->first_bytes); i <= last; i++) {
        const struct learning_range *range =
            learning_range_of(class, (enum class_buffer) route->buffer, plan_entry_key(entry), i);
        if (range && learning_median(range) > 0 && range->taken > range->recalled &&
            range->bytes >= entry->first_bytes && range->bytes <= entry->largest_bytes &&
            (!most || range->taken > most->taken))
            most = range;
    }
    return most;
}

/* How the route was used, and what messages took of the size of which most were timed. */
static struct plan_use measured_use(const struct plan_input *input, const struct peer_class *class,
                                    const struct route *route)
{
    struct plan_use use = {.messages = counter_read(&route->messages),
                           .bytes = counter_read(&route->bytes)};
    const struct learning_range *most = timed_most(class, route);
    if (!most)
        return use;
    use.samples = most->taken - most->recalled;
    use.measured_bytes = most->bytes;
    struct plan_input alone = *input;
    alone.learned = NULL;
    use.measured_s = learning_factor(class, (enum class_buffer) route->buffer,
                                     plan_entry_key(route->entry), learned_bucket(most->bytes)) *
                     plan_time(&alone, route->entry, most->bytes);
    use.ratio = use.measured_s / plan_time(input, route->entry, most->bytes);
    return use;
}

/* --- the table -------------------------------------------------------------------------------- */

/* What a lane has shown while it carried parts of messages, beside the last of its ranges. */
static double observed_at(const void *of, int lane, enum model_way way, uint32_t range)
{
    const struct peer_class *class = of;
    const struct lane_observed *observed = &class->observed[lane];
    bool copies = way != MODEL_BY_SEND;
    return observed->peers[copies] && range + 1 == class->lanes[lane].cost[way].range_count
               ? observed->bytes_s[copies] / observed->peers[copies]
               : 0;
}

/* A class that no peer is in any more, and that nothing was sent by, says nothing. */
static bool is_shown(const struct peer_class *class)
{
    bool is_used = class->peers > 0;
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        enum class_buffer buffer = (enum class_buffer) i;
        for (const struct route *route = class_route_next(class, buffer, NULL); route;
             route = class_route_next(class, buffer, route))
            is_used = is_used || counter_read(&route->messages) > 0;
    }
    return is_used;
}

static void print_plan(FILE *file, const struct peer_class *class, int buffer)
{
    const struct planned *planned = class_planned(class, (enum class_buffer) buffer);
    const struct plan *plan = planned->plan;
    struct plan_use *uses = calloc(plan->entry_count, sizeof(*uses));
    struct plan_input input;
    class_plan_input(class, (enum class_buffer) buffer, &input);
    for (uint32_t i = 0; uses && i < plan->entry_count; i++)
        uses[i] = measured_use(&input, class, &planned->routes[i]);
    plan_table_print(file, &input, plan, uses, "    ");
    if (parameters.explain == 2)
        plan_switches_print(file, &input, plan, "      ");
    free(uses);
}

/* The lanes of an entry: "eager-zcopy over shm:shm". */
static struct words way_text(const struct peer_class *class, const struct plan_entry *entry)
{
    struct words words = words_of("%s over", entry->protocol->name);
    for (uint32_t i = 0; i < entry->lane_count; i++)
        words_more(&words, " %s", class->lanes[entry->lanes[i]].name);
    return words;
}

/* Messages that went another way than the plan has now. `json` null: as text. */
static void print_beside(FILE *file, struct json *json, const struct peer_class *class,
                         enum class_buffer buffer)
{
    const struct planned *planned = class_planned(class, buffer);
    const struct route *first = planned->routes, *end = first + planned->plan->entry_count;
    for (const struct route *route = class_route_next(class, buffer, end - 1); route;
         route = class_route_next(class, buffer, route)) {
        const unsigned long long messages = counter_read(&route->messages),
                                 bytes = counter_read(&route->bytes);
        const struct words way = way_text(class, route->entry);
        if (messages && json)
            json_put(json, "{\"way\": \"%s\", \"messages\": %llu, \"bytes\": %llu}", way.text,
                     messages, bytes);
        else if (messages)
            fprintf(file, "    beside the plan: %llu message%s, %llu byte%s by %s\n", messages,
                    number_plural(messages), bytes, number_plural(bytes), way.text);
    }
}

static void print_moves(FILE *file, const struct peer_class *class, int buffer)
{
    print_beside(file, NULL, class, (enum class_buffer) buffer);
    for (const struct plan_move *move = class->moves; move; move = move->next) {
        if ((int) move->buffer != buffer)
            continue;
        fprintf(file, "    learned at %.3f s: %s from %s (%s, %u timed) to %s (%s, %u timed)\n",
                move->at_s, number_size(UINT64_C(1) << move->bucket).text,
                way_text(class, move->from).text, number_time(move->from_s).text,
                move->from_messages, way_text(class, move->to).text, number_time(move->to_s).text,
                move->to_messages);
    }
}

/* --- lanes that are left out, or worse -------------------------------------------------------- */

/* `json` null: as text. */
static void print_trouble(FILE *file, struct json *json, const char *lane, uint32_t rank,
                          uint32_t kind, const char *why)
{
    const char *state =
        kind == PAGE_SILENT || kind == PAGE_BROKEN ? "is left out" : page_trouble_name(kind);
    if (json)
        json_put(json, "{\"lane\": %s, \"rank\": %u, \"state\": \"%s\", \"why\": %s}",
                 json_text(lane).text, rank, state, json_text(why).text);
    else
        fprintf(file, "  %s to rank %u %s: it %s\n", lane, rank, state, why);
}

static void print_troubles(FILE *file, struct json *json)
{
    for (const struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer)) {
        const struct peer_class *class = peer_class_now(peer);
        for (int i = 0; class && i < class->lane_count; i++) {
            const char *why;
            uint32_t kind;
            if (lane_trouble(&peer->lanes[i], &kind, &why) && why[0])
                print_trouble(file, json, class->lanes[i].name, peer->name.vpid, kind, why);
        }
    }
}

static bool learns_nothing(const struct peer_class *class)
{
    return parameters.learn && !class->is_forced && !class_learns(class);
}

static void print_text(FILE *file)
{
    struct plan_input input;
    fprintf(file,
            "multilane: plans of rank %u and their use (%" PRIu64 " unexpected, %" PRIu64
            " early messages received)\n  %s\n  %s\n",
            multilane.me.vpid, counter_read(&multilane.unexpected_messages),
            counter_read(&multilane.early_messages), used_profile_story(), used_history_story());
    if (driver_is_loaded)
        fprintf(file, "  copies %s\n", device_costs_text().text);
    for (const struct peer_class *class = classes_first(); class; class = class->next) {
        if (!is_shown(class))
            continue;
        fprintf(file, "  %u peer%s over", class->peers, number_plural(class->peers));
        for (int i = 0; i < class->lane_count; i++)
            fprintf(file, " %s", class->lanes[i].name);
        fputs(learns_nothing(class) ? ", learning nothing: processors are short\n" : "\n", file);
        class_plan_input(class, CLASS_CONTIGUOUS, &input);
        input.lane_count = (uint32_t) class_lanes_described(class);
        plan_lanes_print(file, &input, observed_at, class, "  ");
        for (int buffer = 0; buffer < CLASS_BUFFERS; buffer++) {
            if (!class_shows(class, (enum class_buffer) buffer))
                continue;
            fprintf(file, "  %s:\n", buffer_names[buffer]);
            print_plan(file, class, buffer);
            print_moves(file, class, buffer);
        }
    }
    print_troubles(file, NULL);
    collectives_print(file);
    waited_print(file);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void lanes_json(struct json *json, const struct peer_class *class,
                       const struct plan_entry *entry)
{
    json_put(json, "\"lanes\": [");
    for (uint32_t i = 0; i < entry->lane_count; i++)
        json_put(json, "{\"lane\": \"%s\", \"share\": %.6g}", class->lanes[entry->lanes[i]].name,
                 (double) entry->weights[i] / PLAN_WEIGHT_ONE);
    json_put(json, "]");
    if (entry->chooses)
        json_put(json, "\"copied\": %s", json_bool(entry->copies));
}

static void moves_json(struct json *json, const struct peer_class *class)
{
    json_put(json, "\"moves\": [");
    for (const struct plan_move *move = class->moves; move; move = move->next)
        json_put(json,
                 "{\"at_s\": %.6f, \"buffer\": \"%s\", \"bytes\": %llu, \"from\": \"%s\", "
                 "\"from_s\": %.9g, \"from_timed\": %u, \"to\": \"%s\", \"to_s\": %.9g, "
                 "\"to_timed\": %u}",
                 move->at_s, buffer_names[move->buffer], 1ULL << move->bucket,
                 way_text(class, move->from).text, move->from_s, move->from_messages,
                 way_text(class, move->to).text, move->to_s, move->to_messages);
    json_put(json, "]");
}

static void plan_json(struct json *json, const struct peer_class *class, enum class_buffer buffer)
{
    const struct planned *planned = class_planned(class, buffer);
    struct plan_input input;
    class_plan_input(class, buffer, &input);
    json_put(json, "{\"buffer\": \"%s\", \"beside\": [", buffer_names[buffer]);
    print_beside(NULL, json, class, buffer);
    json_put(json, "], \"ranges\": [");
    for (uint32_t i = 0; i < planned->plan->entry_count; i++) {
        const struct plan_entry *entry = &planned->plan->entries[i];
        const struct plan_use use = measured_use(&input, class, &planned->routes[i]);
        json_put(json, "{\"first\": %" PRIu64 ", \"last\": %" PRIu64 ", \"protocol\": \"%s\"",
                 entry->first_bytes, entry->largest_bytes, entry->protocol->name);
        if (i)
            json_put(json, "\"decided_by\": \"%s\"", plan_decider_name(entry->decided_by));
        lanes_json(json, class, entry);
        json_put(json, "\"predicted_s\": %.9g", plan_time(&input, entry, plan_last_shown(entry)));
        if (use.samples)
            json_put(json,
                     "\"measured_s\": %.9g, \"measured_bytes\": %" PRIu64
                     ", \"ratio\": %.6g, \"samples\": %u",
                     use.measured_s, use.measured_bytes, use.ratio, use.samples);
        json_put(json, "\"messages\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", use.messages,
                 use.bytes);
    }
    json_put(json, "]}");
}

static void range_json(struct json *json, const struct peer_class *class, int index, int way,
                       uint32_t number, const struct model_surroundings *around)
{
    const struct model_lane *lane = &class->lanes[index];
    const struct model_lane_range *range = &lane->cost[way].ranges[number];
    double observed_bytes_s = observed_at(class, index, (enum model_way) way, number);
    struct cost_line registration = model_registration(lane, range, around);
    json_put(json,
             "{\"lane\": %s, \"way\": \"%s\", \"last\": %" PRIu64
             ", \"latency_s\": %.9g, \"overhead_send_s\": %.9g, \"overhead_receive_s\": %.9g, "
             "\"bandwidth_bytes_s\": %s",
             json_text(lane->name).text, model_way_name((enum model_way) way), range->largest_bytes,
             range->latency_s, range->overhead_send_s, range->overhead_receive_s,
             json_real(range->bandwidth_bytes_s).text);
    if (observed_bytes_s > 0)
        json_put(json, "\"seen_bytes_s\": %.9g", observed_bytes_s);
    json_put(json, "\"reg_cost_s\": %.9g, \"reg_growth_s_byte\": %.9g, \"given_by\": {",
             registration.fixed_s, registration.growth_s_byte);
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        json_put(json, "\"%s\": \"%s\"", model_attribute_name((enum model_attribute) i),
                 model_source_name(lane->source[way][number][i]));
    json_put(json, "}}");
}

static void attributes_json(struct json *json, const struct peer_class *class)
{
    struct plan_input input;
    class_plan_input(class, CLASS_CONTIGUOUS, &input);
    json_put(json, "\"attributes\": [");
    for (int i = 0; i < class_lanes_described(class); i++)
        for (int way = 0; way < MODEL_WAYS; way++)
            for (uint32_t r = 0; r < class->lanes[i].cost[way].range_count; r++)
                range_json(json, class, i, way, r, &input.around);
    json_put(json, "]");
}

static void class_json(struct json *json, const struct peer_class *class)
{
    json_put(json, "{\"peers\": %u, \"lanes\": [", class->peers);
    for (int i = 0; i < class_lanes_described(class); i++)
        json_put(json, "\"%s\"", class->lanes[i].name);
    json_put(json, "], \"learns\": %s", json_bool(class_learns(class)));
    attributes_json(json, class);
    moves_json(json, class);
    json_put(json, "\"plans\": [");
    for (int buffer = 0; buffer < CLASS_BUFFERS; buffer++)
        if (class_shows(class, (enum class_buffer) buffer))
            plan_json(json, class, (enum class_buffer) buffer);
    json_put(json, "]}");
}

static void print_json(FILE *file)
{
    struct json json = {.file = file};
    json_put(&json,
             "{\"rank\": %u, \"unexpected\": %" PRIu64 ", \"early\": %" PRIu64
             ", \"measured\": %s, \"history\": %s",
             multilane.me.vpid, counter_read(&multilane.unexpected_messages),
             counter_read(&multilane.early_messages), json_text(used_profile_story()).text,
             json_text(used_history_story()).text);
    if (driver_is_loaded)
        json_put(&json, "\"device_copies\": \"%s\"", device_costs_text().text);
    json_put(&json, "\"classes\": [");
    for (const struct peer_class *class = classes_first(); class; class = class->next)
        if (is_shown(class))
            class_json(&json, class);
    json_put(&json, "], \"troubles\": [");
    print_troubles(NULL, &json);
    json_put(&json, "]");
    waited_json(&json);
    collectives_json(&json);
    json_put(&json, "}\n");
}

/* --- where it goes ---------------------------------------------------------------------------- */

/* Several ranks cannot share a file: each then writes one of its own, NAME.RANK or NAME.RANK.json.
 */
static void file_name(char *name, size_t size, bool is_json)
{
    const char *given = parameters.explain_file;
    int stem = (int) strlen(given) - (is_json ? 5 : 0);
    if (parameters.explain == 2)
        snprintf(name, size, "%.*s.%u%s", stem, given, multilane.me.vpid, is_json ? ".json" : "");
    else
        snprintf(name, size, "%s", given);
}

static void cannot_write(const char *name)
{
    opal_output(0, "multilane: pml_multilane_explain_file: cannot write %s: %s.", name,
                strerror(errno));
}

static void print_to_file(void)
{
    char name[4096];
    size_t length = strlen(parameters.explain_file);
    bool is_json = length > 5 && strcmp(parameters.explain_file + length - 5, ".json") == 0;
    file_name(name, sizeof(name), is_json);
    FILE *file = fopen(name, "we");
    if (!file) {
        cannot_write(name);
        return;
    }
    if (is_json)
        print_json(file);
    else
        print_text(file);
    bool is_bad = ferror(file);
    if (fclose(file) != 0 || is_bad)
        cannot_write(name);
}

/* In one write, so that the reports of several ranks do not mix. */
static void print_to_stderr(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return;
    print_text(file);
    fclose(file);
    fwrite(text, 1, size, stderr);
    fflush(stderr);
    free(text);
}

void explain_write(void)
{
    if (parameters.explain == 0 || (parameters.explain == 1 && multilane.me.vpid != 0))
        return;
    /* Numbers have a decimal point, whatever the program has set: JSON knows no comma. */
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t) 0)); /* there is always */
    if (parameters.explain_file && *parameters.explain_file)
        print_to_file();
    else
        print_to_stderr();
    uselocale(before);
}
