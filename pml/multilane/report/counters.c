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

/* What a variable counts: messages or bytes of the routes that pass the filter. */
struct counted {
    route_filter passes;
    const void *what;
    bool bytes;
};

struct routes_sum {
    const struct counted *counted;
    const struct peer_class *class;
    uint64_t sum;
};

static void route_add(const struct route *route, void *with)
{
    struct routes_sum *all = with;
    if (all->counted->passes(all->class, route, all->counted->what))
        all->sum += counter_read(all->counted->bytes ? &route->bytes : &route->messages);
}

static int read_routes(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    struct routes_sum all = {.counted = variable->ctx};
    (void) object;
    if (multilane.enabled) {
        multilane_lock();
        for (all.class = classes_first(); all.class; all.class = all.class->next)
            for (int buffer = 0; buffer < CLASS_SENDS; buffer++)
                class_routes_visit(all.class, (enum class_buffer) buffer, route_add, &all);
        multilane_unlock();
    }
    *(unsigned long long *) value = all.sum;
    return OMPI_SUCCESS;
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

/* "eager-short" as part of a variable's name: "eager_short". */
static void variable_name(char *text, size_t size, const char *what, const char *of)
{
    snprintf(text, size, "%s_%s", what, of);
    for (char *at = text; *at; at++)
        if (*at == '-')
            *at = '_';
}

/* As many as there are protocols and BTLs. */
static struct counted counted[2 * (MODEL_PROTOCOLS + MODEL_LANES_MAX)];
static size_t counted_count;

static int counters_of(const mca_base_component_t *component, const char *of, const char *kind,
                       route_filter passes, const void *what)
{
    static const char *const names[] = {"messages", "bytes"};
    static const char *const helps[] = {"Messages", "Bytes"};
    int rc = OMPI_SUCCESS;
    for (int bytes = 0; bytes < 2 && rc == OMPI_SUCCESS; bytes++) {
        char name[96], help[160];
        if (counted_count == sizeof(counted) / sizeof(counted[0]))
            return OMPI_SUCCESS;
        counted[counted_count] = (struct counted){passes, what, bytes};
        variable_name(name, sizeof(name), names[bytes], of);
        snprintf(help, sizeof(help), "%s sent by this process %s %s", helps[bytes], kind, of);
        rc = counter_register(component, name, help, read_routes, &counted[counted_count++]);
    }
    return rc;
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
        {"taken_rests",
         "Messages whose rest this process copied by itself, because their sender was outside of "
         "MPI",
         &multilane.taken_rests},
        {"lanes_lost", "Times that a lane to a peer was left out", &multilane.lanes_lost},
        {"lanes_returned", "Times that such a lane was taken back", &multilane.lanes_returned},
        {"resent_messages", "Messages sent again over another lane", &multilane.resent_messages},
    };
    int rc = OMPI_SUCCESS;
    counted_count = 0;
    for (int i = 0; i < MODEL_PROTOCOLS && rc == OMPI_SUCCESS; i++)
        if (protocols.of_model[i])
            rc = counters_of(component, protocols.of_model[i]->name, "by", is_of_protocol,
                             protocols.of_model[i]);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]) && rc == OMPI_SUCCESS; i++)
        rc = counter_register(component, plain[i].name, plain[i].help, read_plain, plain[i].value);
    return rc;
}

int counters_register_lanes(const mca_base_component_t *component)
{
    mca_btl_base_selected_module_t *selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        const mca_btl_base_component_t *btl = selected->btl_module->btl_component;
        int rc = counters_of(component, btl->btl_version.mca_component_name, "whose first lane is",
                             is_of_component, btl);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}
