/* SPDX-License-Identifier: BSD-3-Clause */
/* What Open MPI's own tools show of this process: variables of MPI_T, switch points,
 * connections. */
#include "report/report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/component.h"
#include "common/model/protocol.h"
#include "base/multilane.h"
#include "plan/peer_class.h"
#include "base/protocol.h"
#include "common/lane/declared.h"
#include "common/model/number.h"
#include "lane/lane.h"
#include "plan/costs.h"
#include "match/comm.h"

/* What a variable counts: messages or bytes of the routes by a protocol, or whose first lane is of
 * a component. */
struct counted {
    const char *protocol; /* null: by component */
    const mca_btl_base_component_t *component;
    bool bytes;
};

static bool counts(const struct counted *mine, const struct peer_class *class,
                   const struct route *route)
{
    /* By name: two protocols here are called rndv-get. */
    return mine->protocol ? strcmp(route->protocol->name, mine->protocol) == 0
                          : class->btls[route->lanes[0]]->btl_component == mine->component;
}

static uint64_t routes_sum(const struct counted *mine, const struct peer_class *class,
                           enum class_buffer buffer)
{
    uint64_t sum = 0;
    for (const struct route *route = class_route_next(class, buffer, NULL); route;
         route = class_route_next(class, buffer, route))
        if (counts(mine, class, route))
            sum += counter_read(mine->bytes ? &route->bytes : &route->messages);
    return sum;
}

/* A tool's thread may read while another one ends MPI. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

void counters_end(void)
{
    pthread_mutex_lock(&reading);
    multilane.enabled = false;
    pthread_mutex_unlock(&reading);
}

static int read_routes(const struct mca_base_pvar_t *variable, void *value, void *object)
{
    const struct counted *mine = variable->ctx;
    unsigned long long sum = 0;
    pthread_mutex_lock(&reading);
    if (multilane.enabled) {
        multilane_lock();
        for (const struct peer_class *class = classes_first(); class; class = class->next)
            for (int buffer = 0; buffer < CLASS_SENDS; buffer++)
                sum += routes_sum(mine, class, (enum class_buffer) buffer);
        multilane_unlock();
    }
    pthread_mutex_unlock(&reading);
    *(unsigned long long *) value = sum;
    return OMPI_SUCCESS;
}

/* "eager-short" as part of a variable's name: "eager_short". */
static struct words variable_name(const char *what, const char *of)
{
    struct words name = words_of("%s_%s", what, of);
    for (char *at = name.text; *at; at++)
        if (*at == '-')
            *at = '_';
    return name;
}

/* As many as there are protocols and BTLs. */
static struct counted counted[2 * (MODEL_PROTOCOLS + MODEL_LANES_MAX)];
static size_t counted_count;

static int counters_of(const mca_base_component_t *component, const char *of, const char *kind,
                       struct counted what)
{
    static const char *const names[] = {"messages", "bytes"};
    static const char *const helps[] = {"Messages", "Bytes"};
    int rc = OMPI_SUCCESS;
    for (int bytes = 0; bytes < 2 && rc == OMPI_SUCCESS; bytes++) {
        if (counted_count == sizeof(counted) / sizeof(counted[0]))
            return OMPI_SUCCESS;
        what.bytes = bytes;
        counted[counted_count] = what;
        rc = component_variable(
            component, variable_name(names[bytes], of).text,
            words_of("%s sent by this process %s %s", helps[bytes], kind, of).text, read_routes,
            &counted[counted_count++]);
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
        {"wrong_messages", "Messages, gets and puts whose sum was wrong (verify)",
         &multilane.wrong_messages},
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
    for (int i = 0; i < MODEL_PROTOCOLS && rc == OMPI_SUCCESS; i++) {
        const char *name = protocols.of_model[i]->name;
        rc = counters_of(component, name, "by", (struct counted){.protocol = name});
    }
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]) && rc == OMPI_SUCCESS; i++)
        rc = component_counter(component, plain[i].name, plain[i].help, plain[i].value);
    return rc;
}

int counters_register_lanes(const mca_base_component_t *component)
{
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        int rc = counters_of(component, lane_name_of(btl), "whose first lane is",
                             (struct counted){.component = btl->btl_component});
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}

/* --- ompi_info: the switch points of this machine's lanes ------------------------------------- */

/* The switch points of this machine's lanes as text, for ompi_info: made without a job, at
 * registration. A profile has them all; where there is none, they are those that our lanes declare.
 */

#define TEXT_CHARS 2048

/* "shm@cache: eager-short to 936, rndv-get above" */
static void lane_add(char text[TEXT_CHARS], const struct model_lane *lane)
{
    struct peer_class class = {.lane_count = 1, .lanes = (struct model_lane *) lane};
    struct plan_input input;
    struct error_text error;
    class_plan_input(&class, CLASS_CONTIGUOUS, &input);
    struct plan *plan = plan_build(&input, &error);
    if (!plan)
        return;
    text_more(text, TEXT_CHARS, "%s%s", text[0] ? "; " : "", lane->name);
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        bool is_last = i + 1 == plan->entry_count;
        text_more(text, TEXT_CHARS, "%s%s%s", i ? ", " : ": ", plan->entries[i].protocol->name,
                  is_last ? " above" : " to ");
        if (!is_last)
            text_more(text, TEXT_CHARS, "%s", number_size(plan->entries[i].largest_bytes).text);
    }
    plan_free(plan);
}

/* A lane of one of our BTLs, as it declares itself, and as the user does. */
static void ours_add(char text[TEXT_CHARS], const char *name)
{
    const struct multilane_extension *extension = lane_extension_named(name);
    uint32_t can = MODEL_CAN_SEND | MODEL_CAN_GET | MODEL_CAN_PUT;
    struct multilane_lane_attributes declared;
    struct error_text complaint;
    struct model_lane lane;
    if (!extension || extension->attributes(NULL, NULL, &declared) < 0)
        return;
    can |= declared.short_max_bytes > 0 ? MODEL_CAN_SHORT : 0;
    declared_attributes(name, can, &declared, &lane, &complaint);
    attributes_of_user(name, true, &lane);
    lane_add(text, &lane);
}

const char *class_switch_points(void)
{
    static const char *const ours[] = {"shm", "verbs"};
    static char text[TEXT_CHARS];
    const struct lane_file *profile = used_profile();
    text[0] = '\0';
    /* Every process of every Open MPI job comes here, also where it does not use Multilane. */
    if (strcmp(program_invocation_short_name, "ompi_info") != 0)
        return "ompi_info shows them, and pml_multilane_explain those of a job";
    for (uint32_t i = 0; profile && i < profile->lane_count; i++)
        lane_add(text, &profile->lanes[i]);
    for (size_t i = 0; !profile && i < sizeof(ours) / sizeof(ours[0]); i++)
        ours_add(text, ours[i]);
    return text;
}

/* --- the table of connections ----------------------------------------------------------------- */

/* "tcp" and "eth0" of the lane that reports call "tcp:eth0". The texts live as long as the class.
 */
static mca_pml_transport_entry_t transport_of(const struct peer_class *class, int lane)
{
    const char *device = strchr(class->lanes[lane].name, ':');
    return (mca_pml_transport_entry_t){.transport_name = lane_name_of(class->btls[lane]),
                                       .device_name = device ? device + 1 : "memory"};
}

mca_pml_transports_t *transports_of_rank(ompi_communicator_t *comm, int rank)
{
    const struct peer *peer = comm->c_pml_comm ? comm_peer(comm->c_pml_comm, rank) : NULL;
    const struct peer_class *class = peer ? peer_class_now(peer) : NULL;
    if (!class)
        return NULL;
    int count = class_lanes_described(class);
    mca_pml_transports_t *transports = malloc(sizeof(*transports));
    mca_pml_transport_entry_t *entries = calloc((size_t) count + 1, sizeof(*entries));
    if (!transports || !entries) {
        free(transports);
        free(entries);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        entries[i] = transport_of(class, i);
    transports->count = (unsigned) count;
    transports->entries = entries;
    return transports;
}
