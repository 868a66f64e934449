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

/* Its functions: what each returns, its name, its parameters, and how it is called. */
/* clang-format off */
#define EACH_FUNCTION(DO) \
    DO(struct ibv_device **, ibv_get_device_list, (int *count), (count)) \
    DO(const char *, ibv_get_device_name, (struct ibv_device *device), (device)) \
    DO(struct ibv_context *, ibv_open_device, (struct ibv_device *device), (device)) \
    DO(int, ibv_close_device, (struct ibv_context *context), (context)) \
    DO(int, ibv_query_device, (struct ibv_context *context, struct ibv_device_attr *to), \
       (context, to)) \
    DO(int, ibv_query_port, (struct ibv_context *context, uint8_t port, \
       struct _compat_ibv_port_attr *to), (context, port, to)) \
    DO(int, ibv_query_pkey, (struct ibv_context *context, uint8_t port, int index, __be16 *pkey), \
       (context, port, index, pkey)) \
    DO(ssize_t, _ibv_query_gid_table, (struct ibv_context *context, struct ibv_gid_entry *entries, \
       size_t count, uint32_t flags, size_t bytes), (context, entries, count, flags, bytes)) \
    DO(const char *, ibv_port_state_str, (enum ibv_port_state state), (state)) \
    DO(int, ibv_get_async_event, (struct ibv_context *context, struct ibv_async_event *event), \
       (context, event)) \
    DO(const char *, ibv_event_type_str, (enum ibv_event_type event), (event)) \
    DO(int, ibv_fork_init, (void), ()) \
    DO(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *context), (context)) \
    DO(int, ibv_dealloc_pd, (struct ibv_pd *pd), (pd)) \
    DO(struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *pd, void *address, size_t bytes, int access), \
       (pd, address, bytes, access)) \
    DO(struct ibv_mr *, ibv_reg_mr_iova2, (struct ibv_pd *pd, void *address, size_t bytes, \
       uint64_t remote, unsigned int access), (pd, address, bytes, remote, access)) \
    DO(struct ibv_mr *, ibv_reg_dmabuf_mr, (struct ibv_pd *pd, uint64_t offset, size_t bytes, \
       uint64_t remote, int fd, int access), (pd, offset, bytes, remote, fd, access)) \
    DO(int, ibv_dereg_mr, (struct ibv_mr *region), (region)) \
    DO(struct ibv_cq *, ibv_create_cq, (struct ibv_context *context, int entries, void *of, \
       struct ibv_comp_channel *channel, int vector), (context, entries, of, channel, vector)) \
    DO(int, ibv_destroy_cq, (struct ibv_cq *cq), (cq)) \
    DO(const char *, ibv_wc_status_str, (enum ibv_wc_status status), (status)) \
    DO(struct ibv_srq *, ibv_create_srq, (struct ibv_pd *pd, struct ibv_srq_init_attr *of), \
       (pd, of)) \
    DO(int, ibv_modify_srq, (struct ibv_srq *srq, struct ibv_srq_attr *to, int which), \
       (srq, to, which)) \
    DO(int, ibv_destroy_srq, (struct ibv_srq *srq), (srq)) \
    DO(struct ibv_qp *, ibv_create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *of), (pd, of)) \
    DO(int, ibv_modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *to, int which), \
       (qp, to, which)) \
    DO(int, ibv_destroy_qp, (struct ibv_qp *qp), (qp)) \
    DO(struct ibv_ah *, ibv_create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *of), (pd, of)) \
    DO(int, ibv_destroy_ah, (struct ibv_ah *ah), (ah))
/* clang-format on */

#define POINTER(result, name, parameters, arguments) result(*name) parameters;
#define PLACE(result, name, parameters, arguments)   {#name, offsetof(struct functions, name)},
#define FUNCTION(result, name, parameters, arguments)                                              \
    result name parameters                                                                         \
    {                                                                                              \
        return library.name arguments;                                                             \
    }

static struct functions {
    EACH_FUNCTION(POINTER)
    POINTER(void, ibv_free_device_list, (struct ibv_device **), )
    POINTER(void, ibv_ack_async_event, (struct ibv_async_event *), )
    POINTER(enum ibv_fork_status, ibv_is_fork_initialized, (void), )
} library;

static const struct {
    const char *name;
    size_t offset;
} places[] = {EACH_FUNCTION(PLACE) PLACE(, ibv_free_device_list, , )
                  PLACE(, ibv_ack_async_event, , ) PLACE(, ibv_is_fork_initialized, , )};

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

EACH_FUNCTION(FUNCTION)

void ibv_free_device_list(struct ibv_device **devices)
{
    library.ibv_free_device_list(devices);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    library.ibv_ack_async_event(event);
}

/* Also asked of a lane that is not open, maybe for want of this library. */
enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return library.ibv_is_fork_initialized ? library.ibv_is_fork_initialized() : IBV_FORK_DISABLED;
}
