/* SPDX-License-Identifier: BSD-3-Clause */
/* How this process's collective operations went: a row for each operation, class of size and way.
 */
#include "report/report.h"

#include <inttypes.h>
#include <string.h>

#include "common/model/number.h"
#include "common/report/table.h"

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

/* A row for each that has calls. `table` null: JSON. */
static void rows_print(FILE *file, struct table *table)
{
    const char *between = "";
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
            fprintf(file,
                    "%s{\"operation\": \"%s\", \"last\": %" PRIu64 ", \"calls\": %" PRIu64
                    ", \"mean_s\": %.9g, \"by\": \"%s\"}",
                    between, name, bytes, calls, mean_s, way);
        between = calls ? ", " : between;
    }
}

/* Communicators that are Open MPI's alone, by reason. */
static void left_print(FILE *file, bool is_json)
{
    const char *between = "";
    for (unsigned way = 0; way < MULTILANE_CALL_WAYS; way++) {
        uint64_t left = atomic_load_explicit(&counted.left[way], memory_order_relaxed);
        if (left)
            fprintf(file,
                    is_json ? "%s{\"communicators\": %" PRIu64 ", \"by\": \"%s\"}"
                            : "%s  communicators without coll/node: %" PRIu64 ", by %s\n",
                    is_json ? between : "", left, ways[way]);
        between = left ? ", " : between;
    }
}

void collectives_print(FILE *file)
{
    struct table table;
    table_init(&table, "operation\tup to\tcalls\tmean\tby");
    rows_print(file, &table);
    if (table.row_count > 1)
        fputs("  collective operations:\n", file);
    table_print(&table, file, "    ");
    left_print(file, false);
}

void collectives_print_json(FILE *file)
{
    fputs("\"collectives\": [", file);
    rows_print(file, NULL);
    fputs("], \"left\": [", file);
    left_print(file, true);
    fputc(']', file);
}
