/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs do beside ping-pong and windows: one blocking call after the other, both directions
 * in one call, messages that come before they are asked for, probed ones, and messages to oneself.
 * Times are of one message. */
#include "part.h"

#include <stdlib.h>

#define BATCH   50
#define TAG     1
#define TAG_END 2

struct pattern {
    char *send;
    char *recv;
    int bytes;
    int peer;
};

static void message_send(const struct pattern *pattern)
{
    MPI_Send(pattern->send, pattern->bytes, MPI_BYTE, pattern->peer, TAG, MPI_COMM_WORLD);
}

static void message_receive(const struct pattern *pattern)
{
    MPI_Recv(pattern->recv, pattern->bytes, MPI_BYTE, pattern->peer, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static void word_send(const struct pattern *pattern)
{
    MPI_Send(NULL, 0, MPI_BYTE, pattern->peer, TAG_END, MPI_COMM_WORLD);
}

static void word_receive(const struct pattern *pattern)
{
    MPI_Recv(NULL, 0, MPI_BYTE, pattern->peer, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 sends a batch, rank 1 takes it, message by message. */
static void blocking_round(long count, void *context)
{
    const struct pattern *pattern = context;

    for (long i = 0; i < count; i++) {
        for (int k = 0; k < BATCH; k++) {
            if (0 == bench_rank())
                message_send(pattern);
            else
                message_receive(pattern);
        }
        if (0 == bench_rank())
            word_receive(pattern);
        else
            word_send(pattern);
    }
}

/* Rank 1 asks for the last message first, so that all others have come before they are asked for
 * where the sender does not have to wait. */
static void late_round(long count, void *context)
{
    const struct pattern *pattern = context;
    MPI_Request requests[BATCH];

    for (long i = 0; i < count; i++) {
        if (0 == bench_rank()) {
            for (int k = 0; k < BATCH; k++)
                MPI_Isend(pattern->send, pattern->bytes, MPI_BYTE, pattern->peer, TAG,
                          MPI_COMM_WORLD, &requests[k]);
            word_send(pattern);
            MPI_Waitall(BATCH, requests, MPI_STATUSES_IGNORE);
            word_receive(pattern);
        } else {
            word_receive(pattern);
            for (int k = 0; k < BATCH; k++)
                message_receive(pattern);
            word_send(pattern);
        }
    }
}

static void exchange_round(long count, void *context)
{
    const struct pattern *pattern = context;

    for (long i = 0; i < count; i++)
        MPI_Sendrecv(pattern->send, pattern->bytes, MPI_BYTE, pattern->peer, TAG, pattern->recv,
                     pattern->bytes, MPI_BYTE, pattern->peer, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static void probed_round(long count, void *context)
{
    const struct pattern *pattern = context;
    MPI_Status status;

    for (long i = 0; i < count; i++) {
        if (0 == bench_rank())
            message_send(pattern);
        MPI_Probe(pattern->peer, TAG, MPI_COMM_WORLD, &status);
        message_receive(pattern);
        if (1 == bench_rank())
            message_send(pattern);
    }
}

static void self_round(long count, void *context)
{
    const struct pattern *pattern = context;
    MPI_Request request;

    for (long i = 0; i < count; i++) {
        MPI_Irecv(pattern->recv, pattern->bytes, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &request);
        MPI_Send(pattern->send, pattern->bytes, MPI_BYTE, 0, TAG, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static double pattern_time(long size, void (*round)(long count, void *context))
{
    struct pattern pattern = {.send = bench_buffer((size_t) size),
                              .recv = bench_buffer((size_t) size),
                              .bytes = (int) size,
                              .peer = 1 - bench_rank()};
    double took;

    if (bench_ranks() != 2)
        bench_stop("this part is measured between 2 ranks.");
    took = bench_time(round, &pattern);
    free(pattern.send);
    free(pattern.recv);
    return took;
}

static void pattern_measure(const struct part *part, void (*round)(long count, void *context),
                            const char *figure, int messages)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        double took = pattern_time(*size, round);

        if (0 == bench_rank())
            bench_print(figure, *size, took / messages * 1e6);
    }
}

static void blocking_measure(const struct part *part)
{
    pattern_measure(part, blocking_round, "blocking_us", BATCH);
}

static void late_measure(const struct part *part)
{
    pattern_measure(part, late_round, "late_us", BATCH);
}

static void exchange_measure(const struct part *part)
{
    pattern_measure(part, exchange_round, "exchange_us", 1);
}

static void probed_measure(const struct part *part)
{
    pattern_measure(part, probed_round, "probed_us", 2);
}

static void self_measure(const struct part *part)
{
    pattern_measure(part, self_round, "self_us", 1);
}

static const long sizes_pattern[] = {8,     64,    512,   1024,   4096,    8192,
                                     16384, 32768, 65536, 262144, 1048576, SIZES_END};
const struct part part_blocking = {"blocking", sizes_pattern, blocking_measure};
const struct part part_late = {"late", sizes_pattern, late_measure};
const struct part part_exchange = {"exchange", sizes_pattern, exchange_measure};
const struct part part_probed = {"probed", sizes_small, probed_measure};
const struct part part_self = {"self", sizes_pattern, self_measure};
