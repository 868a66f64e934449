/* SPDX-License-Identifier: BSD-3-Clause */
/* Forces protocols and lanes at run time, for programs that measure: gives a class of peers
 * other plans. */

#include <stdio.h>
#include <string.h>

#include "common/compat/version.h"
#include "base/multilane.h"
#include "multilane/measure.h"
#include "contact/contact.h"
#include "liveness/liveness.h"
#include "plan/learning.h"
#include "plan/peer_class.h"
#include "report/report.h"

static struct peer *peer_of_rank(int rank)
{
    opal_process_name_t name = {.jobid = multilane.me.jobid, .vpid = (opal_vpid_t) rank};
    struct peer *peer = rank < 0 || !multilane.enabled ? NULL : peer_contact(name, NULL);
    return peer && peer_is_reachable(peer) ? peer : NULL;
}

/* Takes the place of the plan for such messages. With the component's lock held. */
static bool plan_force(struct peer_class *class, enum class_buffer buffer, int protocol,
                       uint32_t mask)
{
    static struct model_lane lanes[MODEL_LANES_MAX];
    struct plan_override override = {(uint32_t) protocol, 0, UINT64_MAX};
    struct plan_input input;
    class_plan_input(class, buffer, &input);
    memcpy(lanes, class->lanes, class->lane_count * sizeof(*lanes));
    for (int i = 0; mask && i < class->lane_count; i++)
        if (!(mask >> i & 1))
            lanes[i].use = 0;
    input.lanes = lanes;
    if (protocol >= 0) {
        input.overrides = &override;
        input.override_count = 1;
    }
    struct planned *planned = planned_of_plan(plan_build(&input, NULL), buffer);
    if (!planned)
        return false;
    if (protocol != MULTILANE_MEASURE_UNTIMED)
        planned->routes[0].untimed = 1;
    planned->before = class_planned(class, buffer);
    class_set_plan(class, buffer, planned);
    return true;
}

/* What the program sends is contiguous, in host memory, one message after the other. */
static int measure_force(int rank, int protocol, uint32_t mask)
{
    struct peer *peer = peer_of_rank(rank);
    if (!peer || protocol >= MODEL_PROTOCOLS)
        return OMPI_ERR_BAD_PARAM;
    multilane_lock();
    struct peer_class *class = peer_class_now(peer);
    bool is_timed = protocol != MULTILANE_MEASURE_UNTIMED;
    class->is_measured = is_timed;
    class->is_forced = true;
    bool is_forced = plan_force(class, CLASS_CONTIGUOUS, protocol, mask) &&
                     (is_timed || plan_force(class, CLASS_STREAM, protocol, mask));
    learning_forget(class);
    multilane_unlock();
    return is_forced ? OMPI_SUCCESS : OMPI_ERR_NOT_SUPPORTED;
}

static int measure_lanes(int rank, struct multilane_lanes *out)
{
    struct peer *peer = peer_of_rank(rank);
    if (!peer)
        return OMPI_ERR_UNREACH;
    const struct peer_class *class = peer_class_now(peer);
    out->count = class->lane_count;
    out->placement = class->placement;
    memcpy(out->lanes, class->lanes, out->count * sizeof(*out->lanes));
    return OMPI_SUCCESS;
}

static uint64_t bytes_alone(const struct peer_class *class, enum class_buffer buffer, uint32_t lane)
{
    uint64_t bytes = 0;
    for (const struct route *route = class_route_next(class, buffer, NULL); route;
         route = class_route_next(class, buffer, route))
        if (route->lane_count == 1 && route->lanes[0] == lane)
            bytes += counter_read(&route->bytes);
    return bytes;
}

static void why_copy(const struct lane *lane, char *why, size_t room)
{
    struct liveness *liveness = liveness_find(lane->peer);
    const char *text = "";
    uint32_t kind;
    if (liveness)
        OPAL_THREAD_LOCK(&liveness->lock);
    snprintf(why, room, "%s", lane_trouble(lane, &kind, &text) ? text : "");
    if (liveness)
        OPAL_THREAD_UNLOCK(&liveness->lock);
}

static int measure_state(int rank, uint32_t index, uint64_t *bytes, char *why, size_t room)
{
    struct peer *peer = peer_of_rank(rank);
    if (!peer || index >= peer_lane_count(peer))
        return OMPI_ERR_BAD_PARAM;
    const struct lane *lane = &peer->lanes[index];
    multilane_lock();
    const struct peer_class *class = peer_class_now(peer);
    *bytes = bytes_alone(class, CLASS_CONTIGUOUS, index) + bytes_alone(class, CLASS_STREAM, index);
    multilane_unlock();
    why_copy(lane, why, room);
    if (lane_state(lane) == LANE_UNPROVEN)
        return MULTILANE_MEASURE_TRIED;
    return lane_is_up(lane) && !lane_is_lost(lane) ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

/* How a message of so many bytes goes to that rank; NULL where nothing leads there. */
static const struct plan_entry *measure_entry(int rank, uint64_t bytes,
                                              const struct peer_class **class)
{
    struct peer *peer = peer_of_rank(rank);
    if (!peer)
        return NULL;
    *class = peer_class_now(peer);
    return plan_lookup(class_planned(*class, CLASS_CONTIGUOUS)->plan, bytes);
}

static int measure_protocol(int rank, uint64_t bytes)
{
    const struct peer_class *class;
    const struct plan_entry *entry = measure_entry(rank, bytes, &class);
    return entry ? (int) entry->protocol_index : OMPI_ERR_UNREACH;
}

static int measure_times(int rank, uint64_t bytes, struct multilane_times *out)
{
    const struct peer_class *class;
    const struct plan_entry *entry = measure_entry(rank, bytes, &class);
    if (!entry)
        return OMPI_ERR_UNREACH;
    double equation_s = learning_equation_s(class, CLASS_CONTIGUOUS, entry, bytes);
    *out = (struct multilane_times){.messages = 0};
    OPAL_THREAD_LOCK(&learning_lock);
    const struct learning_range *range =
        learning_range_of(class, CLASS_CONTIGUOUS, plan_entry_key(entry), learned_bucket(bytes));
    if (range)
        *out = (struct multilane_times){range->taken, equation_s * learning_median(range),
                                        equation_s * learning_spread(range)};
    OPAL_THREAD_UNLOCK(&learning_lock);
    return OMPI_SUCCESS;
}

static int measure_registration(int rank, uint32_t index, void *address, size_t bytes)
{
    struct peer *peer = peer_of_rank(rank);
    struct registration registration;
    if (!peer || index >= peer_lane_count(peer))
        return OMPI_ERR_BAD_PARAM;
    int rc = lane_register(&peer->lanes[index], address, bytes, MCA_BTL_REG_FLAG_REMOTE_READ,
                           &registration);
    if (rc == OMPI_SUCCESS)
        lane_deregister(&registration);
    return rc;
}

__attribute__((visibility("default")))
const struct multilane_measure mca_pml_multilane_measure_v8 = {
    .version = MULTILANE_MEASURE_VERSION,
    .lane_bytes = sizeof(struct model_lane),
    .open_mpi = version_built,
    .lanes = measure_lanes,
    .force = measure_force,
    .state = measure_state,
    .protocol = measure_protocol,
    .times = measure_times,
    .surroundings = class_surroundings,
    .registration = measure_registration,
};
