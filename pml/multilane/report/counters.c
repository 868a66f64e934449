/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_T variables. Only reading them costs time: the data path counts per route, and a read adds
 * up. */
#include "report/report.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"

#include "common/model/protocol.h"
#include "base/multilane.h"
#include "plan/peer_class.h"
#include "base/protocol.h"

typedef bool (*route_filter)(const struct peer_class *class, const struct route *route,
                             const void *what);

/* Messages or bytes of the routes that pass the filter. */
struct routes_sum {
    const struct peer_class *class;
    route_filter passes;
    const void *what;
    bool bytes;
    uint64_t sum;
};

static void route_add(const struct route *route, void *with)
{
    struct routes_sum *all = with;
    if (all->passes(all->class, route, all->what))
        all->sum += counter_read(all->bytes ? &route->bytes : &route->messages);
}

static uint64_t routes_sum(route_filter passes, const void *what, bool bytes)
{
    struct routes_sum all = {.passes = passes, .what = what, .bytes = bytes};
    multilane_lock();
    for (all.class = classes_first(); all.class; all.class = all.class->next)
        for (int buffer = 0; buffer < CLASS_SENDS; buffer++)
            class_routes_visit(all.class, (enum class_buffer) buffer, route_add, &all);
    multilane_unlock();
    return all.sum;
}

static bool is_of_protocol(const struct peer_class *class, const struct route *route,
                           const void *what)
{
    (void) class;
    /* By name: two protocols here are called rndv-get. */
    return strcmp(route->protocol->name, ((const struct protocol *) what)->name) == 0;
}

static bool is_of_component(const struct peer_class *class, const struct route *route,
                            const void *what)
{
    return class->btls[route->lanes[0]]->btl_component == what;
}

static int read_sum(route_filter passes, const struct mca_base_pvar_t *variable, void *value,
                    bool bytes)
{
    *(unsigned long long *) value =
        multilane.enabled ? routes_sum(passes, variable->ctx, bytes) : 0;
    return OMPI_SUCCESS;
}

static int read_protocol_messages(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    (void) object;
    return read_sum(is_of_protocol, variable, value, false);
}

static int read_protocol_bytes(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    (void) object;
    return read_sum(is_of_protocol, variable, value, true);
}

static int read_lane_messages(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    (void) object;
    return read_sum(is_of_component, variable, value, false);
}

static int read_lane_bytes(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    (void) object;
    return read_sum(is_of_component, variable, value, true);
}

static int read_plain(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    (void) object;
    *(unsigned long long *) value = counter_read((_Atomic uint64_t *) variable->ctx);
    return OMPI_SUCCESS;
}

static int counter_register(const mca_base_component_t *component, const char *name,
                            const char *help, mca_base_get_value_fn_t read, const void *what)
{
    int index = mca_base_component_pvar_register(
        component, name, help, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read, NULL, NULL,
        (void *) what);
    return index >= 0 ? OMPI_SUCCESS : index;
}

/* --- sizes ------------------------------------------------------------------------------------ */

/* Element i: messages of the size ranges, as the plans have them, that end at 2^i to 2^(i+1) - 1
 * bytes. So a read adds up what is counted anyway. */
#define SIZES 64

static void size_add(const struct route *route, void *with)
{
    unsigned long long *sizes = with;
    uint64_t largest = route->entry->largest_bytes;
    sizes[largest ? 63 - __builtin_clzll(largest) : 0] += counter_read(&route->messages);
}

static int read_sizes(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    unsigned long long *sizes = value;
    (void) variable;
    (void) object;
    memset(sizes, 0, SIZES * sizeof(*sizes));
    if (!multilane.enabled)
        return OMPI_SUCCESS;
    multilane_lock();
    for (struct peer_class *class = classes_first(); class; class = class->next)
        for (int buffer = 0; buffer < CLASS_SENDS; buffer++)
            class_routes_visit(class, (enum class_buffer) buffer, size_add, sizes);
    multilane_unlock();
    return OMPI_SUCCESS;
}

static int sizes_notify(struct mca_base_pvar_t *variable, mca_base_pvar_event_t event, void *object,
                        int *count)
{
    (void) variable;
    (void) object;
    if (event == MCA_BASE_PVAR_HANDLE_BIND)
        *count = SIZES;
    return OMPI_SUCCESS;
}

static int sizes_register(const mca_base_component_t *component)
{
    int index = mca_base_component_pvar_register(
        component, "message_sizes",
        "Messages sent by this process, 64 counts by the logarithm to base 2 of the largest size "
        "in "
        "the range of sizes that the plan has put them into",
        OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
        MCA_BASE_VAR_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS,
        read_sizes, NULL, sizes_notify, NULL);
    return index >= 0 ? OMPI_SUCCESS : index;
}

/* --- all -------------------------------------------------------------------------------------- */

/* "eager-short" as part of a variable's name: "eager_short". */
static void variable_name(char *text, size_t size, const char *what, const char *of)
{
    snprintf(text, size, "%s_%s", what, of);
    for (char *at = text; *at; at++)
        if (*at == '-')
            *at = '_';
}

static int counters_of(const mca_base_component_t *component, const char *of, const char *kind,
                       const void *what, mca_base_get_value_fn_t messages,
                       mca_base_get_value_fn_t bytes)
{
    char name[96], help[160];
    variable_name(name, sizeof(name), "messages", of);
    snprintf(help, sizeof(help), "Messages sent by this process %s %s", kind, of);
    int rc = counter_register(component, name, help, messages, what);
    if (rc != OMPI_SUCCESS)
        return rc;
    variable_name(name, sizeof(name), "bytes", of);
    snprintf(help, sizeof(help), "Bytes sent by this process %s %s", kind, of);
    return counter_register(component, name, help, bytes, what);
}

int counters_register(const mca_base_component_t *component)
{
    static const struct {
        const char *name;
        const char *help;
        _Atomic uint64_t *value;
    } plain[] = {
        {"unexpected_messages", "Messages that came before their receive was posted",
         &multilane.unexpected_messages},
        {"early_messages", "Messages that came before one that was sent earlier",
         &multilane.early_messages},
        {"bad_headers", "Messages whose header made no sense", &multilane.bad_headers},
        {"waited_messages", "Messages that had to wait for room at their receiver",
         &multilane.waited_messages},
        {"copied_bytes",
         "Bytes of messages that were copied, to be kept until their lane has sent them or the "
         "peer has them",
         &multilane.copied_bytes},
        {"bounded_pieces",
         "Pieces of large messages sent within the bound of a receiver to which others send as "
         "well",
         &multilane.bounded_pieces},
        {"taken_rests",
         "Messages whose rest this process copied by itself, because their sender was outside of "
         "MPI",
         &multilane.taken_rests},
        {"lanes_lost", "Times that a lane to a peer was left out", &multilane.lanes_lost},
        {"lanes_returned", "Times that such a lane was taken back", &multilane.lanes_returned},
        {"resent_messages", "Messages sent again over another lane", &multilane.resent_messages},
        {"duplicate_messages", "Messages that came twice", &multilane.duplicates},
    };
    int rc = OMPI_SUCCESS;
    for (int i = 0; i < MODEL_PROTOCOLS && rc == OMPI_SUCCESS; i++)
        if (protocols.of_model[i])
            rc = counters_of(component, protocols.of_model[i]->name, "by", protocols.of_model[i],
                             read_protocol_messages, read_protocol_bytes);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]) && rc == OMPI_SUCCESS; i++)
        rc = counter_register(component, plain[i].name, plain[i].help, read_plain, plain[i].value);
    return rc == OMPI_SUCCESS ? sizes_register(component) : rc;
}

int counters_register_lanes(const mca_base_component_t *component)
{
    mca_btl_base_selected_module_t *selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        const mca_btl_base_component_t *btl = selected->btl_module->btl_component;
        int rc = counters_of(component, btl->btl_version.mca_component_name, "whose first lane is",
                             btl, read_lane_messages, read_lane_bytes);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}
