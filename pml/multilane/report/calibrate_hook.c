/* SPDX-License-Identifier: BSD-3-Clause */
/* Forces protocols and lanes at run time, for programs that measure: gives a class of peers
 * other plans. The old plans are kept, because requests may still use their routes. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/version.h"
#include "base/multilane.h"
#include "multilane/measure.h"
#include "base/parameters.h"
#include "contact/contact.h"
#include "plan/learning.h"
#include "plan/peer_class.h"

/* Only plans of host memory are forced. */
#define FORCED_BUFFERS CLASS_DEVICE

/* The plans of one class for one choice of protocol and lanes. */
struct forced {
    struct forced *next;
    struct peer_class *class;
    int protocol;
    uint32_t mask;
    /* The class's lanes, with the others marked as unused; null: of the original plans. */
    struct model_lane *lanes;
    struct planned *planned[FORCED_BUFFERS];
};

/* The component's lock guards it. The first entry of a class holds its original plans. */
static struct forced *all_forced;

static struct peer *peer_of_rank(int rank)
{
    opal_process_name_t name = {.jobid = multilane.me.jobid, .vpid = (opal_vpid_t) rank};
    struct peer *peer = rank < 0 || !multilane.enabled ? NULL : peer_contact(name, NULL);
    return peer && peer_is_reachable(peer) ? peer : NULL;
}

static struct forced *find(const struct peer_class *class, int protocol, uint32_t mask)
{
    for (struct forced *forced = all_forced; forced; forced = forced->next)
        if (forced->class == class && forced->protocol == protocol && forced->mask == mask &&
            forced->lanes)
            return forced;
    return NULL;
}

static void list(struct forced *forced)
{
    forced->next = all_forced;
    all_forced = forced;
}

static void forced_free(struct forced *forced)
{
    for (int i = 0; i < FORCED_BUFFERS; i++)
        planned_free(forced->planned[i]);
    free(forced->lanes);
    free(forced);
}

/* Remembers the class's original plans, before they are first replaced. */
static bool remember(struct peer_class *class)
{
    if (class->is_measured)
        return true;
    struct forced *own = calloc(1, sizeof(*own));
    if (!own)
        return false;
    own->class = class;
    own->protocol = MULTILANE_MEASURE_PLANNED;
    class->is_measured = class->is_forced = true;
    for (int i = 0; i < FORCED_BUFFERS; i++)
        own->planned[i] = class_planned(class, (enum class_buffer) i);
    list(own);
    return true;
}

static bool build(struct forced *forced)
{
    const struct peer_class *class = forced->class;
    for (int i = 0; i < FORCED_BUFFERS; i++) {
        struct plan_override override = {(uint32_t) forced->protocol, 0, UINT64_MAX};
        struct plan_input input;
        struct model_error error;
        class_plan_input(class, (enum class_buffer) i, &input);
        input.lanes = forced->lanes;
        if (forced->protocol >= 0) {
            input.overrides = &override;
            input.override_count = 1;
        }
        forced->planned[i] = planned_of_plan(plan_build(&input, &error), (enum class_buffer) i);
        if (!forced->planned[i])
            return false;
        forced->planned[i]->routes[0].untimed = 1;
    }
    return true;
}

static struct forced *forced_new(struct peer_class *class, int protocol, uint32_t mask)
{
    struct forced *forced = calloc(1, sizeof(*forced));
    if (!forced)
        return NULL;
    *forced = (struct forced){.class = class, .protocol = protocol, .mask = mask};
    forced->lanes = calloc(class->lane_count, sizeof(*forced->lanes));
    for (int i = 0; forced->lanes && i < class->lane_count; i++) {
        forced->lanes[i] = class->lanes[i];
        if (mask && !(mask >> i & 1))
            forced->lanes[i].use = 0;
    }
    if (forced->lanes && build(forced)) {
        list(forced);
        return forced;
    }
    forced_free(forced);
    return NULL;
}

static void planned_set(struct peer_class *class, const struct forced *forced)
{
    for (int i = 0; i < FORCED_BUFFERS; i++)
        class_set_plan(class, (enum class_buffer) i, forced->planned[i]);
}

static int measure_force(int rank, int protocol, uint32_t mask)
{
    struct peer *peer = peer_of_rank(rank);
    if (!peer || protocol >= MODEL_PROTOCOLS)
        return OMPI_ERR_BAD_PARAM;
    multilane_lock();
    struct peer_class *class = peer_class_now(peer);
    struct forced *forced = NULL;
    if (remember(class)) {
        forced = find(class, protocol, mask);
        if (!forced)
            forced = forced_new(class, protocol, mask);
    }
    if (forced) {
        learning_forget(class);
        planned_set(class, forced);
    }
    multilane_unlock();
    return forced ? OMPI_SUCCESS : OMPI_ERR_NOT_SUPPORTED;
}

static int measure_lanes(int rank, struct model_lane *lanes, uint32_t *count,
                         enum profile_placement *placement)
{
    struct peer *peer = peer_of_rank(rank);
    if (!peer)
        return OMPI_ERR_UNREACH;
    const struct peer_class *class = peer_class_now(peer);
    if (class->lane_count > *count)
        return OMPI_ERR_OUT_OF_RESOURCE;
    *count = class->lane_count;
    *placement = class->placement;
    memcpy(lanes, class->lanes, *count * sizeof(*lanes));
    return OMPI_SUCCESS;
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

static int measure_route(int rank, uint64_t bytes, struct multilane_route *out)
{
    const struct peer_class *class;
    const struct plan_entry *entry = measure_entry(rank, bytes, &class);
    if (!entry)
        return OMPI_ERR_UNREACH;
    struct plan_input input;
    struct cost cost;
    class_plan_input(class, CLASS_CONTIGUOUS, &input);
    *out = (struct multilane_route){.protocol = (int) entry->protocol_index, .predicted_s = NAN};
    for (uint32_t i = 0; i < entry->lane_count; i++)
        out->lanes |= UINT32_C(1) << entry->lanes[i];
    if (plan_predict(&input, entry, bytes, &cost))
        out->predicted_s = cost_of(&cost, COST_OF_MESSAGE, bytes);
    return OMPI_SUCCESS;
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

static const char *measure_open_mpi(void)
{
    return version_built;
}

/* Gives the classes their original plans back. */
void calibrate_hook_fini(void)
{
    while (all_forced) {
        struct forced *forced = all_forced;
        all_forced = forced->next;
        if (!forced->lanes) {
            planned_set(forced->class, forced);
            free(forced);
        } else {
            forced_free(forced);
        }
    }
}

__attribute__((visibility("default")))
const struct multilane_measure mca_pml_multilane_measure_v5 = {
    .version = MULTILANE_MEASURE_VERSION,
    .lane_bytes = sizeof(struct model_lane),
    .open_mpi = measure_open_mpi,
    .lanes = measure_lanes,
    .force = measure_force,
    .route = measure_route,
    .times = measure_times,
    .surroundings = class_surroundings,
    .registration = measure_registration,
};
