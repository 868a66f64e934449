/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of departures, and the one callback of all descriptors. */
#include "lane/departure.h"

#include "common/compat/tsan.h"
#include "lane/lane_events.h"
#include "base/multilane.h"
#include "base/pending.h"

struct departure {
    opal_free_list_item_t super;
    struct pending pending; /* ends it from progress after an error: the BTL may hold a lock */
    struct lane *lane;
    struct peer *peer;
    lane_left left;
    void *owner;
    int status;
    bool is_in_place;
};

typedef struct departure departure_t;
OBJ_CLASS_DECLARATION(departure_t);

static void departure_construct(struct departure *departure)
{
    tsan_release(departure); /* tsan_list_get */
}

OBJ_CLASS_INSTANCE(departure_t, opal_free_list_item_t, departure_construct, NULL);

/* The list never frees memory, so reading a departure that was taken meanwhile is safe. */
static struct {
    opal_free_list_t list;
    struct handle_table table; /* the thread that removes the handle owns the departure */
    bool is_open;
} departures;

_Static_assert(sizeof(void *) >= sizeof(struct wire_handle), "a callback's context holds a handle");

static struct wire_handle handle_of_context(const void *context)
{
    uint64_t number = (uintptr_t) context;
    return (struct wire_handle){.index = (uint32_t) number,
                                .generation = (uint32_t) (number >> 32)};
}

static void *context_of_handle(struct wire_handle handle)
{
    return (void *) (uintptr_t) ((uint64_t) handle.generation << 32 | handle.index);
}

static void departure_end(struct departure *departure, int status)
{
    lane_left left = departure->left;
    void *owner = departure->owner;
    tsan_list_return(&departures.list, &departure->super);
    if (left)
        left(owner, status);
}

static int departure_fail(struct pending *pending)
{
    struct departure *departure =
        (struct departure *) ((char *) pending - offsetof(struct departure, pending));
    int status = departure->status;
    lane_failed(departure->lane, "could not deliver a message that it had accepted", status);
    departure_end(departure, status);
    return OMPI_SUCCESS;
}

static void descriptor_ended(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                             mca_btl_base_descriptor_t *descriptor, int status)
{
    tsan_acquire(descriptor);
    struct wire_handle handle = handle_of_context(descriptor->des_cbdata);
    tsan_release(descriptor);
    (void) btl;
    (void) endpoint;
    if (OPAL_UNLIKELY(!departures.is_open))
        return;
    struct departure *departure = handle_find(&departures.table, HANDLE_DEPARTURE, handle);
    if (OPAL_UNLIKELY(!departure || !handle_take(&departures.table, handle)))
        return;
    if (OPAL_LIKELY(status == OPAL_SUCCESS)) {
        departure_end(departure, OMPI_SUCCESS);
        return;
    }
    departure->status = status;
    departure->pending = (struct pending){.retry = departure_fail};
    pending_add(&departure->pending);
}

bool departure_begin(struct lane *lane, struct peer *peer, mca_btl_base_descriptor_t *descriptor,
                     bool is_in_place, lane_left left, void *owner, struct wire_handle *handle)
{
    struct departure *departure = (struct departure *) tsan_list_get(&departures.list);
    if (OPAL_UNLIKELY(!departure))
        return false;
    departure->lane = lane;
    departure->peer = peer;
    departure->is_in_place = is_in_place;
    departure->left = left;
    departure->owner = owner;
    if (OPAL_UNLIKELY(handle_acquire(&departures.table, HANDLE_DEPARTURE, departure, handle) !=
                      OMPI_SUCCESS)) {
        tsan_list_return(&departures.list, &departure->super);
        return false;
    }
    descriptor->des_cbfunc = descriptor_ended;
    descriptor->des_cbdata = context_of_handle(*handle);
    return true;
}

bool departure_revoke(struct wire_handle handle)
{
    struct departure *departure = handle_find(&departures.table, HANDLE_DEPARTURE, handle);
    if (!departure || !handle_take(&departures.table, handle))
        return false;
    tsan_list_return(&departures.list, &departure->super);
    return true;
}

bool departures_in_place(const struct lane *lane)
{
    const struct departure *departure;
    struct wire_handle handle;
    uint32_t at = 0;
    while ((departure = handle_next(&departures.table, HANDLE_DEPARTURE, &at, &handle)))
        if (departure->is_in_place && departure->lane == lane)
            return true;
    return false;
}

void departures_lost(const struct peer *peer)
{
    struct departure *departure;
    struct wire_handle handle;
    uint32_t at = 0;
    while ((departure = handle_next(&departures.table, HANDLE_DEPARTURE, &at, &handle)))
        if (departure->peer == peer && !departure->is_in_place &&
            handle_take(&departures.table, handle))
            departure_end(departure, OMPI_ERR_UNREACH);
}

void departures_init(void)
{
    OBJ_CONSTRUCT(&departures.list, opal_free_list_t);
    opal_free_list_init(&departures.list, sizeof(struct departure), opal_cache_line_size,
                        OBJ_CLASS(departure_t), 0, opal_cache_line_size, 0, -1, 64, NULL, 0, NULL,
                        NULL, NULL);
    handle_table_init(&departures.table);
    departures.is_open = true;
}

void departures_fini(void)
{
    departures.is_open = false; /* a BTL may still call back when it closes */
    handle_table_fini(&departures.table);
    OBJ_DESTRUCT(&departures.list);
}
