/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of some messages. */
#include "request/sample.h"

#include "base/clock.h"
#include "base/multilane.h"
#include "base/parameters.h"

/* Eager messages whose answer has not come. A slot is free again with the answer and not before:
 * the handle of a message that has left stays good. */
#define OPEN_MOST 64

struct open_sample {
    const struct route *route; /* null: the slot is free */
    const struct peer *peer;
    uint64_t bytes;
    uint64_t since_ns;
    struct wire_handle handle;
};

static struct {
    opal_mutex_t lock; /* guards what follows, and the samples of all routes; a leaf */
    struct open_sample open[OPEN_MOST];
} timed;

#define ONE_IN 128

/* The message that class_route_use has counted last. */
static bool is_due(const struct route *route)
{
    uint64_t number = counter_read(&route->messages);
    return (number % ONE_IN == 0 && number) ||
           (number > 1 && number < ONE_IN && (number & (number - 1)) == 0);
}

/* With the lock held. */
static void keep(const struct route *route, struct sample sample)
{
    struct samples *samples = route->samples;
    samples->kept[samples->taken++ % SAMPLES_KEPT] = sample;
}

static void open_end(struct open_sample *open)
{
    handle_release(&multilane.handles, &open->handle);
    open->route = NULL;
}

/* Null: all slots wait, or there is no memory; then the message is not timed. */
static struct open_sample *open_begin(const struct outgoing *out, const struct route *route)
{
    struct open_sample *open = timed.open;
    if (out->peer->is_self || peer_is_lost(out->peer))
        return NULL;
    OPAL_THREAD_LOCK(&timed.lock);
    while (open < timed.open + OPEN_MOST && open->route)
        open++;
    if (open == timed.open + OPEN_MOST ||
        handle_acquire(&multilane.handles, HANDLE_SAMPLE, open, &open->handle) != OMPI_SUCCESS)
        open = NULL;
    else
        *open = (struct open_sample){route, out->peer, out->size, clock_now_ns(), open->handle};
    OPAL_THREAD_UNLOCK(&timed.lock);
    return open;
}

bool sample_answered(const struct peer *peer, struct wire_handle handle, bool is_taken)
{
    uint64_t now_ns;
    if (!samples_post || !handle_find(&multilane.handles, HANDLE_SAMPLE, handle))
        return false;
    now_ns = clock_now_ns();
    OPAL_THREAD_LOCK(&timed.lock);
    struct open_sample *open = handle_find(&multilane.handles, HANDLE_SAMPLE, handle);
    bool is_its = open && open->peer == peer;
    if (is_its) {
        if (is_taken)
            keep(open->route, (struct sample){open->bytes, now_ns - open->since_ns, true});
        open_end(open);
    }
    OPAL_THREAD_UNLOCK(&timed.lock);
    return is_its;
}

static int post_timed(const struct outgoing *out, const struct route *route)
{
    struct open_sample *open = is_due(route) ? open_begin(out, route) : NULL;
    if (OPAL_LIKELY(!open))
        return route->protocol->post(out, route);
    struct outgoing marked = *out;
    marked.synchronous = open->handle;
    int rc = route->protocol->post(&marked, route);
    if (rc != LANE_LEFT) { /* nothing has left: a request sends it, and is timed itself */
        OPAL_THREAD_LOCK(&timed.lock);
        open_end(open);
        OPAL_THREAD_UNLOCK(&timed.lock);
    }
    return rc;
}

void sample_request_begin(struct send_request *request)
{
    const struct route *route = request->route;
    bool ends_by_answer =
        request->protocol->method || request->base.req_send_mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    if (!is_due(route) || request->protocol != route->protocol || request->out.peer->is_self)
        return;
    if (ends_by_answer) {
        request->sampled_ns = clock_now_ns();
        return;
    }
    struct open_sample *open = open_begin(&request->out, route);
    if (open)
        request->out.synchronous = open->handle;
}

void sample_request_end(struct send_request *request)
{
    uint64_t taken_ns = clock_now_ns() - request->sampled_ns;
    if (request->base.req_base.req_ompi.req_status.MPI_ERROR != OMPI_SUCCESS)
        return;
    OPAL_THREAD_LOCK(&timed.lock);
    keep(request->route, (struct sample){request->out.size, taken_ns, false});
    OPAL_THREAD_UNLOCK(&timed.lock);
}

void samples_begin(void)
{
    if (!parameters.explain || samples_post)
        return;
    OBJ_CONSTRUCT(&timed.lock, opal_mutex_t);
    samples_post = post_timed;
}

void samples_end(void)
{
    if (!samples_post)
        return;
    samples_post = NULL;
    for (int i = 0; i < OPEN_MOST; i++)
        timed.open[i].route = NULL; /* the table of handles ends as well */
    OBJ_DESTRUCT(&timed.lock);
}
