/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose payload has a sum of its own, which is checked as it is copied: no receive gets a
 * wrong byte for a right one, wherever the message goes and whatever bit is wrong. */
#include "check.h"

#include <string.h>

#include "base/parameters.h"
#include "job_standin.h"
#include "progress_standin.h"

#define TAG    5
#define SIZE   ((size_t) 6000)
#define HALF   (SIZE / 2)
#define CANARY 0x5a

static const struct wire_handle sender = {3, 9};
static unsigned char sent[SIZE], buffer[2 * SIZE];
static ompi_datatype_t *rows;

/* Of the last message of each way: in its sums, in its headers, at both ends of its payload. */
static const size_t wrong_bits[] = {3, 8 * 4, 8 * 9 + 7, 8 * sizeof(struct wire_apart) + 5, 0, 1};

static struct recv_request *receive(void)
{
    return job_receive(buffer, SIZE, 1, TAG);
}

static void last_eager(size_t wrong)
{
    job_wrong_bit = wrong;
    job_eager(1, 0, 0, TAG, sent, SIZE);
}

/* What comes behind its receive, and before it. */
static struct recv_request *posted(void (*last)(size_t wrong), size_t wrong)
{
    struct recv_request *request = receive();
    last(wrong);
    return request;
}

static struct recv_request *unexpected(void (*last)(size_t wrong), size_t wrong)
{
    last(wrong);
    return receive();
}

static struct recv_request *whole_posted(size_t wrong)
{
    return posted(last_eager, wrong);
}

static struct recv_request *whole_unexpected(size_t wrong)
{
    return unexpected(last_eager, wrong);
}

static void last_part(size_t wrong)
{
    job_part(1, 0, 0, TAG, sent, SIZE, 0, HALF);
    job_wrong_bit = wrong;
    job_part(1, 1, 0, TAG, sent, SIZE, HALF, HALF);
}

static struct recv_request *parts_posted(size_t wrong)
{
    return posted(last_part, wrong);
}

static struct recv_request *parts_unexpected(size_t wrong)
{
    return unexpected(last_part, wrong);
}

/* The other half comes behind it. */
static struct recv_request *first_part(size_t wrong)
{
    struct recv_request *request = receive();
    job_wrong_bit = wrong;
    job_part(1, 0, 0, TAG, sent, SIZE, 0, HALF);
    job_wrong_bit = JOB_ALL_RIGHT;
    job_part(1, 1, 0, TAG, sent, SIZE, HALF, HALF);
    return request;
}

static struct recv_request *announced(struct recv_request *request, size_t wrong)
{
    struct wire_data data = {.offset = 0};
    job_forget();
    job_is_apart = false;
    job_rts(1, 0, 0, TAG, SIZE, WIRE_BY_SEND, sender);
    job_is_apart = true;
    data.receiver = ((const struct wire_rtr *) job_last(1, WIRE_RTR))->receiver;
    job_control(1, 0, WIRE_DATA, &data, sizeof(data), sent, HALF);
    data.offset = HALF;
    job_wrong_bit = wrong;
    job_control(1, 1, WIRE_DATA, &data, sizeof(data), sent + HALF, HALF);
    return request;
}

static struct recv_request *pieces(size_t wrong)
{
    return announced(receive(), wrong);
}

/* To 100 bytes of each 200. */
static struct recv_request *pieces_apart(size_t wrong)
{
    return announced(job_receive_type(buffer, 1, rows, 1, TAG), wrong);
}

static bool is_there(bool in_rows)
{
    for (size_t i = 0; i < SIZE; i++)
        if (buffer[in_rows ? i / 100 * 200 + i % 100 : i] != sent[i])
            return false;
    return true;
}

static const struct way {
    const char *name;
    struct recv_request *(*come)(size_t wrong);
    size_t last; /* the payload that ends with the wrong bit */
} ways[] = {
    {"whole, posted", whole_posted, SIZE},
    {"whole, unexpected", whole_unexpected, SIZE},
    {"in parts, posted", parts_posted, HALF},
    {"in parts, unexpected", parts_unexpected, HALF},
    {"in parts, the first is wrong", first_part, HALF},
    {"announced", pieces, HALF},
    {"announced, to rows", pieces_apart, HALF},
};

static void try(const struct way *way, size_t wrong)
{
    job_begin(1 << 20, 0);
    standin_expects_failures = true;
    multilane.wrong_messages = 0;
    memset(buffer, CANARY, sizeof(buffer));
    job_is_apart = true;
    job_wrong_bit = JOB_ALL_RIGHT;
    struct recv_request *request = way->come(wrong);
    const bool is_right = wrong == JOB_ALL_RIGHT;
    CHECK(multilane.wrong_messages == !is_right, "%s, bit %zu: %llu are wrong", way->name, wrong,
          (unsigned long long) multilane.wrong_messages);
    CHECK(!is_right || is_there(way->come == pieces_apart), "%s: other bytes", way->name);
    job_is_apart = false;
    job_wrong_bit = JOB_ALL_RIGHT;
    progress_standin_run();
    CHECK(job_is_complete(request), "%s, bit %zu: it goes on", way->name, wrong);
    int error = job_free(job_ompi(request));
    CHECK(error == (is_right ? MPI_SUCCESS : COMPAT_ERR_PROC_FAILED), "%s, bit %zu: error %d",
          way->name, wrong, error);
    job_peer(1)->lost = false;
    job_end();
}

int main(void)
{
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (unsigned char) (i * 31 + i / 256);
    parameters.sums = SUMS_OF_SOME;
    job_begin(1 << 20, 0);
    ompi_datatype_create_vector(SIZE / 100, 100, 200, &ompi_mpi_byte.dt, &rows);
    ompi_datatype_commit(&rows);
    job_end();
    for (const struct way *way = ways; way < ways + sizeof(ways) / sizeof(ways[0]); way++) {
        try(way, JOB_ALL_RIGHT);
        for (size_t i = 0; i < sizeof(wrong_bits) / sizeof(wrong_bits[0]); i++)
            try(way, wrong_bits[i]);
    }
    return check_end();
}
