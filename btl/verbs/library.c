/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens libibverbs, and has its functions under their own names: the rest of btl/verbs, and what
 * <infiniband/verbs.h> inlines into it, calls them as if it were linked with that library. */
#include "btl/verbs/library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Macros that the header puts before the functions of these names. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

/* clang-format off */
#define EACH_FUNCTION(DO) \
    DO(ibv_get_device_list) DO(ibv_free_device_list) DO(ibv_get_device_name) \
    DO(ibv_open_device) DO(ibv_close_device) DO(ibv_query_device) DO(ibv_query_port) \
    DO(ibv_query_pkey) DO(_ibv_query_gid_table) DO(ibv_port_state_str) \
    DO(ibv_get_async_event) DO(ibv_ack_async_event) DO(ibv_event_type_str) \
    DO(ibv_fork_init) DO(ibv_is_fork_initialized) DO(ibv_alloc_pd) DO(ibv_dealloc_pd) \
    DO(ibv_reg_mr) DO(ibv_reg_mr_iova2) DO(ibv_reg_dmabuf_mr) DO(ibv_dereg_mr) \
    DO(ibv_create_cq) DO(ibv_destroy_cq) DO(ibv_wc_status_str) \
    DO(ibv_create_srq) DO(ibv_modify_srq) DO(ibv_destroy_srq) \
    DO(ibv_create_qp) DO(ibv_modify_qp) DO(ibv_destroy_qp) \
    DO(ibv_create_ah) DO(ibv_destroy_ah)
/* clang-format on */

#define POINTER(name) __typeof__(name) *name;
#define PLACE(name)   {#name, offsetof(struct functions, name)},

static struct functions {
    EACH_FUNCTION(POINTER)
} library;

static const struct {
    const char *name;
    size_t offset;
} places[] = {EACH_FUNCTION(PLACE)};

/* --- opening it --- */

static const char file[] = "libibverbs.so.1";

static bool folder_has_entry(DIR *folder)
{
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        if (entry->d_name[0] != '.')
            return true;
    return false;
}

/* Where libibverbs looks. Also true where it cannot be seen that there is none. */
static bool node_may_have_device(void)
{
    const char *other = getenv("SYSFS_PATH");
    char class[256];

    snprintf(class, sizeof(class) - sizeof("/infiniband"), "%s/class", other ? other : "/sys");
    bool is_shown = access(class, R_OK) == 0;
    DIR *folder = opendir(strcat(class, "/infiniband"));
    if (!folder)
        return !is_shown || errno != ENOENT;
    bool has_entry = folder_has_entry(folder);
    closedir(folder);
    return has_entry;
}

bool verbs_library_wanted(void)
{
    return dlsym(RTLD_DEFAULT, "ibv_get_device_list") || node_may_have_device();
}

/* Null: it has them all; else the first that it has not. */
static const char *functions_find(void)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        void *function = dlsym(RTLD_DEFAULT, places[i].name);

        if (!function)
            return places[i].name;
        memcpy((char *) &library + places[i].offset, &function, sizeof(function));
    }
    return NULL;
}

/* For the whole process, as what a component is linked with: so a library that is preloaded comes
 * before it. Never closed: what it has set up in this process stays. */
bool verbs_library_open(struct error_text *why)
{
    if (!dlopen(file, RTLD_NOW | RTLD_GLOBAL)) {
        const char *error = dlerror();

        return fail_with(why,
                         "this node may have an RDMA device, and rdma-core's library for it cannot "
                         "be loaded: %s",
                         error ? error : file);
    }
    const char *missing = functions_find();
    if (missing)
        return fail_with(why,
                         "%s is older than the one that btl/verbs was built with: it has no %s",
                         file, missing);
    return true;
}

/* --- its functions --- */

struct ibv_device **ibv_get_device_list(int *count)
{
    return library.ibv_get_device_list(count);
}

void ibv_free_device_list(struct ibv_device **devices)
{
    library.ibv_free_device_list(devices);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return library.ibv_get_device_name(device);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return library.ibv_open_device(device);
}

int ibv_close_device(struct ibv_context *context)
{
    return library.ibv_close_device(context);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
    return library.ibv_query_device(context, attributes);
}

int ibv_query_port(struct ibv_context *context, uint8_t port,
                   struct _compat_ibv_port_attr *attributes)
{
    return library.ibv_query_port(context, port, attributes);
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    return library.ibv_query_pkey(context, port, index, pkey);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t count, uint32_t flags, size_t entry_bytes)
{
    return library._ibv_query_gid_table(context, entries, count, flags, entry_bytes);
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    return library.ibv_port_state_str(state);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return library.ibv_get_async_event(context, event);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    library.ibv_ack_async_event(event);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
    return library.ibv_event_type_str(event);
}

int ibv_fork_init(void)
{
    return library.ibv_fork_init();
}

/* Also asked of a lane that is not open, maybe for want of this library. */
enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return library.ibv_is_fork_initialized ? library.ibv_is_fork_initialized() : IBV_FORK_DISABLED;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    return library.ibv_alloc_pd(context);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return library.ibv_dealloc_pd(pd);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access)
{
    return library.ibv_reg_mr(pd, address, bytes, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t remote,
                                unsigned int access)
{
    return library.ibv_reg_mr_iova2(pd, address, bytes, remote, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t remote,
                                 int fd, int access)
{
    return library.ibv_reg_dmabuf_mr(pd, offset, bytes, remote, fd, access);
}

int ibv_dereg_mr(struct ibv_mr *region)
{
    return library.ibv_dereg_mr(region);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *of_caller,
                             struct ibv_comp_channel *channel, int vector)
{
    return library.ibv_create_cq(context, entries, of_caller, channel, vector);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    return library.ibv_destroy_cq(cq);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return library.ibv_wc_status_str(status);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes)
{
    return library.ibv_create_srq(pd, attributes);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attributes, int which)
{
    return library.ibv_modify_srq(srq, attributes, which);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    return library.ibv_destroy_srq(srq);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    return library.ibv_create_qp(pd, attributes);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int which)
{
    return library.ibv_modify_qp(qp, attributes, which);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    return library.ibv_destroy_qp(qp);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attributes)
{
    return library.ibv_create_ah(pd, attributes);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    return library.ibv_destroy_ah(ah);
}
