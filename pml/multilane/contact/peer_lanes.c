/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a peer: taken from the BML, lost, found again; and the plan that follows.
 *
 * Requests may keep pointers to lanes and to their route: the array of lanes never moves, a lane
 * keeps its index, and classes with their routes live until the component closes. A change
 * affects only later messages. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/btl.h"
#include "common/compat/named.h"
#include "common/lane/declared.h"
#include "common/memory/driver.h"
#include "common/model/number.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "base/own_page.h"
#include "lane/lane.h"
#include "lane/summed.h"
#include "plan/costs.h"
#include "plan/learning.h"
#include "contact/peer_lanes.h"
#include "plan/peer_class.h"
#include "plan/stripe.h"

void lanes_publish(const void *record, size_t length)
{
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        const struct multilane_extension *extension = lane_extension_of(btl);
        if (extension && extension->publish)
            extension->publish(btl, record, length);
    }
}

size_t lanes_published_read(ompi_proc_t *proc, void *record, size_t room)
{
    mca_bml_base_endpoint_t *endpoint = mca_bml_base_get_endpoint(proc);
    size_t count = !endpoint ? 0 : mca_bml_base_btl_array_get_size(&endpoint->btl_send);
    size_t length = 0;

    for (size_t i = 0; i < count && length == 0; i++) {
        mca_bml_base_btl_t *lane = mca_bml_base_btl_array_get_index(&endpoint->btl_send, i);
        const struct multilane_extension *extension = lane_extension_of(lane->btl);
        if (extension && extension->published_read)
            length = extension->published_read(lane->btl, lane->btl_endpoint, record, room);
    }
    return length;
}

/* Of all that the BML knows. */
static size_t most_links(mca_bml_base_btl_array_t *all)
{
    size_t most = 0;
    for (size_t i = 0; i < mca_bml_base_btl_array_get_size(all); i++) {
        const mca_bml_base_btl_t *entry = mca_bml_base_btl_array_get_index(all, i);
        const struct multilane_extension *extension = lane_extension_of(entry->btl);
        if (extension && extension->links_most)
            most += extension->links_most(entry->btl, entry->btl_endpoint);
    }
    return most;
}

/* At most one lane per module and their further connections, and as many as a plan knows. */
static uint8_t most_lanes(mca_bml_base_endpoint_t *endpoint)
{
    size_t modules = opal_list_get_size(&mca_btl_base_modules_initialized);
    size_t most = modules + most_links(&endpoint->btl_send);
    return (uint8_t) (most < MODEL_LANES_MAX ? most : MODEL_LANES_MAX);
}

/* May it break while the peer lives, and give back what it has not delivered? That is for another
 * lane, or for itself once it is made anew. */
static bool lane_can_return(const struct lane *lane, bool is_alone)
{
    return lane->extension && lane->extension->return_to && lane_can(lane, MULTILANE_CAN_BREAK) &&
           lane_can(lane, MULTILANE_CAN_FENCE) &&
           (!is_alone || lane_can(lane, MULTILANE_CAN_RENEW));
}

/* Does it take what was cut for the lanes before it, which may return it? One that comes late may
 * not, and so carries nothing: else it would be the last one left, and those messages would wait
 * for ever. */
static bool returned_fit(const struct lane *late)
{
    for (uint8_t i = 0; i < late->index; i++) {
        const struct lane *lane = &late->peer->lanes[i];
        if (lane->returns && late->largest < lane->largest)
            return false;
    }
    return true;
}

static uint32_t not_offered(const struct lane *lane)
{
    return returned_fit(lane) ? 0 : MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_PUT;
}

/* Decides, once per lane, whether it returns messages; each must fit every other lane. Those from
 * `first` on are new. One of sock that was alone stays as it is when another comes: what it has
 * taken was not kept, so its end is still the peer's. */
static void lanes_return(struct peer *peer, uint8_t first, uint8_t count)
{
    size_t largest = SIZE_MAX;
    int senders = 0;
    for (int i = 0; i < count; i++) {
        const struct lane *lane = &peer->lanes[i];
        senders += lane_sends(lane);
        if (lane_sends(lane) && lane->largest < largest)
            largest = lane->largest;
    }
    if (!parameters.failover)
        return;
    for (int i = first; i < count; i++) {
        struct lane *lane = &peer->lanes[i];
        if (!lane_sends(lane) || !lane_can_return(lane, senders == 1))
            continue;
        lane->largest = largest;
        lane_return(lane);
        if (!lane_is_proven(lane, NULL, 0)) /* before others see the lane */
            atomic_init(&lane->health.state, LANE_UNPROVEN);
    }
}

static bool takes_device(const struct lane *lane)
{
    return driver_is_loaded && lane->extension && lane->extension->flush &&
           lane_can(lane, MULTILANE_CAN_DEVICE_MEMORY);
}

/* Is it among the first `count`? What others see of one does not change. */
static bool lane_is_known(struct peer *peer, uint8_t count, const mca_bml_base_btl_t *bml_btl)
{
    uint8_t i = 0;
    while (i < count && peer->lanes[i].btl != bml_btl->btl)
        i++;
    if (i < count && i >= peer_lane_count(peer))
        peer->lanes[i].flags |= bml_btl->btl_flags & ~not_offered(&peer->lanes[i]);
    return i < count;
}

/* Does the user want sums of what goes over its lanes? */
static bool is_to_sum(mca_btl_base_module_t *btl)
{
    struct model_lane lane = {.verify = false};
    if (OPAL_LIKELY(parameters.sums == SUMS_OF_NONE))
        return false;
    attributes_of_user_alone(btl, &lane);
    return parameters.sums == SUMS_OF_ALL || lane.verify;
}

/* Copies the BML's entry: its arrays shift when a lane is removed. */
static void lane_add(struct peer *peer, uint8_t *count, const mca_bml_base_btl_t *bml_btl,
                     mca_btl_base_module_t *listed)
{
    const mca_btl_base_module_t *btl = bml_btl->btl;
    if (lane_is_known(peer, *count, bml_btl) || *count == peer->lane_room)
        return;
    struct lane *lane = &peer->lanes[*count];
    const struct multilane_extension *extension = lane_extension_of(btl);
    bool is_exact = extension || stock_btl_sendi_leaves(lane_name_of(btl));
    mca_btl_base_module_sendi_fn_t sendi = is_exact ? btl->btl_sendi : NULL;
    *lane = (struct lane){.btl = bml_btl->btl,
                          .endpoint = bml_btl->btl_endpoint,
                          .listed = listed,
                          .peer = peer,
                          .extension = extension,
                          .sendi = sendi,
                          .alloc = btl->btl_alloc,
                          .prepare = btl->btl_prepare_src,
                          .send = btl->btl_send,
                          .reserve = extension ? extension->reserve : NULL,
                          .copy = memcpy,
                          .flags = bml_btl->btl_flags,
                          .index = (*count)++,
                          .out = lane_is_to_drain(listed) ? LANE_OUT_DRAINED : 0,
                          .in_place = extension && extension->prepare_in_place,
                          .largest = btl->btl_max_send_size};
    if (is_to_sum(bml_btl->btl))
        lane_sum(lane);
    lane->flags &= ~not_offered(lane);
    lane->takes_device = takes_device(lane);
    lane->keeps_order = extension && lane_can_put(lane) && lane_can(lane, MULTILANE_CAN_ORDER);
}

/* Beside btl/shm nothing is gained by Open MPI's shared memory, which would be used for what it
 * says that it costs, nor by loopback: they are no lanes unless the job names them. */
static bool is_replaced(const char *name, mca_bml_base_btl_array_t *all)
{
    static const char *const replaced[] = {"vader", "sm", "sock"};
    bool is_one = false, has_shm = false;
    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
        is_one |= strcmp(name, replaced[i]) == 0;
    for (size_t i = 0; is_one && i < mca_bml_base_btl_array_get_size(all); i++)
        has_shm |= strcmp(lane_name_of(mca_bml_base_btl_array_get_index(all, i)->btl), "shm") == 0;
    return has_shm && !named_btl_is_asked_for(name);
}

void lanes_replaced_rest(ompi_proc_t **procs, size_t count)
{
    opal_progress_callback_t rests = NULL;
    for (size_t i = 0; i < count; i++) {
        mca_bml_base_endpoint_t *endpoint = mca_bml_base_get_endpoint(procs[i]);
        size_t size = endpoint ? mca_bml_base_btl_array_get_size(&endpoint->btl_send) : 0;
        for (size_t at = 0; at < size; at++) {
            const mca_btl_base_module_t *btl =
                mca_bml_base_btl_array_get_index(&endpoint->btl_send, at)->btl;
            if (strcmp(lane_name_of(btl), "vader") != 0 && strcmp(lane_name_of(btl), "sm") != 0)
                continue;
            if (!is_replaced(lane_name_of(btl), &endpoint->btl_send))
                return;
            rests = btl->btl_component->btl_progress;
        }
    }
    if (rests)
        opal_progress_register_lp(rests);
}

/* As it is known of one of the first `count` lanes. */
static float round_trip_of(const struct peer *peer, uint8_t count, const mca_btl_base_module_t *btl)
{
    for (uint8_t i = 0; i < count; i++)
        if (peer->lanes[i].btl == btl)
            return peer->lanes[i].round_trip_s;
    return 0;
}

/* The lanes that its BTL has made beside this one. */
static void links_add(struct peer *peer, uint8_t *count, const mca_bml_base_btl_t *first)
{
    const struct multilane_extension *extension = lane_extension_of(first->btl);
    mca_bml_base_btl_t next = *first;
    if (!extension || !extension->links_next)
        return;
    atomic_store_explicit(&peer->link_changes, extension->link_changes, memory_order_relaxed);
    for (uint32_t nth = 1;
         extension->links_next(first->btl, first->btl_endpoint, nth, &next.btl, &next.btl_endpoint);
         nth++) {
        uint8_t before = *count;
        lane_add(peer, count, &next, first->btl);
        if (*count > before)
            peer->lanes[before].round_trip_s = round_trip_of(peer, before, first->btl);
    }
}

static void lanes_add(struct peer *peer, uint8_t *count, mca_bml_base_btl_array_t *array,
                      mca_bml_base_btl_array_t *all)
{
    size_t size = mca_bml_base_btl_array_get_size(array);
    for (size_t i = 0; i < size; i++) {
        const mca_bml_base_btl_t *entry = mca_bml_base_btl_array_get_index(array, i);
        if (!is_replaced(lane_name_of(entry->btl), all))
            lane_add(peer, count, entry, entry->btl);
    }
}

/* Behind all others, for which there is room first. */
static void all_links_add(struct peer *peer, uint8_t *count, mca_bml_base_btl_array_t *all)
{
    for (size_t i = 0; i < mca_bml_base_btl_array_get_size(all); i++) {
        const mca_bml_base_btl_t *entry = mca_bml_base_btl_array_get_index(all, i);
        if (!is_replaced(lane_name_of(entry->btl), all))
            links_add(peer, count, entry);
    }
}

bool lanes_may_break(void)
{
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        const struct multilane_extension *extension = lane_extension_of(btl);
        if (extension && extension->return_to)
            return true;
    }
    return false;
}

/* Our BTL for device memory; null: not in this job. */
static mca_btl_base_module_t *device_btl(void)
{
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        if (!(btl->btl_flags & MCA_BTL_FLAGS_SEND) && (btl->btl_flags & MCA_BTL_FLAGS_GET) &&
            lane_extension_of(btl))
            return btl;
    }
    return NULL;
}

/* Makes the peer's lane of device memory, which BML r2 does not, as the BTL carries no messages.
 * Null: none, or it does not reach the peer. */
static struct lane *device_lane_new(struct peer *peer)
{
    mca_btl_base_module_t *btl = driver_is_loaded ? device_btl() : NULL;
    opal_proc_t *proc = &peer->proc->super;
    struct mca_btl_base_endpoint_t *endpoint = NULL;
    if (!btl || btl->btl_add_procs(btl, 1, &proc, &endpoint, NULL) != OPAL_SUCCESS || !endpoint)
        return NULL;
    /* A process that was forgotten may be contacted again. */
    struct lane *lane = peer->device_lane ? peer->device_lane : calloc(1, sizeof(*lane));
    if (lane)
        *lane = (struct lane){.btl = btl,
                              .endpoint = endpoint,
                              .peer = peer,
                              .extension = lane_extension_of(btl),
                              .flags = btl->btl_flags,
                              .takes_device = true};
    return lane;
}

/* What the user leaves to the lanes of an array, and their names. */
static uint32_t uses_add(mca_bml_base_btl_array_t *array, char *names, size_t room)
{
    size_t size = mca_bml_base_btl_array_get_size(array);
    uint32_t uses = 0;
    for (size_t i = 0; i < size; i++) {
        mca_btl_base_module_t *btl = mca_bml_base_btl_array_get_index(array, i)->btl;
        struct model_lane lane;
        if (is_replaced(lane_name_of(btl), array))
            continue;
        attributes_of_user_alone(btl, &lane);
        uses |= lane.use;
        text_more(names, room, "%s%s", names[0] ? ", " : "", lane.name);
    }
    return uses;
}

bool lanes_have_all_uses(ompi_proc_t *proc)
{
    mca_bml_base_endpoint_t *endpoint = mca_bml_base_get_endpoint(proc);
    if (OPAL_LIKELY(!parameters.lane_attr || !strstr(parameters.lane_attr, "use=")) || !endpoint)
        return true;
    char names[256] = "";
    uint32_t uses = uses_add(&endpoint->btl_send, names, sizeof(names));
    if (!uses || uses == MODEL_USE_BOTH)
        return true;
    bool is_rndv = uses == MODEL_USE_RNDV;
    opal_output(
        0,
        "multilane: pml_multilane_lane_attr says use=%s of all lanes to %s (%s), so none is left "
        "for messages %s a handshake; let one of them be use=both, or add to --mca btl another "
        "BTL that reaches it.",
        is_rndv ? "rndv" : "eager", compat_proc_name(&proc->super).text, names,
        is_rndv ? "without" : "with");
    return false;
}

static bool has_lane(const struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (!lane_is_lost(&peer->lanes[i]))
            return true;
    return false;
}

/* Plans for the lanes that the peer has now. False: they carry nothing, which is reported; the
 * plan stays. */
static bool peer_plan(struct peer *peer)
{
    struct peer_class *class = class_of_peer(peer);
    if (!class)
        return false;
    struct peer_class *before = peer_class_now(peer);
    learning_recall(class, before);
    if (before)
        before->peers--;
    for (int i = 0; i < peer_lane_count(peer); i++)
        stripe_init(&peer->lanes[i], &class->lanes[i]);
    /* Release, against peer_control_lane and peer_class_now: what they lead to is whole. */
    atomic_store_explicit(&peer->control, class->control, memory_order_release);
    atomic_store_explicit(&peer->class, class, memory_order_release);
    return true;
}

/* Does something speak against the lane, while another one is there? */
static bool is_avoided(const struct lane *lane)
{
    return lane_is_out(lane, lane_is_out(lane, LANE_OUT_REFUSED) ? LANE_OUT_DOWN : LANE_OUT_ANY);
}

/* Marks the peer's lanes that messages are not to go by: those that are down, and of the others
 * those that something speaks against, if there is one without. True: that changed something. */
static bool lanes_mark_lost(struct peer *peer)
{
    bool any = false, has_changed = false;
    for (int i = 0; i < peer_lane_count(peer); i++)
        any |= lane_sends(&peer->lanes[i]) && lane_is_up(&peer->lanes[i]) &&
               !is_avoided(&peer->lanes[i]);
    for (int i = 0; i < peer_lane_count(peer); i++) {
        struct lane *lane = &peer->lanes[i];
        bool is_lost = any ? is_avoided(lane) : lane_is_out(lane, LANE_OUT_DOWN);
        has_changed |= lane_is_lost(lane) != is_lost;
        atomic_store_explicit(&lane->lost, is_lost,
                              memory_order_relaxed); /* a hint to requests under way */
    }
    return has_changed;
}

bool peer_take_lanes(struct peer *peer)
{
    mca_bml_base_endpoint_t *endpoint = mca_bml_base_get_endpoint(peer->proc);
    uint8_t before = peer_lane_count(peer), count = before;
    if (!endpoint)
        return false;
    if (!peer->lanes) {
        peer->lane_room = most_lanes(endpoint);
        peer->lanes = calloc(peer->lane_room, sizeof(*peer->lanes));
        if (!peer->lanes)
            return false;
    }
    if (before == 0)
        peer->device_lane = device_lane_new(peer);
    lanes_add(peer, &count, &endpoint->btl_eager, &endpoint->btl_send);
    lanes_add(peer, &count, &endpoint->btl_send, &endpoint->btl_send);
    all_links_add(peer, &count, &endpoint->btl_send);
    lanes_return(peer, before, count);
    /* Release, against peer_lane_of: lanes are whole when they are found. */
    atomic_store_explicit(&peer->lane_count, count, memory_order_release);
    lanes_mark_lost(peer);
    bool is_planned = peer_class_now(peer) && count == before;
    return has_lane(peer) && (is_planned || peer_plan(peer));
}

/* Releases the lock, under which the peer had that class. */
static void plan_change_end(const struct peer *peer, const struct peer_class *before)
{
    multilane_unlock();
    if (before && peer_class_now(peer) != before)
        tool_event_raise(TOOL_PLAN_CHANGED, &peer->name, -1);
}

void peer_follow_devices(struct peer *peer)
{
    device_costs_look();
    uint32_t changes = device_costs_changes();
    if (OPAL_LIKELY(atomic_load_explicit(&peer->device_changes, memory_order_relaxed) == changes))
        return;
    multilane_lock();
    const struct peer_class *before = peer_class_now(peer);
    atomic_store_explicit(&peer->device_changes, changes, memory_order_relaxed);
    (void) peer_plan(peer); /* else the plan stays */
    plan_change_end(peer, before);
}

/* In steps of a factor of 1.4, so that peers at about the same distance share a plan. */
static float round_trip_step(double seconds)
{
    return seconds > 0 ? (float) exp2(round(2 * log2(seconds)) / 2) : 0;
}

/* Does one of them now know a round trip? *all: none is without that will know one. */
static bool round_trips_ask(const struct peer *peer, bool *all)
{
    bool is_new = false;
    *all = true;
    for (int i = 0; i < peer_lane_count(peer); i++) {
        struct lane *lane = &peer->lanes[i];
        if (!lane->extension || !lane->extension->round_trip_s || lane->round_trip_s > 0)
            continue;
        /* Of connections of one rail the same is known, so that none counts as better. */
        lane->round_trip_s =
            lane->listed != lane->btl
                ? round_trip_of(peer, lane->index, lane->listed)
                : round_trip_step(lane->extension->round_trip_s(lane->btl, lane->endpoint));
        is_new = is_new || lane->round_trip_s > 0;
        *all = *all && lane->round_trip_s > 0;
    }
    return is_new;
}

void peer_ask_network(struct peer *peer)
{
    bool all = true, is_far = attributes_placement(peer) == PROFILE_HOST;
    multilane_lock();
    const struct peer_class *before = peer_class_now(peer);
    if (before && is_far && round_trips_ask(peer, &all))
        (void) peer_plan(peer); /* else the plan stays */
    uint8_t asks = atomic_load_explicit(&peer->network_asks, memory_order_relaxed);
    atomic_store_explicit(&peer->network_asks, all ? NETWORK_ASKS_MOST : asks + 1,
                          memory_order_relaxed);
    plan_change_end(peer, before);
}

void peer_follow_links(struct peer *peer)
{
    multilane_lock();
    uint8_t before = peer_lane_count(peer);
    const struct peer_class *class = peer_class_now(peer);
    /* Acquire, against the BTL's release: what has changed is there to be asked for. */
    uint32_t changes = atomic_load_explicit(
        atomic_load_explicit(&peer->link_changes, memory_order_relaxed), memory_order_acquire);
    bool follows = peer_is_reachable(peer) && !peer->is_self && peer_take_lanes(peer);
    atomic_store_explicit(&peer->links_followed, changes, memory_order_relaxed);
    plan_change_end(peer, class);
    for (uint8_t i = before; follows && i < peer_lane_count(peer); i++)
        lane_events.unproven(&peer->lanes[i]); /* from now on it is looked at */
}

struct lane *peer_late_lane(struct peer *peer, const mca_btl_base_module_t *btl)
{
    multilane_lock();
    const struct peer_class *before = peer_class_now(peer);
    if (peer_is_reachable(peer) && !peer->is_self)
        peer_take_lanes(peer);
    plan_change_end(peer, before);
    return peer_lane_of(peer, btl);
}

static void out_set(struct lane *lane, unsigned causes, bool is_out)
{
    unsigned out = atomic_load_explicit(&lane->out, memory_order_relaxed);
    out = is_out ? out | causes : out & ~causes;
    atomic_store_explicit(&lane->out, (uint8_t) out, memory_order_relaxed); /* lane_is_out */
}

/* The lanes that carry though something speaks against them; bit i: lane i. */
static uint32_t refused_lanes(const struct peer *peer)
{
    uint32_t lanes = 0;
    for (int i = 0; i < peer_lane_count(peer); i++)
        lanes |= (uint32_t) lane_is_out(&peer->lanes[i], LANE_OUT_REFUSED) << i;
    return lanes;
}

static void refused_set(struct peer *peer, uint32_t lanes, bool is_refused)
{
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (lanes >> i & 1)
            out_set(&peer->lanes[i], LANE_OUT_REFUSED, is_refused);
}

bool lane_leave_out(struct lane *lane, enum lane_cause cause, bool is_out)
{
    struct peer *peer = lane->peer;
    multilane_lock();
    const struct peer_class *before = peer_class_now(peer);
    uint32_t refused = is_out && cause != LANE_OUT_DOWN ? UINT32_C(1) << lane->index : 0;
    if (!is_out) { /* it may do in place of those that carry in spite of all */
        refused = refused_lanes(peer);
        refused_set(peer, refused, false);
    }
    out_set(lane, cause, is_out);
    bool has_changed = lanes_mark_lost(peer);
    bool carries = has_lane(peer) && (!has_changed || peer_plan(peer));
    if (!carries && refused) { /* what is left makes no plan */
        refused_set(peer, refused, true);
        lanes_mark_lost(peer);
        carries = !is_out && has_lane(peer) && peer_plan(peer);
    }
    plan_change_end(peer, before);
    return carries;
}

/* Keeps the speeds that the peer's lanes have shown, for reports. */
static void speeds_add(const struct peer *peer)
{
    struct peer_class *class = peer_class_now(peer);
    for (int i = 0; class && i < class->lane_count && i < peer_lane_count(peer); i++)
        for (int copies = 0; copies < 2; copies++) {
            double bytes_s = stripe_observed_speed(&peer->lanes[i], copies);
            class->observed[i].bytes_s[copies] += bytes_s;
            class->observed[i].peers[copies] += bytes_s > 0;
        }
}

void peer_forget_lanes(struct peer *peer)
{
    peer_reach(peer, false);
    speeds_add(peer);
    /* Relaxed: the job ends. Reports use the class's count. The lanes stay as long as the peer:
     * what waits for one of them, or is registered with it, finds that out. */
    atomic_store_explicit(&peer->lane_count, 0, memory_order_relaxed);
}

bool lane_renew(struct lane *lane)
{
    opal_proc_t *proc = &lane->peer->proc->super;
    struct mca_btl_base_endpoint_t *endpoint = NULL;
    if (lane->btl->btl_add_procs(lane->btl, 1, &proc, &endpoint, NULL) != OPAL_SUCCESS ||
        endpoint != lane->endpoint)
        return false;
    /* The message that told its index may be lost with the old connection. Relaxed: see rma.c. */
    atomic_store_explicit(&lane->introduced, false, memory_order_relaxed);
    return true;
}
