/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port of btl/verbs is, and what of it changes, over test/fake/verbs. Each case is a process
 * of its own with its profile. */
#include "check.h"
#include "strict_case.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "btl/verbs/verbs.h"
#include "test/fake/verbs/strict.h"

/* --- what the cases change and see --- */

static struct {
    char said[1024];
    unsigned paths; /* that were asked for */
    bool no_paths;  /* the device makes none */
    bool no_table;  /* its GIDs cannot be read */
    int questions;  /* so many more succeed of those for the device's attributes; below 0: all */
    int register_error;
    mca_rcache_base_resources_t cache;
} seen = {.questions = -1};

void opal_output(int stream, const char *format, ...)
{
    va_list values;

    (void) stream;
    va_start(values, format);
    vsnprintf(seen.said, sizeof(seen.said), format, values);
    va_end(values);
}

struct ibv_ah *__real_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *path);
struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *path);
struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *path)
{
    seen.paths++;
    return seen.no_paths ? NULL : __real_ibv_create_ah(pd, path);
}

ssize_t __real__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                    size_t room, uint32_t flags, size_t entry_size);
ssize_t __wrap__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                    size_t room, uint32_t flags, size_t entry_size);
ssize_t __wrap__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                    size_t room, uint32_t flags, size_t entry_size)
{
    return seen.no_table ? -ENOMEM
                         : __real__ibv_query_gid_table(context, entries, room, flags, entry_size);
}

int __real_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes);
int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes);
int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
    if (seen.questions == 0)
        return EIO;
    seen.questions--;
    return __real_ibv_query_device(context, attributes);
}

struct ibv_mr *__real_ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t size, uint64_t remote,
                                       unsigned access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t size, uint64_t remote,
                                       unsigned access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t size, uint64_t remote,
                                       unsigned access)
{
    errno = seen.register_error;
    return seen.register_error ? NULL : __real_ibv_reg_mr_iova2(pd, base, size, remote, access);
}
struct ibv_mr *__real_ibv_reg_mr(struct ibv_pd *pd, void *base, size_t size, int access);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *base, size_t size, int access);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *base, size_t size, int access)
{
    errno = seen.register_error;
    return seen.register_error ? NULL : __real_ibv_reg_mr(pd, base, size, access);
}

/* Open MPI, which is not started here. */
mca_rcache_base_module_t *__wrap_mca_rcache_base_module_create(const char *name, void *owner,
                                                               mca_rcache_base_resources_t *cache);
mca_rcache_base_module_t *__wrap_mca_rcache_base_module_create(const char *name, void *owner,
                                                               mca_rcache_base_resources_t *cache)
{
    static mca_rcache_base_module_t made;

    (void) name, (void) owner;
    seen.cache = *cache;
    return &made;
}
int __wrap_verbs_works_open(struct verbs_module *module);
int __wrap_verbs_works_open(struct verbs_module *module)
{
    (void) module;
    return OPAL_SUCCESS;
}

/* --- the device --- */

static struct verbs_module *device_open(void)
{
    static const mca_btl_base_module_t model = {.btl_flags =
                                                    MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_ATOMIC_FOPS,
                                                .btl_max_send_size = 4096,
                                                .btl_put_limit = 1 << 20,
                                                .btl_get_limit = 1 << 20};

    verbs.devices = "auto";
    verbs.gid_index = -1;
    verbs.dmabuf.text = "none";
    verbs.depth = (struct choice_depth){.requests = 32, .inline_bytes = 256};
    verbs.receive_buffers = verbs.receive_buffers_most = 64;
    OBJ_CONSTRUCT(&verbs.record_lock, opal_mutex_t);
    verbs_device_open_all(&model);
    return verbs.module_count != 0 ? verbs.modules[0] : NULL;
}

static struct choice_address *address(void)
{
    return &verbs.record.ports[0].address;
}

/* What refreshing finds once that has happened to the port. */
static const char *after(struct verbs_module *module, const char *event)
{
    CHECK(strict_verbs_event(event, 0, 1), "no event %s", event);
    return verbs_device_refresh(module);
}

/* --- cases --- */

static void address_in_use_stays_where_another_comes_before_it(void)
{
    struct verbs_module *module = device_open();
    uint32_t index = module->gid_index;
    const char *changed = after(module, "address");

    CHECK(!changed && module->gid_index == index, "%s, index %u", changed, module->gid_index);
}

static void lost_address_is_seen(void)
{
    struct verbs_module *module = device_open();
    const char *changed = after(module, "gid");

    CHECK(changed && strstr(changed, "GID of its port has changed"), "%s", changed);
}

/* While its interface was made anew the port had to take another. */
static void address_that_is_back_is_taken_again(void)
{
    struct verbs_module *module = device_open();
    uint32_t index = module->gid_index;
    const uint8_t last = address()->gid[15];

    address()->gid[15]++;
    module->gid_index = 1;
    const char *changed = after(module, "sm");
    CHECK(changed && module->gid_index == index && address()->gid[15] == last, "index %u",
          module->gid_index);
}

static void table_that_cannot_be_read_says_nothing(void)
{
    struct verbs_module *module = device_open();

    seen.no_table = true;
    const char *changed = after(module, "sm");
    CHECK(!changed && module->look_due, "%s", changed);
    seen.no_table = false;
    changed = after(module, "gid");
    CHECK(changed && !module->look_due, "it is not looked at again");
}

static void only_the_best_address_is_tried(void)
{
    CHECK(device_open() && seen.paths == 1, "%u paths", seen.paths);
}

static void device_without_paths_is_named(void)
{
    seen.no_paths = true;
    CHECK(!device_open() && strstr(seen.said, "no path can begin at its 4 GIDs"), "%s", seen.said);
}

static void inline_size_is_the_one_given(void)
{
    struct verbs_module *module = device_open();

    CHECK(module && module->inline_max == 16, "%u bytes", module ? module->inline_max : 0);
}

static void device_that_does_not_answer_is_named(void)
{
    seen.questions = 0;
    CHECK(!device_open() && strstr(seen.said, "mlx5_0: it cannot be asked what it is"), "%s",
          seen.said);
}

static void port_that_does_not_answer_is_named(void)
{
    seen.questions = 1;
    CHECK(!device_open() && strstr(seen.said, "mlx5_0:1: it cannot be asked what it is"), "%s",
          seen.said);
}

static void lowered_mtu_is_taken(void)
{
    struct verbs_module *module = device_open();
    const char *changed = after(module, "mtu");

    CHECK(!changed && module->mtu == IBV_MTU_1024 && verbs.record.ports[0].mtu == IBV_MTU_1024,
          "%s, MTU %d and %u", changed, (int) module->mtu, verbs.record.ports[0].mtu);
}

/* Peers know it by the record that was published, and must pair ports as this end does. */
static void what_pairs_ports_stays(void)
{
    struct verbs_module *module = device_open();

    address()->is_far = 1;
    address()->rails = 7;
    address()->megabits = 5;
    (void) after(module, "reregister");
    CHECK(address()->is_far == 1 && address()->rails == 7 && address()->megabits == 5,
          "far %u, %u rails, %u Mbit/s", address()->is_far, address()->rails, address()->megabits);
}

/* osc/rdma of Open MPI 4.1 takes a lane of such atomics for one to the process itself. */
static void atomics_are_never_said_to_be_global(void)
{
    struct verbs_module *module = device_open();

    CHECK(module->atomics && !(module->super.btl_atomic_flags & MCA_BTL_ATOMIC_SUPPORTS_GLOB),
          "flags %#x", (unsigned) module->super.btl_atomic_flags);
}

/* Only a lack of room is one that Open MPI's cache makes room for. */
static void registration_that_is_refused_evicts_none(void)
{
    static const struct {
        int error, status;
    } each[] = {{ENOMEM, OPAL_ERR_OUT_OF_RESOURCE},
                {EFAULT, OPAL_ERROR},
                {EINVAL, OPAL_ERROR},
                {EOPNOTSUPP, OPAL_ERROR}};
    struct verbs_module *module = device_open();
    unsigned char room[1024] = {0};

    CHECK(seen.cache.sizeof_reg <= sizeof(room), "%zu bytes", seen.cache.sizeof_reg);
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        seen.register_error = each[i].error;
        int status = seen.cache.register_mem(module, room, sizeof(room),
                                             (mca_rcache_base_registration_t *) (void *) room);
        CHECK(status == each[i].status, "%s: %d", strerror(each[i].error), status);
    }
}

int main(void)
{
    int failed = 0;

    failed += case_run("hns", address_in_use_stays_where_another_comes_before_it);
    failed += case_run("hns", lost_address_is_seen);
    failed += case_run("hns", address_that_is_back_is_taken_again);
    failed += case_run("hns", table_that_cannot_be_read_says_nothing);
    failed += case_run("hns", only_the_best_address_is_tried);
    failed += case_run("hns", device_without_paths_is_named);
    failed += case_run("mlx5,inline_given=16", inline_size_is_the_one_given);
    failed += case_run("mlx5", device_that_does_not_answer_is_named);
    failed += case_run("mlx5", port_that_does_not_answer_is_named);
    failed += case_run("hns", lowered_mtu_is_taken);
    failed += case_run("mlx5", what_pairs_ports_stays);
    failed += case_run("bnxt,atomics=global", atomics_are_never_said_to_be_global);
    failed += case_run("mlx5", registration_that_is_refused_evicts_none);
    return failed;
}
