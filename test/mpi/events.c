/* SPDX-License-Identifier: BSD-3-Clause */
/* That a tool is told by MPI_T's events when a peer is suspected, when a lane to it is lost and
 * comes back, and that the plan changes with it. Two ranks over the stand-in lanes that fail
 * (test/fake/btl_flaky.c), of which rank 0 cuts one and mends it. MPI has events since version 4.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "test/fake/btl_flaky.h"

#if MPI_VERSION < 4

int main(void)
{
    printf("events: this MPI has none\n");
    return 0;
}

#else

#include <dlfcn.h>

#define DEADLINE_S 60
#define SILENCE_S  1.0

enum { SUSPECTED, LOST, RETURNED, CHANGED, EVENTS };

static struct {
    const char *name;
    int wants_lane, seen;
} events[EVENTS] = {
    [SUSPECTED] = {"ompi.pml_multilane_peer_suspected", 0, 0},
    [LOST] = {"ompi.pml_multilane_lane_lost", 1, 0},
    [RETURNED] = {"ompi.pml_multilane_lane_returned", 1, 0},
    [CHANGED] = {"ompi.pml_multilane_plan_changed", 0, 0},
};
static int failures;

/* The elements are the peer's job and rank, and its lane from 1 on. */
static void seen(MPI_T_event_instance instance, MPI_T_event_registration registration,
                 MPI_T_cb_safety safety, void *which)
{
    unsigned rank = 77;
    int lane = 77, event = *(int *) which;
    (void) registration;
    (void) safety;
    MPI_T_event_read(instance, 1, &rank);
    MPI_T_event_read(instance, 2, &lane);
    if (rank != 1 || (events[event].wants_lane ? lane < 1 || lane > 2 : lane != 0)) {
        fprintf(stderr, "%s: of rank %u, lane %d\n", events[event].name, rank, lane);
        failures++;
    }
    events[event].seen++;
}

static void events_listen(void)
{
    static int which[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        MPI_T_event_registration registration;
        int index;
        which[i] = i;
        if (MPI_T_event_get_index(events[i].name, &index) != MPI_SUCCESS ||
            MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration) != MPI_SUCCESS ||
            MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL,
                                          &which[i], seen) != MPI_SUCCESS) {
            fprintf(stderr, "%s: not to be waited for\n", events[i].name);
            failures++;
        }
    }
}

/* Messages to and fro until rank 0 has seen the event. */
static void talk_until(int rank, int event)
{
    double begun = MPI_Wtime();
    int goes_on = 1;
    while (goes_on) {
        if (rank == 0) {
            goes_on = !events[event].seen && MPI_Wtime() - begun < DEADLINE_S;
            MPI_Send(&goes_on, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(&goes_on, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&goes_on, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&goes_on, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        }
    }
}

/* Rank 1 only computes for so long, and acknowledges nothing meanwhile. */
static void wait_in_vain(int rank)
{
    double begun = MPI_Wtime();
    char byte = 0;
    int came;
    if (rank == 0) {
        MPI_Send(&byte, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        while (!events[SUSPECTED].seen && MPI_Wtime() - begun < SILENCE_S)
            MPI_Iprobe(1, 2, MPI_COMM_WORLD, &came, MPI_STATUS_IGNORE);
    } else {
        while (MPI_Wtime() - begun < SILENCE_S)
            ;
        MPI_Recv(&byte, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    void (*plan)(enum flaky_fault, int, unsigned, unsigned);
    unsigned (*end)(void);
    int rank, provided;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *(void **) &plan = dlsym(RTLD_DEFAULT, "mca_btl_flaky_plan");
    *(void **) &end = dlsym(RTLD_DEFAULT, "mca_btl_flaky_end");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        events_listen();
        plan(FLAKY_CUT, -1, 1, 0);
    }
    talk_until(rank, LOST);
    if (rank == 0)
        end();
    talk_until(rank, RETURNED);
    wait_in_vain(rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < EVENTS; i++)
        printf("event %s: %d times\n", events[i].name, events[i].seen);
    if (rank == 0 && !failures && events[SUSPECTED].seen && events[LOST].seen &&
        events[RETURNED].seen && events[CHANGED].seen >= 2)
        printf("events: all seen\n");
    MPI_T_finalize();
    MPI_Finalize();
    return failures != 0;
}

#endif
