/* SPDX-License-Identifier: BSD-3-Clause */
/* Each node's first rank tests with that of each other node, in rounds in which a node is in one
 * pair at a time; and once with another rank of its node. */
#include "job.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/model/number.h"
#include "common/report/table.h"
#include "lane_test.h"

/* Of more nodes only what is remarkable is printed of each pair. */
#define NODES_SHOWN 16
/* Far slower: less than this part of the median of the BTL's lanes between nodes, or inside. */
#define FAR_SLOWER 0.3
#define HOST_CHARS 64

struct place {
    int first; /* rank of its node */
    char host[HOST_CHARS];
};

struct job {
    const struct traffic *traffic;
    struct place *places;   /* of all ranks */
    int *nodes, node_count; /* the first rank of each */
    struct lane_row *rows;
    int row_count;
};

static void *memory_must(void *memory)
{
    if (memory)
        return memory;
    fputs("multilane-doctor: no memory\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

static void *memory_of(size_t count, size_t bytes)
{
    return memory_must(calloc(count, bytes));
}

/* --- who is where ----------------------------------------------------------------------------- */

static void places_exchange(struct job *job)
{
    struct place mine = {.first = job->traffic->rank};
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm node;
    int length;
    MPI_Get_processor_name(name, &length);
    snprintf(mine.host, sizeof(mine.host), "%.*s", HOST_CHARS - 1, name);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mine.first, MPI_INFO_NULL, &node);
    MPI_Bcast(&mine.first, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, job->places, sizeof(mine), MPI_BYTE,
                  MPI_COMM_WORLD);
    for (int i = 0; i < job->traffic->ranks; i++)
        if (job->places[i].first == i)
            job->nodes[job->node_count++] = i;
}

/* In the round in which each node tests inside: the first rank and the next one of the node. */
static int partner_inside(const struct job *job)
{
    int rank = job->traffic->rank, first = job->places[rank].first, second = first + 1;
    while (second < job->traffic->ranks && job->places[second].first != first)
        second++;
    if (second == job->traffic->ranks)
        return -1;
    return rank == first ? second : rank == second ? first : -1;
}

/* Nodes in a circle, one of them in its middle: in each round each is paired with the one across.
 * Below 0: it rests. */
static int partner_outside(const struct job *job, int round)
{
    int even = job->node_count + job->node_count % 2, circle = even - 1, node = 0;
    while (node < job->node_count && job->nodes[node] != job->traffic->rank)
        node++;
    if (node == job->node_count)
        return -1;
    int across = node == circle ? round * (even / 2) % circle : (round - node + circle) % circle;
    if (across == node)
        across = circle;
    return across < job->node_count ? job->nodes[across] : -1;
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Naps: another pair may need the processor. */
static void round_end(void)
{
    const struct timespec nap = {0, 500000};
    MPI_Request request;
    int is_over = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &is_over, MPI_STATUS_IGNORE), !is_over)
        nanosleep(&nap, NULL);
}

static void pair_test(struct job *job, int peer)
{
    int rank = job->traffic->rank;
    const struct lane_pair pair = {job->traffic, peer, rank < peer, job->places[rank].host,
                                   job->places[peer].host};
    size_t known = (size_t) job->row_count;
    job->rows = memory_must(realloc(job->rows, (known + LANE_TEST_ROWS) * sizeof(*job->rows)));
    int count = lane_pair_test(&pair, job->rows + known);
    job->row_count += pair.is_first ? count : 0;
}

static void rounds_run(struct job *job)
{
    int rounds = job->node_count + job->node_count % 2 - 1;
    for (int round = -1; round < (job->node_count > 1 ? rounds : 0); round++) {
        int peer = round < 0 ? partner_inside(job) : partner_outside(job, round);
        if (peer >= 0)
            pair_test(job, peer);
        round_end();
    }
}

/* --- the report of rank 0 --------------------------------------------------------------------- */

static void rows_gather(struct job *job)
{
    int ranks = job->traffic->ranks, all = 0;
    int *counts = memory_of((size_t) ranks, 2 * sizeof(*counts)), *begins = counts + ranks;
    MPI_Datatype row;
    MPI_Type_contiguous((int) sizeof(*job->rows), MPI_BYTE, &row);
    MPI_Type_commit(&row);
    MPI_Gather(&job->row_count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        begins[i] = all;
        all += counts[i];
    }
    struct lane_row *rows = memory_of((size_t) all + 1, sizeof(*rows));
    MPI_Gatherv(job->rows, job->row_count, row, rows, counts, begins, row, 0, MPI_COMM_WORLD);
    MPI_Type_free(&row);
    free(job->rows);
    free(counts);
    job->rows = rows;
    job->row_count = all;
}

static double slower_way(const struct lane_row *row)
{
    return row->bytes_s[0] < row->bytes_s[1] ? row->bytes_s[0] : row->bytes_s[1];
}

static bool is_inside(const struct job *job, const struct lane_row *row)
{
    return job->places[row->from].first == job->places[row->to].first;
}

/* Of one BTL, and both between nodes or inside one. */
static bool is_like(const struct job *job, const struct lane_row *row, const struct lane_row *other)
{
    return is_inside(job, row) == is_inside(job, other) &&
           lane_names_are_like(row->lane, other->lane);
}

/* The median of all that carry; of two the faster one, so that the slow one is seen. */
static double median_of_like(const struct job *job, const struct lane_row *row)
{
    double *values = memory_of((size_t) job->row_count, sizeof(*values));
    uint32_t count = 0;
    for (int i = 0; i < job->row_count; i++)
        if (is_like(job, row, &job->rows[i]) && job->rows[i].one_way_s > 0)
            values[count++] = slower_way(&job->rows[i]);
    if (count)
        (void) number_median(values, count);
    double median = count ? values[count / 2] : 0;
    free(values);
    return median;
}

static void row_weigh(struct lane_row *row, double median)
{
    if (row->one_way_s <= 0 || slower_way(row) >= FAR_SLOWER * median)
        return;
    row->is_wrong = true;
    snprintf(row->note, sizeof(row->note), "far slower: such lanes have %.0f MB/s", median / 1e6);
}

/* Nodes that reach no other one by as many lanes as there are elsewhere: an interface may be down.
 * The rows of a pair follow each other. */
static void fewer_say(const struct job *job, const struct lane_row *row)
{
    int *most = memory_of((size_t) job->traffic->ranks, sizeof(*most)), all = 0, count = 0;
    const struct lane_row *last = NULL;
    struct words hosts = {""};
    for (int i = 0; i < job->row_count; i++) {
        const struct lane_row *other = &job->rows[i];
        if (!is_like(job, row, other) || !(other->one_way_s > 0 || other->is_wrong))
            continue;
        count = last && last->from == other->from && last->to == other->to ? count + 1 : 1;
        last = other;
        most[other->from] = count > most[other->from] ? count : most[other->from];
        most[other->to] = count > most[other->to] ? count : most[other->to];
        all = count > all ? count : all;
    }
    for (int i = 0; i < job->node_count; i++)
        if (most[job->nodes[i]] < all)
            words_more(&hosts, " %s", job->places[job->nodes[i]].host);
    if (hosts.text[0])
        printf("  nodes with fewer than %d such lanes:%s\n", all, hosts.text);
    free(most);
}

/* All lanes of a BTL, once. */
static void rows_weigh(struct job *job, const struct lane_row *row)
{
    const struct lane_row *first = job->rows;
    while (first != row && !is_like(job, row, first))
        first++;
    if (first != row)
        return;
    double median = median_of_like(job, row);
    for (int i = 0; i < job->row_count; i++)
        if (is_like(job, row, &job->rows[i]))
            row_weigh(&job->rows[i], median);
    printf("%.*s %s nodes: %.1f MB/s in the median\n", (int) strcspn(row->lane, ":"), row->lane,
           is_inside(job, row) ? "inside" : "between", median / 1e6);
    if (!is_inside(job, row))
        fewer_say(job, row);
}

static void row_print(const struct job *job, const struct lane_row *row, struct table *table)
{
    struct words numbers = {"\t\t"};
    if (row->one_way_s > 0)
        numbers = words_of("%.2f\t%.1f\t%.1f", 1e6 * row->one_way_s, row->bytes_s[0] / 1e6,
                           row->bytes_s[1] / 1e6);
    table_row(table, "%s\t%s\t%s\t%s\t%s", job->places[row->from].host, job->places[row->to].host,
              row->lane, numbers.text, row->note);
}

/* How many lanes are wrong. */
static int rows_report(struct job *job)
{
    struct table table;
    int wrong = 0;
    table_init(&table, "from\tto\tlane\t8 B, us\t1 MiB, MB/s\tback\tnote");
    for (int i = 0; i < job->row_count; i++) {
        const struct lane_row *row = &job->rows[i];
        rows_weigh(job, row);
        wrong += row->is_wrong;
        if (job->node_count <= NODES_SHOWN || row->note[0])
            row_print(job, row, &table);
    }
    table_print(&table, stdout, "");
    printf("%d lanes of %d nodes, each alone: %d lead nowhere or are far slower than others\n",
           job->row_count, job->node_count, wrong);
    fflush(stdout);
    return wrong;
}

/* Two that no lane joins end the job soon, with Multilane's sentence, unless the user says when. */
void job_lanes_prepare(void)
{
    setenv("OMPI_MCA_pml_multilane_lost_s", "10", 0);
    setenv("OMPI_MCA_btl_sock_lost_s", "10", 0);
}

bool job_lanes_test(const struct traffic *traffic)
{
    struct job job = {.traffic = traffic};
    int wrong = 0;
    job.places = memory_of((size_t) traffic->ranks, sizeof(*job.places));
    job.nodes = memory_of((size_t) traffic->ranks, sizeof(*job.nodes));
    places_exchange(&job);
    rounds_run(&job);
    rows_gather(&job);
    if (traffic->rank == 0)
        wrong = rows_report(&job);
    free(job.rows);
    free(job.places);
    free(job.nodes);
    return wrong == 0;
}
