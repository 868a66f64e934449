/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans for classes of peers: attributes gathered, plans built, turned into routes. */
#include "plan/peer_class.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lane/waiting.h"
#include "plan/costs.h"
#include "common/memory/driver.h"
#include "base/multilane.h"
#include "base/parameters.h"

void planned_free(struct planned *planned)
{
    while (planned) {
        struct planned *before = planned->before;
        plan_free(planned->plan);
        free(planned);
        planned = before;
    }
}

const struct route *class_route_next(const struct peer_class *class, enum class_buffer buffer,
                                     const struct route *at)
{
    const struct planned *planned = class_planned(class, buffer);
    for (; planned; planned = planned->before) {
        const struct route *first = planned->routes, *end = first + planned->plan->entry_count;
        if (!at)
            return first;
        if (at >= first && at < end) {
            if (++at < end)
                return at;
            at = NULL;
        }
    }
    return at ? at->next : atomic_load_explicit(&class->tried[buffer], memory_order_acquire);
}

static void tried_free(struct route *route)
{
    while (route) {
        struct route *next = route->next;
        free(route);
        route = next;
    }
}

static void class_free(struct peer_class *class)
{
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        planned_free(class_planned(class, (enum class_buffer) i));
        tried_free(atomic_load_explicit(&class->tried[i], memory_order_relaxed));
    }
    while (class->moves) {
        struct plan_move *move = class->moves;
        class->moves = move->next;
        free(move);
    }
    free(class->lanes);
    free(class->mixed);
    free(class->observed);
    free(class->btls);
    free(class->flags);
    free(class);
}

/* Lanes are equal when the model is given the same of them: two peers may differ in what one BTL
 * can do toward them. */
static bool class_equals(const struct peer_class *one, const struct peer_class *other)
{
    size_t count = (size_t) class_lanes_described(one);
    return one->lane_count == other->lane_count && one->placement == other->placement &&
           one->has_device_lane == other->has_device_lane &&
           memcmp(&one->device_copy, &other->device_copy, sizeof(one->device_copy)) == 0 &&
           memcmp(one->btls, other->btls, count * sizeof(*one->btls)) == 0 &&
           memcmp(one->flags, other->flags, count * sizeof(*one->flags)) == 0 &&
           memcmp(one->lanes, other->lanes, count * sizeof(*one->lanes)) == 0;
}

const char *class_lane_name(const struct lane *lane)
{
    const struct peer_class *class = peer_class_now(lane->peer);
    return class && lane->index < class->lane_count ? class->lanes[lane->index].name
                                                    : lane_name(lane);
}

/* --- plans ------------------------------------------------------------------------------------ */

/* The protocols that messages of such memory do not go by. */
static uint32_t protocols_without(const struct peer_class *class, enum class_buffer buffer)
{
    bool is_device = buffer >= CLASS_DEVICE && buffer != CLASS_TO_DEVICE;
    uint32_t without = 0;
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
        const struct protocol *protocol = protocols.of_model[i];
        if ((is_device && protocol->host_only) ||
            (is_device && class->has_device_lane && protocol->puts) ||
            (class_is_received(buffer) && !protocol->method))
            without |= 1u << i;
    }
    return without;
}

static void plan_input_of_device(const struct peer_class *class, enum class_buffer buffer,
                                 struct plan_input *input)
{
    input->lane_count += class->has_device_lane;
    input->around.copy[1] = class->device_copy;
    input->is_announced = class_is_received(buffer);
    if (class_is_received(buffer) && class->mixed)
        input->lanes = class->mixed;
    if (buffer == CLASS_TO_DEVICE)
        input->around.receiver = MODEL_MEMORY_CUDA;
    else
        input->around.buffer.memory = MODEL_MEMORY_CUDA;
    if (buffer == CLASS_FROM_DEVICE)
        input->around.receiver = MODEL_MEMORY_HOST;
}

void class_surroundings(struct model_surroundings *around)
{
    around->bias = parameters.bias;
    around->header_bytes = WIRE_EAGER_HEADER_MAX;
    around->registration_cached = opal_leave_pinned > 0; /* -1: not known yet */
    model_bound_eager(around, MODEL_BOUND_CREDIT, flow_eager_max(parameters.unexpected_max_bytes));
    if (parameters.eager_max_bytes)
        model_bound_eager(around, MODEL_BOUND_EAGER_MAX, parameters.eager_max_bytes);
}

static bool is_packed(enum class_buffer buffer)
{
    return buffer == CLASS_PACKED || buffer == CLASS_SYNC_PACKED || buffer == CLASS_STREAM_PACKED ||
           buffer == CLASS_DEVICE_PACKED;
}

/* The kind of buffer whose messages are timed for such ones. */
static enum class_buffer timed_as(enum class_buffer buffer)
{
    return buffer == CLASS_SYNC || buffer == CLASS_LEAVING ? CLASS_CONTIGUOUS
           : buffer == CLASS_SYNC_PACKED                   ? CLASS_PACKED
                                                           : buffer;
}

void class_plan_input(const struct peer_class *class, enum class_buffer buffer,
                      struct plan_input *input)
{
    plan_input_init(input);
    input->lanes = class->lanes;
    input->lane_count = class->lane_count;
    class_surroundings(&input->around);
    input->around.buffer.pieces = is_packed(buffer) ? 0 : 1;
    if (buffer == CLASS_SYNC || buffer == CLASS_SYNC_PACKED)
        input->around.operation = MODEL_OPERATION_SEND_SYNC;
    input->around.sender_leaves = buffer == CLASS_LEAVING;
    if (class_is_stream(buffer)) {
        input->view = COST_OF_STREAM;
        input->around.wire_is_processors = class->placement != PROFILE_HOST;
    }
    input->learned = atomic_load_explicit(&class->learned[timed_as(buffer)], memory_order_acquire);
    input->around.groups = (struct model_groups){&class->group, 1};
    input->overrides = parameters.overrides;
    input->override_count = parameters.override_count;
    input->most_eager_lanes = (uint32_t) parameters.eager_lanes;
    input->most_rndv_lanes = (uint32_t) parameters.rndv_lanes;
    input->without = protocols_without(class, buffer);
    if (buffer >= CLASS_DEVICE)
        plan_input_of_device(class, buffer, input);
}

bool class_shows(const struct peer_class *class, enum class_buffer buffer)
{
    const struct planned *planned = class_planned(class, buffer);
    bool shows = planned && (buffer == CLASS_CONTIGUOUS || buffer == CLASS_PACKED ||
                             buffer == CLASS_DEVICE || buffer == CLASS_DEVICE_PACKED);
    for (uint32_t i = 0; planned && i < planned->plan->entry_count; i++)
        shows |= counter_read(&planned->routes[i].messages) > 0;
    return shows;
}

/* Says once what the user forced and cannot have. */
static void say_note(const struct plan *plan)
{
    static bool was_said;
    if (plan->note[0] && !was_said)
        opal_output(0, "multilane: %s", plan->note);
    was_said = was_said || plan->note[0];
}

static bool plan_stripes(const struct plan *plan)
{
    bool stripes = false;
    for (uint32_t i = 0; i < plan->entry_count; i++)
        stripes |= plan->entries[i].lane_count > 1;
    return stripes;
}

bool class_learns(const struct peer_class *class)
{
    return parameters.learn && !class->is_forced &&
           (class->placement == PROFILE_HOST || !waiting_shares());
}

/* Does this process write a report of how messages went? */
bool reports_are_written(void)
{
    return parameters.explain == 2 || (parameters.explain == 1 && multilane.me.vpid == 0);
}

/* Messages from here on are timed where something is learned of them: for shorter ones the looking
 * alone would be a part of their time. */
#define TIMED_FROM_BYTES ((size_t) 4096)

static size_t untimed_below(const struct plan *plan)
{
    if (reports_are_written())
        return 0;
    if (!parameters.learn || plan->largest[0] < TIMED_FROM_BYTES)
        return (size_t) plan->largest[0] + (plan->largest[0] < SIZE_MAX);
    return TIMED_FROM_BYTES;
}

static void route_set(struct route *route, const struct plan_entry *entry, enum class_buffer buffer)
{
    route->largest = entry->largest_bytes;
    route->protocol = protocols.of_model[entry->protocol_index];
    route->post = route->protocol->post;
    route->eager_mask = route->protocol->method ? 0 : SIZE_MAX;
    route->lane_count = (uint8_t) entry->lane_count;
    route->in_place = entry->chooses && !entry->copies;
    route->buffer = (uint8_t) buffer;
    route->entry = entry;
    memcpy(route->lanes, entry->lanes, sizeof(route->lanes));
}

struct planned *planned_of_plan(struct plan *plan, enum class_buffer buffer)
{
    struct planned *planned =
        plan ? calloc(1, sizeof(*planned) + plan->entry_count * sizeof(planned->routes[0])) : NULL;
    if (!planned) {
        plan_free(plan);
        return NULL;
    }
    planned->plan = plan;
    planned->routes[0].untimed = untimed_below(plan);
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        route_set(&planned->routes[i], &plan->entries[i], buffer);
        planned->routes[i].counted = plan_stripes(plan);
    }
    return planned;
}

struct route *route_of_entry(const struct peer_class *class, const struct plan_entry *entry,
                             enum class_buffer buffer)
{
    struct route *route = calloc(1, sizeof(*route) + sizeof(*entry));
    struct plan_entry *own = (struct plan_entry *) (void *) (route + 1);
    if (!route)
        return NULL;
    *own = *entry;
    route_set(route, own, buffer);
    route->largest = SIZE_MAX;
    route->counted = plan_stripes(class_planned(class, buffer)->plan) || entry->lane_count > 1;
    return route;
}

/* The lane of device memory carries no RTS, so what goes over it may be done in another way. */
static void routes_use_device_lane(const struct peer_class *class, struct planned *planned)
{
    for (uint32_t i = 0; i < planned->plan->entry_count; i++) {
        struct route *route = &planned->routes[i];
        if (class->has_device_lane && route->protocol->over_device_lane &&
            route->lanes[0] == class->lane_count)
            route->protocol = route->protocol->over_device_lane;
    }
}

/* Where a lane can get, the receiver may be asked to move what a sender that leaves will not; where
 * one has words for offers, it may in any case (request/pieces.h). */
static bool class_can_be_left(const struct peer_class *class)
{
    const uint32_t offers = MODEL_CAN_CONTROL | MODEL_CAN_COPY;
    bool can_get = false;
    for (int i = 0; i < class->lane_count; i++) {
        if ((class->lanes[i].can & offers) == offers)
            return false;
        can_get |=
            (class->lanes[i].can & MODEL_CAN_GET) && class->lanes[i].cost[MODEL_BY_GET].range_count;
    }
    return can_get;
}

static bool class_has_plan(const struct peer_class *class, enum class_buffer buffer)
{
    if (buffer >= CLASS_DEVICE)
        return driver_is_loaded;
    return buffer != CLASS_LEAVING || class_can_be_left(class);
}

struct planned *class_plan(const struct peer_class *class, enum class_buffer buffer, double stay)
{
    struct plan_input input;
    struct error_text error;
    class_plan_input(class, buffer, &input);
    input.stay = stay;
    struct plan *plan = plan_build(&input, &error);
    if (!plan) {
        opal_output(0, "multilane: %s.", error.text);
        return NULL;
    }
    if (buffer == CLASS_CONTIGUOUS) /* elsewhere what was forced may well be impossible */
        say_note(plan);
    struct planned *planned = planned_of_plan(plan, buffer);
    if (planned && buffer >= CLASS_DEVICE)
        routes_use_device_lane(class, planned);
    return planned;
}

void class_set_plan(struct peer_class *class, enum class_buffer buffer, struct planned *planned)
{
    atomic_store_explicit(&class->planned[buffer], planned, memory_order_release);
}

static uint8_t control_lane(const struct peer_class *class)
{
    uint8_t best = 0;
    double best_s = INFINITY;
    for (uint8_t i = 0; i < class->lane_count; i++) {
        const struct model_lane *lane = &class->lanes[i];
        if (!(lane->can & MODEL_CAN_SEND) || !lane->cost[MODEL_BY_SEND].range_count)
            continue;
        const struct model_lane_range *range = &lane->cost[MODEL_BY_SEND].ranges[0];
        double lane_s = range->latency_s + range->overhead_send_s + range->overhead_receive_s;
        if (lane_s < best_s || (lane_s == best_s && lane->distance < class->lanes[best].distance)) {
            best = i;
            best_s = lane_s;
        }
    }
    return best;
}

/* The lane of device memory, by the lines of another pair of ends. */
static bool mixed_describe(struct peer_class *class)
{
    size_t count = (size_t) class_lanes_described(class);
    class->mixed = calloc(count, sizeof(*class->mixed));
    if (!class->mixed)
        return false;
    memcpy(class->mixed, class->lanes, count * sizeof(*class->mixed));
    device_costs_mix(&class->mixed[count - 1]);
    return true;
}

/* What the model is given of the peer's lanes. */
static struct peer_class *class_describe(const struct peer *peer)
{
    struct peer_class *class = calloc(1, sizeof(*class));
    if (!class)
        return NULL;
    class->lane_count = peer_lane_count(peer);
    class->has_device_lane = peer->device_lane && class->lane_count < MODEL_LANES_MAX;
    if (driver_is_loaded)
        class->device_copy = device_costs_copy();
    class->placement = attributes_placement(peer);
    class->group = (struct model_group){
        PROFILE_GROUP, used_profile() ? profile_together(used_profile(), class->placement) : 0};
    size_t count = (size_t) class_lanes_described(class);
    class->btls = calloc(count, sizeof(*class->btls));
    class->flags = calloc(count, sizeof(*class->flags));
    class->lanes = calloc(count, sizeof(*class->lanes));
    class->observed = calloc(count, sizeof(*class->observed));
    bool good = class->btls && class->flags && class->lanes && class->observed;
    for (int i = 0; good && i < class->lane_count; i++) {
        const struct lane *lane = &peer->lanes[i];
        class->btls[i] = lane->btl;
        class->flags[i] = lane_is_lost(lane) ? 0 : lane->flags;
        good = attributes_of_lane(lane, profile_group(&class->group, class->placement),
                                  &class->lanes[i]);
        if (lane_is_lost(lane)) /* it keeps its place, and no protocol is allowed to use it */
            class->lanes[i].can = 0;
        /* A message has one way to device memory: where there is a lane for just that, no other. */
        if (!lane->takes_device || class->has_device_lane)
            class->lanes[i].reach &= ~(uint32_t) MODEL_MEMORY_CUDA;
    }
    if (good && class->has_device_lane) {
        class->btls[class->lane_count] = peer->device_lane->btl;
        class->flags[class->lane_count] = peer->device_lane->flags;
        good = attributes_of_lane(peer->device_lane, 0, &class->lanes[class->lane_count]) &&
               mixed_describe(class);
    }
    for (int i = 0; good && i < class_lanes_described(class); i++)
        class->is_forced =
            class->is_forced || model_lane_has_source(&class->lanes[i], MODEL_SOURCE_USER);
    if (good)
        return class;
    class_free(class);
    return NULL;
}

static bool class_plans(struct peer_class *class)
{
    class->control = control_lane(class);
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        enum class_buffer buffer = (enum class_buffer) i;
        if (!class_has_plan(class, buffer))
            continue;
        struct planned *planned = class_plan(class, buffer, 0);
        if (!planned)
            return false;
        class_set_plan(class, buffer, planned);
    }
    return true;
}

/* All that a class depends on and that differs between peers with one lane of ours and with ends
 * like this process's. */
struct class_key {
    enum profile_placement placement;
    uint32_t flags;
    const mca_btl_base_module_t *btl;
    mca_btl_base_module_sendi_fn_t sendi;
    size_t largest;
    bool is_self, in_place, takes_device;
    struct multilane_lane_attributes declared;
    float round_trip_s;
    uint32_t device_changes;
};

/* The class found last. To describe a peer takes longer than all else of a contact, and most peers
 * of a node are alike. Under multilane.lock. */
static struct {
    struct class_key key;
    struct peer_class *class;
} last;

/* False: the peer is not that simple. */
static bool key_of_peer(const struct peer *peer, struct class_key *key)
{
    const struct lane *lane = &peer->lanes[0];
    if (peer_lane_count(peer) != 1 || peer->ends || peer->device_lane || !lane->extension ||
        lane_is_lost(lane))
        return false;
    memset(key, 0, sizeof(*key)); /* it is compared with its gaps */
    key->placement = attributes_placement(peer);
    key->flags = lane->flags;
    key->btl = lane->btl;
    key->sendi = lane->sendi;
    key->largest = lane->largest;
    key->is_self = peer->is_self;
    key->in_place = lane->in_place;
    key->takes_device = lane->takes_device;
    key->round_trip_s = lane->round_trip_s;
    key->device_changes = device_costs_changes();
    lane->extension->attributes(lane->btl, lane->endpoint, &key->declared);
    return true;
}

struct peer_class *class_of_peer(const struct peer *peer)
{
    struct class_key key;
    bool is_simple = key_of_peer(peer, &key);
    if (is_simple && last.class && memcmp(&key, &last.key, sizeof(key)) == 0) {
        last.class->peers++;
        return last.class;
    }
    struct peer_class *class = classes_first(), *fresh = class_describe(peer);
    if (!fresh)
        return NULL;
    while (class && !class_equals(class, fresh))
        class = class->next;
    if (class || !class_plans(fresh)) {
        class_free(fresh);
    } else {
        class = fresh;
        class->next = classes_first();
        /* Release, against classes_first. */
        atomic_store_explicit(&multilane.peer_classes, class, memory_order_release);
    }
    if (class)
        class->peers++;
    if (class && is_simple) {
        memcpy(&last.key, &key, sizeof(key));
        last.class = class;
    }
    return class;
}

void classes_fini(void)
{
    last.class = NULL;
    struct peer_class *class = classes_first();
    while (class) {
        struct peer_class *next = class->next;
        class_free(class);
        class = next;
    }
    atomic_init(&multilane.peer_classes, NULL);
    nics_fini();
}
