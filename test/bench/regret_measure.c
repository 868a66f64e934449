/* SPDX-License-Identifier: BSD-3-Clause */
/* What two ranks measure for test/bench/regret: at each size the one-way time of a message as the
 * PML sends it by itself and, where the PML is Multilane, by each protocol forced, in turns. Prints
 * `SIZE WAY SECONDS`, the median of the rounds, `SIZE chosen PROTOCOL`, what the model predicted,
 * and as `reference` what a message of REFERENCE_BYTES took in between: where virtual processors
 * are moved, that changes while the rest is measured.
 *
 *   regret_measure ROUNDS LARGEST */
#include "tools/calibrate/session.h"

#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MOST     32
#define WAYS            (MODEL_PROTOCOLS + 1) /* the last: as planned */
#define REFERENCE_BYTES 8
/* What one visit of a size and way takes, about. */
#define VISIT_S 3e-3

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t) count, sizeof *values, compare_reals);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Below 0: this protocol does not carry the size. */
static double visit(struct session *session, int way, uint64_t bytes)
{
    struct multilane_route route;
    int protocol = way == MODEL_PROTOCOLS ? MULTILANE_MEASURE_PLANNED : way;
    struct order order = {.protocol = protocol, .count = 2, .bytes = bytes};
    if (session->pml && protocol >= 0 &&
        (session->pml->force(1, protocol, 0) != 0 || session->pml->route(1, bytes, &route) != 0 ||
         route.protocol != protocol))
        return -1;
    double values[5];
    double first_s = session_trips(session, 1, &order);
    double trips = VISIT_S / 5 / (2 * fmax(first_s, 1e-8));
    order.count = 2 + (int) fmin(trips, 1000);
    int count = first_s > 2e-3 ? 1 : 5;
    for (int i = 0; i < count; i++)
        values[i] = session_trips(session, 1, &order);
    return median(values, count);
}

static void measure_size(struct session *session, int rounds, uint64_t bytes)
{
    double values[WAYS][ROUNDS_MOST], references[ROUNDS_MOST];
    struct multilane_route route;
    for (int round = 0; round < rounds; round++) {
        references[round] = visit(session, MODEL_PROTOCOLS, REFERENCE_BYTES);
        for (int i = 0; i < WAYS; i++) {
            int way = (i + round) % WAYS;
            bool is_forced = way != MODEL_PROTOCOLS;
            values[way][round] = is_forced && !session->pml ? -1 : visit(session, way, bytes);
        }
    }
    printf("%llu reference %.9g\n", (unsigned long long) bytes, median(references, rounds));
    for (int way = 0; way < WAYS; way++)
        if (values[way][0] > 0)
            printf("%llu %s %.9g\n", (unsigned long long) bytes,
                   way == MODEL_PROTOCOLS ? "auto" : model_protocols[way]->name,
                   median(values[way], rounds));
    if (session->pml && session->pml->force(1, MULTILANE_MEASURE_PLANNED, 0) == 0 &&
        session->pml->route(1, bytes, &route) == 0) {
        printf("%llu chosen %s\n", (unsigned long long) bytes,
               model_protocols[route.protocol]->name);
        printf("%llu predicted %.9g\n", (unsigned long long) bytes, route.predicted_s);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct session session = {0};
    struct model_error error;
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    uint64_t largest = argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_C(64) << 20;
    MPI_Comm_rank(MPI_COMM_WORLD, &session.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &session.ranks);
    session.pml = dlsym(RTLD_DEFAULT, MULTILANE_MEASURE_SYMBOL);
    if (session.pml) { /* it may be there and not be the one in use */
        struct model_lane lanes[MODEL_LANES_MAX];
        enum profile_placement placement;
        uint32_t count = MODEL_LANES_MAX;
        if (session.pml->lane_bytes != sizeof(struct model_lane) ||
            session.pml->lanes(session.rank ? 0 : 1, lanes, &count, &placement) != 0)
            session.pml = NULL;
    }
    if (session.ranks != 2 || rounds < 1 || rounds > ROUNDS_MOST || largest < 1 ||
        !session_begin(&session, largest + 1, &error)) {
        fprintf(stderr, "regret_measure: it takes two ranks, 1 to %d rounds and memory\n",
                ROUNDS_MOST);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (session.rank == 0) {
        for (uint64_t size = 1; size <= largest; size *= 2) {
            uint64_t odd = size + size * 3 / 8 + 1;
            measure_size(&session, rounds, size);
            if (size >= 4 && odd <= largest)
                measure_size(&session, rounds, odd | 1);
        }
        session_dismiss(&session);
    } else {
        session_obey(&session);
    }
    session_end(&session);
    MPI_Finalize();
    return 0;
}
