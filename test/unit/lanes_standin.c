/* SPDX-License-Identifier: BSD-3-Clause */
/* Stand-ins for what lies around lanes and plans: BTLs, the BML's tables, the protocols' functions,
 * and the sending of reports. */
#include "lanes_standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pml/multilane/clock.h"
#include "pml/multilane/parameters.h"
#include "pml/multilane/protocol/protocol.h"

struct multilane multilane;
uint64_t standin_now_ns = 1000000000;

uint64_t clock_now_ns(void)
{
    return standin_now_ns;
}

struct parameters parameters = {.lane_attr = NULL, .profile = "none", .bias = 0.99};

static const struct protocol standin_protocols[MODEL_PROTOCOLS] = {
    {.name = "eager-short"}, {.name = "eager-copy"}, {.name = "eager-zcopy"}, {.name = "rndv-am"},
    {.name = "rndv-get"},    {.name = "rndv-put"},   {.name = "rndv-both"}};
const struct protocol *const protocols[MODEL_PROTOCOLS] = {
    &standin_protocols[0], &standin_protocols[1], &standin_protocols[2], &standin_protocols[3],
    &standin_protocols[4], &standin_protocols[5], &standin_protocols[6]};

/* Open MPI's own needs a process that was initialised. */
__attribute__((visibility("default"))) void opal_output(int stream, const char *format, ...);

void opal_output(int stream, const char *format, ...)
{
    va_list values;
    (void) stream;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
}

#define LANES_MOST 64
static struct {
    const struct lane *lane;
    uint64_t bytes;
} reports[LANES_MOST];
static unsigned report_count;

int lane_send_control(struct lane *lane, const void *bytes, size_t length)
{
    struct wire_seen seen;
    memcpy(&seen, (const char *) bytes + length - sizeof(seen), sizeof(seen));
    for (unsigned i = 0; i < report_count; i++)
        if (reports[i].lane == lane) {
            reports[i].bytes = seen.bytes;
            return OMPI_SUCCESS;
        }
    if (report_count < LANES_MOST) {
        reports[report_count].lane = lane;
        reports[report_count++].bytes = seen.bytes;
    }
    return OMPI_SUCCESS;
}

uint64_t standin_reported(const struct lane *lane)
{
    for (unsigned i = 0; i < report_count; i++)
        if (reports[i].lane == lane)
            return reports[i].bytes;
    return 0;
}

mca_btl_base_module_t *standin_btl(const char *name, uint32_t bandwidth)
{
    mca_btl_base_component_t *component = calloc(1, sizeof(*component));
    mca_btl_base_module_t *btl = calloc(1, sizeof(*btl));
    mca_btl_base_selected_module_t *selected = OBJ_NEW(mca_btl_base_selected_module_t);
    snprintf(component->btl_version.mca_component_name,
             sizeof(component->btl_version.mca_component_name), "%s", name);
    btl->btl_component = component;
    btl->btl_flags = MCA_BTL_FLAGS_SEND;
    btl->btl_bandwidth = bandwidth;
    btl->btl_eager_limit = 64 << 10;
    btl->btl_max_send_size = 128 << 10;
    selected->btl_component = component;
    selected->btl_module = btl;
    opal_list_append(&mca_btl_base_modules_initialized, &selected->super);
    return btl;
}

struct peer *standin_peer(void)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    mca_bml_base_endpoint_t *endpoint = OBJ_NEW(mca_bml_base_endpoint_t);
    mca_bml_base_btl_array_reserve(&endpoint->btl_eager, MODEL_LANES_MAX);
    mca_bml_base_btl_array_reserve(&endpoint->btl_send, MODEL_LANES_MAX);
    peer->proc = calloc(1, sizeof(*peer->proc));
    peer->proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = endpoint;
    return peer;
}

void standin_reach(struct peer *peer, mca_btl_base_module_t *btl)
{
    mca_bml_base_endpoint_t *endpoint = peer->proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    mca_bml_base_btl_array_t *arrays[] = {&endpoint->btl_eager, &endpoint->btl_send};
    for (int i = 0; i < 2; i++) {
        mca_bml_base_btl_t *bml_btl = mca_bml_base_btl_array_insert(arrays[i]);
        bml_btl->btl = btl;
        bml_btl->btl_flags = btl->btl_flags;
    }
}

void standin_begin(void)
{
    OBJ_CONSTRUCT(&multilane.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_btl_base_modules_initialized, opal_list_t);
}
