/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of btl/sock, the lane over TCP: its parameters, its beginning and its end. */
#include "btl/sock/sock.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/compat/component.h"
#include "common/compat/named.h"
#include "common/sum/fnv.h"

/* So long the other ends may take to say goodbye. */
#define GOODBYE_MS 200u

static int sock_register(void);
static mca_btl_base_module_t **sock_init(int *count, bool progress_threads, bool mpi_threads);
static int sock_finalize(mca_btl_base_module_t *btl);

COMPONENT_DEFINE(sock, sock_register, sock_init, sock_progress_all);

/* More exclusive than tcp: under ob1 a job that names both uses this one. */
static mca_btl_base_module_t module_template = {
    .btl_component = &mca_btl_sock_component,
    .btl_add_procs = sock_add_procs,
    .btl_del_procs = sock_del_procs,
    .btl_finalize = sock_finalize,
    .btl_alloc = sock_work_alloc,
    .btl_free = sock_work_free,
    .btl_prepare_src = sock_work_prepare,
    .btl_send = sock_send_start,
    .btl_sendi = sock_send_immediate,
    .btl_put = sock_send_put,
    .btl_register_mem = registered_add,
    .btl_deregister_mem = registered_remove,
    .btl_register_error = lane_error_to,
    .btl_exclusivity = MCA_BTL_EXCLUSIVITY_LOW + 200,
    .btl_latency = 50,
    .btl_bandwidth = 0, /* the interface's own */
    .btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_PUT |
                 COMPAT_BTL_FLAGS_REMOTE_COMPLETION,
    .btl_registration_handle_size = sizeof(mca_btl_base_registration_handle_t),
    .btl_put_limit = 512u << 10, /* the end of one is told while the next is on its way */
    .btl_get_local_registration_threshold = SIZE_MAX,
    .btl_put_local_registration_threshold = SIZE_MAX,
    .btl_eager_limit = 64 << 10,
    .btl_rndv_eager_limit = 64 << 10,
    .btl_max_send_size = 128 << 10,
    .btl_rdma_pipeline_send_length = 128 << 10,
    .btl_rdma_pipeline_frag_size = 1 << 20,
    .btl_min_rdma_pipeline_size = 256 << 10,
};

static const struct param params[] = {
    {"lane", PARAM_LANE, &sock.lane, NULL, NULL},
    {"if", PARAM_STRING, &sock.interfaces, NULL,
     "the interfaces to use, by name or subnet, as eth0,10.1.0.0/16; after ^ all but these; or "
     "auto: all that are up"},
    {"links", PARAM_INT, &sock.links, "0 to 8",
     "connections of each rail to another node, each of them a lane; 0: one, and while a further "
     "one makes the rail faster up to 4"},
    {"lost_s", PARAM_INT, &sock.lost_s, "1 to 2147483",
     "so many seconds a process may be out of reach over its only rail before its lane counts as "
     "lost; meanwhile what is sent to it waits"},
    {"tls", PARAM_INT, &sock.tls, "0 to 1",
     "1: connections are encrypted, by the kernel's TLS; where it cannot, sock is no lane"},
    {"tls_mib", PARAM_INT, &sock.tls_mib, "1 to 262144",
     "so many MiB an encrypted connection carries each way before it is made anew, with new keys"},
    {.name = NULL}};

static int sock_register(void)
{
    int status = component_register(&mca_btl_sock_component, params, &module_template);

    if (status == OPAL_SUCCESS)
        status =
            component_counter(&mca_btl_sock_component.btl_version, "breaks",
                              "Connections that broke while their peer was in use", &sock.breaks);
    if (status == OPAL_SUCCESS)
        status = component_counter(&mca_btl_sock_component.btl_version, "strangers",
                                   "Connections from outside the job, which were closed",
                                   &sock.strangers);
    return status;
}

/* --- beginning --- */

static bool parameters_are_good(void)
{
    struct error_text why;

    if (!param_check(&mca_btl_sock_component.btl_version, params))
        return false;
    if (sock_addresses_check(sock.interfaces, &why))
        return true;
    SOCK_SAY("btl_sock_if is \"%s\": %s.", sock.interfaces, why.text);
    return false;
}

static uint64_t host_number(void)
{
    const uint64_t namespace = host_namespace("net");
    char boot[HOST_BOOT_BYTES];

    host_boot(boot);
    return fnv(fnv(FNV_BEGIN, boot, strlen(boot)), &namespace, sizeof(namespace));
}

static bool module_open(uint32_t rail)
{
    struct sock_address *address = &sock.record.addresses[rail];
    struct sock_module *module = calloc(1, sizeof(*module));
    struct error_text why = {"out of memory"};
    char text[ADDRESS_TEXT_BYTES];

    if (module) {
        module->super = module_template;
        module->super.btl_bandwidth = address->megabits != 0 ? address->megabits : 1000;
        module->address = rail;
        module->first = module;
        memcpy(module->device, address->name, ADDRESS_NAME_BYTES);
        OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
        if (sock_listen(module, address, &why)) {
            sock.modules[sock.module_count++] = module;
            return true;
        }
        OBJ_DESTRUCT(&module->lock);
    }
    SOCK_SAY("%s is no lane: nothing can be received there: %s.", sock_address_text(address, text),
             why.text);
    free(module);
    return false;
}

static bool record_make(void)
{
    struct error_text why;
    int count = sock_addresses_list(sock.interfaces, sock.record.addresses, &why);

    if (count < 0) {
        SOCK_SAY("no lane: %s.", why.text);
        return false;
    }
    if (count == 0)
        SOCK_SAY("no lane: no interface that is up fits btl_sock_if \"%s\".", sock.interfaces);
    sock.record.version = SOCK_RECORD_VERSION;
    sock.record.count = (uint32_t) count;
    sock.record.links = sock.links > 0 ? (uint32_t) sock.links : SOCK_LINKS_FOUND;
    sock.record.is_encrypted = (uint64_t) sock.tls;
    sock.record.host = host_number();
    if (host_random(&sock.record.secret, sizeof(sock.record.secret)))
        return count > 0;
    SOCK_SAY("no lane: the system gives no random numbers: %s.", strerror(errno));
    return false;
}

static bool encryption_is_there(void)
{
    struct error_text why;

    if (sock.tls == 0 || encrypt_open(&why))
        return true;
    SOCK_SAY("no lane, as btl_sock_tls is 1: %s. Other lanes do not encrypt.", why.text);
    return false;
}

static bool begin(void)
{
    if (!parameters_are_good() || !encryption_is_there() || !record_make())
        return false;
    component_limits_clip(&module_template, 4u << 10, 16u << 20);
    if (module_template.btl_put_limit > 1u << 30) /* a frame's length has 32 bits */
        module_template.btl_put_limit = 1u << 30;
    sock.record.message_bytes = module_template.btl_max_send_size;
    sock.record.put_bytes = module_template.btl_put_limit;
    sock.module_count = 0;
    sock.is_ending = false;
    sock.others_until_ms = 0;
    sock.buffer = aligned_alloc(4096, INTAKE_BYTES);
    sock.poll_fd = epoll_create1(EPOLL_CLOEXEC);
    sock.spare_fd = sock_spare_open();
    if (!sock.buffer || sock.poll_fd < 0 ||
        sock_works_open(module_template.btl_max_send_size) != OPAL_SUCCESS) {
        SOCK_SAY("no lane: %s.", strerror(errno));
        return false;
    }
    /* One that cannot be opened stays in the record, as peers know the others by their places, and
     * leads nowhere. */
    for (uint32_t rail = 0; rail < sock.record.count; rail++)
        if (!module_open(rail))
            sock.record.addresses[rail].family = 0;
    return sock.module_count > 0;
}

static void end(void)
{
    (void) sock_wake_by(NULL);
    sock_sockets_free();
    OBJ_DESTRUCT(&sock.closed);
    OBJ_DESTRUCT(&sock.guests);
    sock_works_close();
    registered_finish();
    if (sock.poll_fd >= 0)
        close(sock.poll_fd);
    if (sock.spare_fd >= 0)
        close(sock.spare_fd);
    sock.poll_fd = sock.spare_fd = -1;
    free(sock.buffer);
    sock.buffer = NULL;
    memset(sock.hot, 0, sizeof(sock.hot));
    memset(&sock.record, 0, sizeof(sock.record));
}

static mca_btl_base_module_t **sock_init(int *count, bool progress_threads, bool mpi_threads)
{
    *count = 0;
    if (!named_btl_is_wanted("sock"))
        return NULL;
    registered_init();
    OBJ_CONSTRUCT(&sock.guests, opal_list_t);
    OBJ_CONSTRUCT(&sock.closed, opal_list_t);
    if (!begin()) {
        end();
        return NULL;
    }
    mca_btl_base_module_t **modules =
        component_offer(&mca_btl_sock_component, &sock.record, SOCK_RECORD_BYTES(sock.record.count),
                        sock.modules, sock.module_count, count);
    while (!modules && sock.module_count > 0)
        (void) sock_finalize(&sock.modules[0]->super);
    return modules;
}

/* --- end --- */

static bool has_gone(sock_peer_t *peer, void *any)
{
    *(bool *) any |=
        peer->link && sock_peer_state(peer) == PEER_UP && sock_peer_is_of_this_job(peer);
    return !*(bool *) any;
}

/* Until every connected process of this job has said goodbye, as those of others may go on: a
 * socket that is closed with bytes unread takes away what the other end has not read yet. */
static void goodbyes_await(struct sock_module *first)
{
    uint64_t end_ms = sock_now_ms() + GOODBYE_MS;
    bool any = true;

    while (any && sock_now_ms() < end_ms) {
        (void) sock_progress_all();
        any = false;
        for (uint32_t nth = 0; nth < SOCK_LINKS_MAX; nth++)
            if (sock_module_nth(first, nth))
                peer_table_visit(&sock_module_nth(first, nth)->peers, has_gone, &any);
        if (any)
            sched_yield();
    }
}

static bool peer_close(sock_peer_t *peer, void *context)
{
    opal_list_t works;

    OBJ_CONSTRUCT(&works, opal_list_t);
    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->link)
        sock_socket_close(peer->link);
    if (peer->caller)
        sock_socket_close(peer->caller);
    peer->link = peer->caller = NULL;
    sock_queue_take(peer, &works);
    OPAL_THREAD_UNLOCK(&peer->lock);
    sock_works_complete(&works, OPAL_ERR_UNREACH);
    return true;
}

static void module_close(struct sock_module *module)
{
    peer_table_visit(&module->peers, peer_close, NULL);
    sock_peers_free(module);
    OBJ_DESTRUCT(&module->lock);
    free(module);
}

/* With those of its further connections. */
static int sock_finalize(mca_btl_base_module_t *btl)
{
    struct sock_module *first = module_of(btl);

    sock.is_ending = true;
    (void) lane_error_to(btl, NULL);
    goodbyes_await(first);
    sock_guests_close(first);
    sock_socket_close(first->listener);
    for (uint32_t i = 0; i < sock.module_count; i++)
        if (first == sock.modules[i]) {
            sock.modules[i] = sock.modules[--sock.module_count];
            break;
        }
    memset(sock.hot, 0, sizeof(sock.hot));
    for (uint32_t nth = SOCK_LINKS_MAX; nth-- > 0;)
        if (sock_module_nth(first, nth))
            module_close(sock_module_nth(first, nth));
    if (sock.module_count == 0)
        end();
    return OPAL_SUCCESS;
}
