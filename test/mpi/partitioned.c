// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapter Partitioned Point-to-Point Communication (MPI 4): compiled to cases where
// the MPI library offers it.
#include "suite.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#if SUITE_MPI_4

static void ring_partitioned(int send_partitions, int receive_partitions, int send_count)
{
    int total = send_partitions * send_count, receive_count = total / receive_partitions;
    int *out = suite_alloc((size_t) total * sizeof *out);
    int *in = suite_alloc((size_t) total * sizeof *in);
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, send_partitions, send_count, MPI_INT, suite.next, 1, suite.comm,
                      MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, receive_partitions, receive_count, MPI_INT, suite.prev, 1, suite.comm,
                      MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 5; round++) {
        memset(in, 0xff, (size_t) total * sizeof *in);
        OK(MPI_Startall(2, requests));
        for (int i = 0; i < send_partitions; i++) {
            int part = (i * 5 + round) % send_partitions; // made ready in another order
            if (send_partitions % 5 == 0)
                part = send_partitions - 1 - i;
            for (int k = 0; k < send_count; k++)
                out[part * send_count + k] = round * 100000 + part * send_count + k;
            OK(MPI_Pready(part, requests[0]));
        }
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int k = 0; k < total; k++)
            CHECK(in[k] == round * 100000 + k, "round %d: element %d is %d", round, k, in[k]);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    free(out);
    free(in);
}

static void partitions_arrive_wherever_they_are_made_ready(void)
{
    ring_partitioned(1, 1, 10);
    ring_partitioned(8, 8, 100);
    ring_partitioned(10, 10, 20000);
    ring_partitioned(16, 16, 1);
}

static void numbers_of_partitions_may_differ(void)
{
    ring_partitioned(8, 4, 100);
    ring_partitioned(4, 8, 100);
    ring_partitioned(12, 1, 5000);
}

static void parrived_tells_of_single_partitions(void)
{
    enum { PARTS = 6, COUNT = 50 };
    int out[PARTS * COUNT], in[PARTS * COUNT];
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, PARTS, COUNT, MPI_INT, suite.next, 1, suite.comm, MPI_INFO_NULL,
                      &requests[0]));
    OK(MPI_Precv_init(in, PARTS, COUNT, MPI_INT, suite.prev, 1, suite.comm, MPI_INFO_NULL,
                      &requests[1]));
    OK(MPI_Startall(2, requests));
    for (int part = 0; part < PARTS; part++) {
        int flag = 0;
        for (int k = 0; k < COUNT; k++)
            out[part * COUNT + k] = part * COUNT + k;
        OK(MPI_Pready_range(part, part, requests[0]));
        while (!flag) {
            OK(MPI_Parrived(requests[1], part, &flag));
            if (!flag)
                sched_yield();
        }
        for (int k = 0; k < COUNT; k++)
            CHECK(in[part * COUNT + k] == part * COUNT + k, "partition %d, element %d", part, k);
    }
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}
#else
static void library_is_too_old(void)
{
    suite_skip("this MPI library is older than MPI 4");
}
#endif

#define CHAPTER "Partitioned Point-to-Point Communication"

static const struct suite_case cases[] = {
#if SUITE_MPI_4
    {"partitions_arrive_wherever_they_are_made_ready", CHAPTER,
     partitions_arrive_wherever_they_are_made_ready, 1},
    {"numbers_of_partitions_may_differ", CHAPTER, numbers_of_partitions_may_differ, 1},
    {"parrived_tells_of_single_partitions", CHAPTER, parrived_tells_of_single_partitions, 1},
#else
    {"library_is_too_old", CHAPTER, library_is_too_old, 1},
#endif
};

const struct suite_chapter suite_partitioned = {"partitioned", cases, COUNT_OF(cases)};
