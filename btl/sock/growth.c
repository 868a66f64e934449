/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether a rail carries more by further connections, as a network may give each less
 * than the link. While much waits for a rail that carries less than its link says, one more
 * connection is tried. If the rail carries more by it, the next one is tried. One that again and
 * again brings nothing stays, as it costs nothing, and no other is tried. */
#include "btl/sock/sock.h"

#include <sys/resource.h>

#include "common/lock/clock.h"

/* A rail is looked at over so long, */
#define WINDOW_NS UINT64_C(100000000)
/* if so much waits for it at both ends of that time, */
#define MUCH_BYTES ((size_t) 256 << 10)
/* it had something to send for that part of it, and the other end had no room for at most that. */
#define BUSY_LEAST  0.8
#define HALTED_MOST 0.3
/* It carries less than that part of what the link says, if that says it: more than what headers
 * take. */
#define FILLED 0.7
/* A further connection brings something where that is at least that part of what each of the others
 * carried, in the mean of GROWTH_WINDOWS windows. */
#define BRINGS_LEAST 0.5
/* A window counts if it carried at least that part of its share: the PML uses it from the next
 * large message on. */
#define USED_LEAST 0.5

/* What the connections of a rail have done until now. */
struct view {
    uint64_t now_ns;
    struct sock_counts all;
    uint64_t last_arrived; /* of the last of them */
};

static void view_take(sock_peer_t *first, uint32_t links, struct view *view)
{
    *view = (struct view){.now_ns = clock_read_ns(CLOCK_MONOTONIC)};
    for (uint32_t nth = 0; nth < links; nth++) {
        uint64_t before = view->all.arrived;
        sock_socket_count(sock_links_find(first, nth)->link, &view->all);
        view->last_arrived = view->all.arrived - before;
    }
}

static void window_begin(struct sock_growth *growth, const struct view *view)
{
    growth->from_ns = view->now_ns;
    growth->all = view->all;
    growth->last_arrived = view->last_arrived;
}

static bool much_waits(sock_peer_t *first, uint32_t links)
{
    size_t bytes = 0;

    for (uint32_t nth = 0; nth < links; nth++) {
        sock_peer_t *peer = sock_links_find(first, nth);
        OPAL_THREAD_LOCK(&peer->lock);
        bytes += peer->kept_bytes;
        OPAL_THREAD_UNLOCK(&peer->lock);
    }
    return bytes >= MUCH_BYTES;
}

/* Was it the network that the connections waited for, all the time? */
static bool was_full(const struct sock_growth *growth, const struct view *view)
{
    const double all_us = growth->links * (double) (view->now_ns - growth->from_ns) / 1e3;
    const struct sock_counts *from = &growth->all, *to = &view->all;

    /* They are less where a connection was made anew. */
    return to->arrived >= from->arrived && to->busy_us >= from->busy_us &&
           to->halted_us >= from->halted_us && view->last_arrived >= growth->last_arrived &&
           (double) (to->busy_us - from->busy_us) >= BUSY_LEAST * all_us &&
           (double) (to->halted_us - from->halted_us) <= HALTED_MOST * all_us;
}

/* Where the link says how fast it is. */
static bool fills_link(uint32_t megabits, double bytes_s)
{
    return megabits != 0 && bytes_s >= FILLED * megabits * 1e6 / 8;
}

static bool brought_nothing(const struct sock_growth *growth, double bytes_s)
{
    return bytes_s < growth->before_bytes_s * (1 + BRINGS_LEAST / (growth->links - 1));
}

bool sock_growth_judge(struct sock_growth *growth, uint32_t megabits, double bytes_s,
                       double last_bytes_s)
{
    const bool is_trial = growth->tried == growth->links;

    if (growth->tried > growth->links ||
        (is_trial && last_bytes_s * growth->links < USED_LEAST * bytes_s))
        return false;
    growth->bytes_s += bytes_s / GROWTH_WINDOWS;
    if (++growth->windows < GROWTH_WINDOWS)
        return false;
    const double mean_bytes_s = growth->bytes_s;
    growth->bytes_s = growth->windows = 0;
    const bool was_vain = is_trial && brought_nothing(growth, mean_bytes_s);
    growth->vain_means += was_vain;
    growth->has_ended = growth->vain_means == GROWTH_VAIN_MEANS;
    if (was_vain || fills_link(megabits, mean_bytes_s))
        return false;
    growth->vain_means = 0;
    growth->before_bytes_s = mean_bytes_s;
    growth->tried = growth->links + 1;
    return true;
}

/* Descriptors for first connections to others are left. */
static bool descriptors_suffice(const sock_peer_t *first)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t) first->link->fd < limit.rlim_cur / 2;
}

static void link_try(sock_peer_t *first)
{
    const struct sock_growth *growth = &first->growth;
    sock_peer_t *peer = descriptors_suffice(first) ? sock_links_get(first, growth->links) : NULL;

    if (!peer)
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    if (!peer->link)
        sock_link_call(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    SOCK_VERBOSE("%s to process %s carries %.0f MB/s: connection %u is tried",
                 first->module->device, OPAL_NAME_PRINT(first->name), growth->before_bytes_s / 1e6,
                 growth->tried);
}

static void window_judge(sock_peer_t *first, const struct view *view)
{
    struct sock_growth *growth = &first->growth;
    const double seconds = (double) (view->now_ns - growth->from_ns) / 1e9;
    const double bytes_s = (double) (view->all.arrived - growth->all.arrived) / seconds;
    const double last_bytes_s = (double) (view->last_arrived - growth->last_arrived) / seconds;

    OPAL_THREAD_LOCK(&first->lock);
    const uint32_t megabits = sock_peer_megabits(first);
    OPAL_THREAD_UNLOCK(&first->lock);
    if (sock_growth_judge(growth, megabits, bytes_s, last_bytes_s))
        link_try(first);
    else if (growth->has_ended)
        SOCK_VERBOSE("%s to process %s carries %.0f MB/s: connection %u is the last one",
                     first->module->device, OPAL_NAME_PRINT(first->name), bytes_s / 1e6,
                     growth->links);
}

/* Those that are connected, by either end; 0: the first is not. */
static uint32_t links_count(sock_peer_t *first)
{
    uint32_t links = 0;

    for (sock_peer_t *peer = first; peer && peer->link; peer = sock_links_find(first, links))
        links++;
    return links;
}

static bool may_grow(sock_peer_t *first, uint32_t links)
{
    return !first->growth.has_ended && links > 0 &&
           links <= sock_links_most(&first->module->super, first) &&
           atomic_load_explicit(&sock.links_are_taken, memory_order_relaxed) &&
           much_waits(first, links);
}

void sock_growth_tick(sock_peer_t *first)
{
    struct sock_growth *growth = &first->growth;
    struct view view;

    if (first->module->nth > 0 || sock.links > 0)
        return;
    const uint32_t links = links_count(first);
    OPAL_THREAD_LOCK(&first->lock);
    if (first->is_added)
        *growth = (struct sock_growth){0};
    first->is_added = false;
    OPAL_THREAD_UNLOCK(&first->lock);
    if (growth->from_ns != 0 && clock_read_ns(CLOCK_MONOTONIC) - growth->from_ns < WINDOW_NS)
        return;
    bool was_begun = growth->from_ns != 0 && growth->links == links;
    if (!may_grow(first, links)) {
        growth->from_ns = 0;
        return;
    }
    if (growth->links != links)
        growth->bytes_s = growth->windows = 0;
    growth->links = links;
    view_take(first, links, &view);
    if (was_begun && was_full(growth, &view))
        window_judge(first, &view);
    window_begin(growth, &view);
}
