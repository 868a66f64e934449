/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the BTLs: what they do differently is handled here, once. */
#include "lane/lane.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/handle.h"
#include "base/own_page.h"
#include "common/compat/tsan.h"
#include "common/model/lane.h"

/* Finds the extension of a BTL of ours among the symbols of its component. */

const struct multilane_extension *lane_extension_named(const char *btl)
{
    char symbol[128];
    snprintf(symbol, sizeof(symbol), MULTILANE_EXTENSION_SYMBOL_FORMAT, btl);
    const struct multilane_extension *extension = dlsym(RTLD_DEFAULT, symbol);
    return extension && extension->version == MULTILANE_EXTENSION_VERSION &&
                   extension->struct_bytes >= sizeof(*extension)
               ? extension
               : NULL;
}

/* Looking a symbol up takes as long as all else of a contact, so the last answers are kept; a
 * component that was closed and opened anew may lie elsewhere. Under multilane.lock, or before
 * there are other threads. */
const struct multilane_extension *lane_extension_of(const mca_btl_base_module_t *btl)
{
    static struct {
        const mca_btl_base_component_t *component;
        const struct multilane_extension *extension;
    } known[MODEL_LANES_MAX];
    static unsigned next;

    for (unsigned i = 0; i < MODEL_LANES_MAX; i++)
        if (known[i].component == btl->btl_component && known[i].component)
            return known[i].extension;
    unsigned at = next++ % MODEL_LANES_MAX;
    known[at].component = btl->btl_component;
    known[at].extension = lane_extension_named(btl->btl_component->btl_version.mca_component_name);
    return known[at].extension;
}

bool btl_is_of_sockets(const mca_btl_base_module_t *btl)
{
    const struct multilane_extension *extension = lane_extension_of(btl);
    return extension ? extension->round_trip_s != NULL
                     : strcmp(btl->btl_component->btl_version.mca_component_name, "tcp") == 0;
}

/* The table of sent fragments, and the one callback of all descriptors. */

struct sent_fragment {
    opal_free_list_item_t super;
    struct pending pending; /* ends it from progress after an error: the BTL may hold a lock */
    struct lane *lane;
    struct peer *peer;
    lane_left left;
    void *owner;
    int status;
    bool is_in_place;
};

typedef struct sent_fragment sent_fragment_t;
OBJ_CLASS_DECLARATION(sent_fragment_t);

static void sent_fragment_construct(struct sent_fragment *fragment)
{
    tsan_release(fragment); /* tsan_list_get */
}

OBJ_CLASS_INSTANCE(sent_fragment_t, opal_free_list_item_t, sent_fragment_construct, NULL);

/* The list never frees memory, so reading a fragment that was taken meanwhile is safe. */
static struct {
    opal_free_list_t list;
    struct handle_table table; /* the thread that removes the handle owns the fragment */
    bool is_open;
} sent_fragments;

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

static void sent_fragment_end(struct sent_fragment *fragment, int status)
{
    lane_left left = fragment->left;
    void *owner = fragment->owner;
    tsan_list_return(&sent_fragments.list, &fragment->super);
    if (left)
        left(owner, status);
}

static int sent_fragment_fail(struct pending *pending)
{
    struct sent_fragment *fragment =
        (struct sent_fragment *) ((char *) pending - offsetof(struct sent_fragment, pending));
    int status = fragment->status;
    lane_events.failed(fragment->lane, "could not deliver a message that it had accepted", status);
    sent_fragment_end(fragment, status);
    return OMPI_SUCCESS;
}

static void descriptor_ended(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                             mca_btl_base_descriptor_t *descriptor, int status)
{
    tsan_acquire(descriptor);
    struct wire_handle handle = handle_of_context(descriptor->des_cbdata);
    tsan_release(descriptor);
    if (OPAL_UNLIKELY(!sent_fragments.is_open))
        return;
    struct sent_fragment *fragment = handle_find(&sent_fragments.table, HANDLE_FRAGMENT, handle);
    if (OPAL_UNLIKELY(!fragment || !handle_take(&sent_fragments.table, handle)))
        return;
    if (OPAL_LIKELY(status == OPAL_SUCCESS)) {
        sent_fragment_end(fragment, OMPI_SUCCESS);
        return;
    }
    fragment->status = status;
    fragment->pending = (struct pending){.retry = sent_fragment_fail};
    pending_add(&fragment->pending);
}

/* Sets the descriptor's callback. It calls `left`, if not null, once, unless sent_fragment_revoke
 * comes first. `is_in_place`: the lane reads the owner's memory until then. False: no memory. */
static bool sent_fragment_begin(struct lane *lane, struct peer *peer,
                                mca_btl_base_descriptor_t *descriptor, bool is_in_place,
                                lane_left left, void *owner, struct wire_handle *handle)
{
    struct sent_fragment *fragment = (struct sent_fragment *) tsan_list_get(&sent_fragments.list);
    if (OPAL_UNLIKELY(!fragment))
        return false;
    fragment->lane = lane;
    fragment->peer = peer;
    fragment->is_in_place = is_in_place;
    fragment->left = left;
    fragment->owner = owner;
    if (OPAL_UNLIKELY(handle_acquire(&sent_fragments.table, HANDLE_FRAGMENT, fragment, handle) !=
                      OMPI_SUCCESS)) {
        tsan_list_return(&sent_fragments.list, &fragment->super);
        return false;
    }
    descriptor->des_cbfunc = descriptor_ended;
    descriptor->des_cbdata = context_of_handle(*handle);
    return true;
}

/* Removes the fragment without a call of `left`. False: the callback was first. */
static bool sent_fragment_revoke(struct wire_handle handle)
{
    struct sent_fragment *fragment = handle_find(&sent_fragments.table, HANDLE_FRAGMENT, handle);
    if (!fragment || !handle_take(&sent_fragments.table, handle))
        return false;
    tsan_list_return(&sent_fragments.list, &fragment->super);
    return true;
}

/* Is a fragment under way whose lane reads its owner's memory? */
static bool sent_fragments_in_place(const struct lane *lane)
{
    const struct sent_fragment *fragment;
    struct wire_handle handle;
    uint32_t at = 0;
    while ((fragment = handle_next(&sent_fragments.table, HANDLE_FRAGMENT, &at, &handle)))
        if (fragment->is_in_place && fragment->lane == lane)
            return true;
    return false;
}

void sent_fragments_lost(const struct peer *peer)
{
    struct sent_fragment *fragment;
    struct wire_handle handle;
    uint32_t at = 0;
    while ((fragment = handle_next(&sent_fragments.table, HANDLE_FRAGMENT, &at, &handle)))
        if (fragment->peer == peer && !fragment->is_in_place &&
            handle_take(&sent_fragments.table, handle))
            sent_fragment_end(fragment, OMPI_ERR_UNREACH);
}

void sent_fragments_init(void)
{
    OBJ_CONSTRUCT(&sent_fragments.list, opal_free_list_t);
    opal_free_list_init(&sent_fragments.list, sizeof(struct sent_fragment), opal_cache_line_size,
                        OBJ_CLASS(sent_fragment_t), 0, opal_cache_line_size, 0, -1, 64, NULL, 0,
                        NULL, NULL, NULL);
    handle_table_init(&sent_fragments.table);
    sent_fragments.is_open = true;
}

void sent_fragments_fini(void)
{
    sent_fragments.is_open = false; /* a BTL may still call back when it closes */
    handle_table_fini(&sent_fragments.table);
    OBJ_DESTRUCT(&sent_fragments.list);
}

/* Holds the table. */

struct lane_events lane_events;

/* The BTL frees the descriptor; no request waits for it. */
#define FIRE_AND_FORGET (MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)

/* Every descriptor has a callback that says when the bytes have left. The result of btl_send
 * does not say it: vader returns the same where it queues and where it hands over, tcp where the
 * socket takes the bytes and where it does not. */
#define WITH_CALLBACK (FIRE_AND_FORGET | MCA_BTL_DES_SEND_ALWAYS_CALLBACK)

static int descriptor_send(struct lane *lane, uint8_t tag, mca_btl_base_descriptor_t *descriptor,
                           bool is_in_place, lane_left left, void *owner)
{
    struct wire_handle handle;
    if (OPAL_UNLIKELY(!sent_fragment_begin(lane, lane->peer, descriptor, is_in_place, left, owner,
                                           &handle))) {
        lane->btl->btl_free(lane->btl, descriptor);
        return LANE_AGAIN;
    }
    tsan_release(descriptor); /* the next owner acquires */
    mca_btl_base_module_send_fn_t send = tag == WIRE_TAG ? lane->send : lane->btl->btl_send;
    int rc = send(lane->btl, lane->endpoint, descriptor, tag);
    /* 1: handed over; 0 and busy: the BTL has queued it. tcp may return an error after it has
     * called back with it: then the owner knows it. */
    if (rc >= 0 || rc == OPAL_ERR_RESOURCE_BUSY || !sent_fragment_revoke(handle))
        return LANE_UNDER_WAY;
    /* After an error tcp may still have the descriptor in a list of its own: leave it there. */
    if (rc == OPAL_ERR_TEMP_OUT_OF_RESOURCE || lane->extension)
        lane->btl->btl_free(lane->btl, descriptor);
    if (rc == OPAL_ERR_UNREACH && lane->returns) { /* by another one */
        lane_events.failed(lane, "could not send a message", rc);
        return LANE_AGAIN;
    }
    return rc == OPAL_ERR_TEMP_OUT_OF_RESOURCE ? LANE_AGAIN : rc;
}

int lane_send_descriptor(struct lane *lane, mca_btl_base_descriptor_t *descriptor, lane_left left,
                         void *owner)
{
    return descriptor_send(lane, WIRE_TAG, descriptor, false, left, owner);
}

int lane_send_in_place(struct lane *lane, mca_btl_base_registration_handle_t *registration,
                       const void *bytes, size_t length, const void *payload, size_t payload_length,
                       lane_left left, void *owner)
{
    mca_btl_base_descriptor_t *descriptor = lane->extension->prepare_in_place(
        lane->btl, lane->endpoint, registration, length, payload, payload_length, WITH_CALLBACK);
    if (OPAL_UNLIKELY(!descriptor))
        return LANE_AGAIN;
    tsan_acquire(descriptor);
    memcpy(descriptor->des_segments[0].seg_addr.pval, bytes, length);
    return descriptor_send(lane, WIRE_TAG, descriptor, true, left, owner);
}

/* A refusal means no room; too many bytes it cannot mean, because plans keep to the lane's limit.
 */
static inline int immediate_result(const struct lane *lane, int rc)
{
    if (OPAL_LIKELY(rc == OPAL_SUCCESS))
        return LANE_LEFT;
    return lane->extension && rc == OPAL_ERR_RESOURCE_BUSY ? LANE_FULL : LANE_AGAIN;
}

int lane_send_packed(struct lane *lane, const void *header, size_t length,
                     opal_convertor_t *convertor, size_t size)
{
    return immediate_result(lane, lane->sendi(lane->btl, lane->endpoint, convertor, (void *) header,
                                              length, size, MCA_BTL_NO_ORDER, FIRE_AND_FORGET,
                                              WIRE_TAG, NULL));
}

int lane_send_immediately(struct lane *lane, const void *bytes, size_t length)
{
    /* All bytes go as "header", so no convertor is needed. */
    return OPAL_LIKELY(lane->sendi != NULL) ? lane_send_packed(lane, bytes, length, NULL, 0)
                                            : LANE_AGAIN;
}

static int fragment(struct lane *lane, mca_btl_base_module_alloc_fn_t alloc, size_t length,
                    mca_btl_base_descriptor_t **descriptor)
{
    mca_btl_base_module_t *btl = lane->btl;
    *descriptor = alloc(btl, lane->endpoint, MCA_BTL_NO_ORDER, length, WITH_CALLBACK);
    if (OPAL_UNLIKELY(!*descriptor))
        return LANE_AGAIN;
    tsan_acquire(*descriptor);
    if (OPAL_UNLIKELY((*descriptor)->des_segments[0].seg_len < length)) {
        btl->btl_free(btl, *descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    (*descriptor)->des_segments[0].seg_len = length;
    return OMPI_SUCCESS;
}

int lane_fragment(struct lane *lane, size_t length, mca_btl_base_descriptor_t **descriptor)
{
    return fragment(lane, lane->alloc, length, descriptor);
}

/* A piece of a message is not urgent. */
#define PIECE                                                                                      \
    (MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK | MCA_BTL_DES_FLAGS_SIGNAL)

/* Has the BTL left the payload where it was? One that has no fence could not be stopped. */
static bool is_in_place(const struct lane *lane, const mca_btl_base_descriptor_t *descriptor)
{
    return descriptor->des_segment_count > 1 && lane->extension && lane->extension->fence;
}

int lane_send_piece(struct lane *lane, const void *header, size_t length, const char *payload,
                    size_t *size, bool all, lane_left left, void *owner)
{
    mca_btl_base_module_t *btl = lane->btl;
    size_t wanted = *size;
    opal_convertor_t convertor; /* a BTL asks it for the bytes, or where they are, and forgets it */
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &ompi_mpi_packed.dt.super,
                                             *size, payload, 0, &convertor);
    mca_btl_base_descriptor_t *descriptor =
        lane->prepare(btl, lane->endpoint, &convertor, MCA_BTL_NO_ORDER, length, size, PIECE);
    OBJ_DESTRUCT(&convertor);
    if (!descriptor)
        return LANE_AGAIN;
    tsan_acquire(descriptor);
    if (*size == 0 || (all && *size < wanted)) {
        btl->btl_free(btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    memcpy(descriptor->des_segments[0].seg_addr.pval, header, length);
    return descriptor_send(lane, WIRE_TAG, descriptor, is_in_place(lane, descriptor), left, owner);
}

int lane_send_tagged(struct lane *lane, uint8_t tag, const void *bytes, size_t length,
                     lane_left left, void *owner)
{
    mca_btl_base_descriptor_t *descriptor;
    /* Others' messages have no sum. */
    mca_btl_base_module_alloc_fn_t alloc = tag == WIRE_TAG ? lane->alloc : lane->btl->btl_alloc;
    int rc = fragment(lane, alloc, length, &descriptor);
    if (rc != OMPI_SUCCESS)
        return rc;
    memcpy(lane_fragment_bytes(descriptor), bytes, length);
    return descriptor_send(lane, tag, descriptor, false, left, owner);
}

int lane_send_plain(struct lane *lane, const void *bytes, size_t length, lane_left left,
                    void *owner)
{
    return lane_send_immediately(lane, bytes, length) == LANE_LEFT
               ? LANE_LEFT
               : lane_send_tagged(lane, WIRE_TAG, bytes, length, left, owner);
}

bool lane_can(const struct lane *lane, enum multilane_capability capability)
{
    struct multilane_lane_attributes attributes = {.capabilities = 0};
    lane->extension->attributes(lane->btl, lane->endpoint, &attributes);
    return attributes.capabilities & capability;
}

bool lane_is_proven(const struct lane *lane, char *why, size_t room)
{
    return !lane_is_tried(lane) || lane->extension->is_proven(lane->btl, lane->endpoint, why, room);
}

int lane_fence(struct lane *lane)
{
    if (lane_state(lane) != LANE_BROKEN)
        return OMPI_SUCCESS; /* made anew: the old connection has ended */
    int rc = lane->extension->fence(lane->btl, lane->endpoint);
    return rc == OPAL_ERR_RESOURCE_BUSY ? LANE_AGAIN : rc;
}

/* Another lane may have no sums, and makes its own. */
static bool returned_without_sum(void *lane, uint8_t tag, const void *bytes, size_t length,
                                 const void *payload, size_t payload_length)
{
    const size_t sum = sizeof(struct wire_sum);
    if (!multilane_tag_is_of_pml(tag))
        return lane_events.returned(lane, tag, bytes, length, payload, payload_length);
    return length < sum || lane_events.returned(lane, WIRE_TAG, (const char *) bytes + sum,
                                                length - sum, payload, payload_length);
}

void lane_return(struct lane *lane)
{
    lane->returns = true;
    lane->extension->return_to(lane->btl, lane->endpoint,
                               lane->sums ? returned_without_sum : lane_events.returned, lane);
}

void lane_return_none(struct lane *lane)
{
    if (lane->returns)
        lane->extension->return_to(lane->btl, lane->endpoint, NULL, NULL);
}

size_t lane_under_way(const struct lane *lane, size_t more, double *seconds)
{
    *seconds = 0;
    return lane->extension && lane->extension->under_way
               ? lane->extension->under_way(lane->btl, lane->endpoint, more, seconds)
               : 0;
}

double lane_observed_bytes_s(const struct lane *lane)
{
    return lane_measures(lane) ? lane->extension->observed_bytes_s(lane->btl, lane->endpoint) : 0;
}

uint64_t lane_quiet_ms(const struct lane *lane)
{
    return lane->returns && lane->extension->quiet_ms
               ? lane->extension->quiet_ms(lane->btl, lane->endpoint)
               : 0;
}

void lane_close(struct lane *lane)
{
    bool returns = lane->returns && lane_state(lane) == LANE_BROKEN;
    if (returns || sent_fragments_in_place(lane)) /* the callbacks will come */
        (void) lane->extension->fence(lane->btl, lane->endpoint);
}

static bool is_aligned(uint64_t value, size_t alignment)
{
    return alignment < 2 || value % alignment == 0;
}

bool lane_can_get(const struct lane *lane, uint64_t remote, const void *local, size_t size)
{
    size_t alignment = lane->btl->btl_get_alignment;
    return (lane->flags & MCA_BTL_FLAGS_GET) && lane->btl->btl_get &&
           is_aligned(remote, alignment) && is_aligned((uintptr_t) local, alignment) &&
           is_aligned(size, alignment);
}

bool lane_can_put(const struct lane *lane)
{
    return (lane->flags & MCA_BTL_FLAGS_PUT) && lane->btl->btl_put &&
           lane->btl->btl_put_alignment < 2;
}

int lane_register(struct lane *lane, void *address, size_t size, uint32_t access,
                  struct registration *registration)
{
    registration->lane = lane;
    registration->handle = NULL;
    if (!lane->btl->btl_register_mem)
        return OMPI_SUCCESS;
    registration->handle =
        lane->btl->btl_register_mem(lane->btl, lane->endpoint, address, size, access);
    if (registration->handle)
        return OMPI_SUCCESS;
    registration->lane = NULL;
    return LANE_AGAIN;
}

int lane_flush(const struct registration *registration, const void *address, size_t size,
               multilane_flush_done done, void *context)
{
    const struct lane *lane = registration->lane;
    return lane->extension->flush(lane->btl, lane->endpoint, registration->handle, address, size,
                                  done, context);
}

void lane_deregister(struct registration *registration)
{
    if (registration->lane && registration->handle)
        registration->lane->btl->btl_deregister_mem(registration->lane->btl, registration->handle);
    registration->lane = NULL;
    registration->handle = NULL;
}

mca_btl_base_module_t *btl_next(const mca_btl_base_module_t *at)
{
    mca_btl_base_selected_module_t *selected;
    bool is_behind = !at;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        if (is_behind)
            return selected->btl_module;
        is_behind = selected->btl_module == at;
    }
    return NULL;
}

uint32_t lane_number(const mca_btl_base_module_t *btl)
{
    uint32_t number = 0;
    for (const mca_btl_base_module_t *at = btl_next(NULL); at && at != btl && number < DRAIN_LANES;
         at = btl_next(at))
        number++;
    return number;
}

bool lane_is_to_drain(const mca_btl_base_module_t *btl)
{
    uint64_t wanted = own_page_drain();
    uint32_t number = OPAL_LIKELY(wanted == 0) ? DRAIN_LANES : lane_number(btl);
    return number < DRAIN_LANES && wanted >> number & 1;
}
