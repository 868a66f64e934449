/* SPDX-License-Identifier: BSD-3-Clause */
/* When device memory is registered by dmabuf, what for, and when that is given back: against the
 * stand-in for the CUDA driver and an RDMA device that exists in this file. Each case is a process
 * of its own, because a driver is loaded once. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btl/verbs/dmabuf.h"
#include "check.h"
#include "test/fake/cuda_calls.h"

/* --- a device -----------------------------------------------------------------------------------
 */

static struct {
    int refusal;      /* errno of a device that takes no dmabuf; 0: it takes them */
    unsigned most_mr; /* more are refused */
    unsigned mr_count, registered;
    uint64_t address, length;
    off_t position;
    int fd;
} device = {.most_mr = 10000};

static struct ibv_mr *device_register(uint64_t length, uint64_t address, int fd)
{
    off_t position = lseek(fd, 0, SEEK_CUR);
    if (device.refusal || position < 0 || device.mr_count == device.most_mr) {
        errno = device.refusal ? device.refusal : position < 0 ? EBADF : ENOMEM;
        return NULL;
    }
    device.mr_count++;
    device.registered++;
    device.address = address;
    device.length = length;
    device.position = position;
    device.fd = fd;
    return calloc(1, sizeof(struct ibv_mr));
}

/* In the place of libibverbs', which this program is not linked with. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                 uint64_t address, int fd, int access)
{
    (void) pd;
    CHECK(offset == 0, "offset %llu", (unsigned long long) offset);
    CHECK(access & IBV_ACCESS_REMOTE_READ, "what cannot be read cannot be flushed");
    return device_register(length, address, fd);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    device.mr_count--;
    free(mr);
    return 0;
}

/* --- what cases need ----------------------------------------------------------------------------
 */

static struct ibv_pd pd;
static struct dmabuf_cache cache;
static struct error_text refusal;
static const char *const why = refusal.text;

static void stand_in_load(void)
{
    void *library = dlopen("test/fake/libcuda.so.1", RTLD_NOW);
    CHECK(library && driver_load(), "%s", driver_why());
}

static void begin(void)
{
    driver_context context;
    stand_in_load();
    driver.init(0);
    driver.primary_retain(&context, 0);
    driver.context_push(context);
    verbs_dmabuf_open(&cache, &pd);
}

static driver_ptr memory_new(size_t size)
{
    driver_ptr pointer = 0;
    CHECK(driver.mem_alloc(&pointer, size) == DRIVER_SUCCESS, "no memory");
    return pointer;
}

static struct dmabuf_region *registered(driver_ptr address, size_t size)
{
    refusal.text[0] = '\0';
    return verbs_dmabuf_register(&cache, (void *) (uintptr_t) address, size, &refusal);
}

static bool is_supported(void)
{
    refusal.text[0] = '\0';
    return verbs_dmabuf_is_supported(&pd, &refusal);
}

/* --- cases --------------------------------------------------------------------------------------
 */

static void a_device_that_minds_the_descriptor_takes_dmabufs(void)
{
    begin();
    CHECK(is_supported() && !why[0], "%s", why);
}

static void a_device_that_knows_no_dmabuf_is_told_by_its_error(void)
{
    begin();
    device.refusal = EOPNOTSUPP;
    CHECK(!is_supported() && strstr(why, "registers no dmabuf"), "%s", why);
}

static void a_driver_whose_devices_give_none_is_refused(void)
{
    begin();
    CHECK(!is_supported() && strstr(why, "gives no dmabuf"), "%s", why);
    CHECK(!registered(memory_new(100), 100) && strstr(why, "gives no dmabuf"), "%s", why);
}

static void an_older_driver_is_refused_by_name(void)
{
    begin();
    driver.range_handle = NULL;
    CHECK(!is_supported() && strstr(why, "cuMemGetHandleForAddressRange"), "%s", why);
}

static void a_driver_that_was_not_started_is_believed(void)
{
    stand_in_load();
    CHECK(is_supported(), "%s", why);
}

static void without_a_driver_there_is_no_device_memory(void)
{
    if (driver_expected()[0] == '\0')
        return; /* this machine may have one */
    CHECK(!is_supported() && strstr(why, "no CUDA device"), "%s", why);
}

/* The system's, or that of a kernel with larger ones. */
static long made_up_page;

/* In place of the C library's, by the linker's --wrap. */
long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name)
{
    return name == _SC_PAGESIZE && made_up_page ? made_up_page : __real_sysconf(name);
}

static void pages_are_registered(void)
{
    driver_ptr page = (driver_ptr) sysconf(_SC_PAGESIZE);
    begin();
    driver_ptr memory = memory_new(11 * page), start = (memory + page - 1) / page * page;
    bool is_whole = start == memory; /* else whole pages would begin before it */
    driver_ptr first = is_whole ? start : start + 2 * page;
    CHECK(registered(start + 2 * page + 100, 2 * page), "%s", why);
    CHECK(device.address == first, "%llx", (unsigned long long) device.address);
    CHECK(device.length == (is_whole ? 11 : 3) * page, "%llu bytes",
          (unsigned long long) device.length);
    CHECK(device.position == (off_t) (first - memory), "at %lld", (long long) device.position);
    CHECK(fcntl(device.fd, F_GETFD) < 0, "the descriptor was left open");
    CHECK(registered(start + 9 * page, page), "the last page: %s", why);
}

static void whole_pages_are_registered_at_their_own_address(void)
{
    pages_are_registered();
}

static void so_are_pages_of_16_kib(void)
{
    made_up_page = 16384;
    pages_are_registered();
}

static void so_are_pages_of_64_kib(void)
{
    made_up_page = 65536;
    pages_are_registered();
}

static void the_same_memory_is_registered_once(void)
{
    begin();
    driver_ptr start = memory_new(1 << 20);
    struct dmabuf_region *one = registered(start, 1 << 20);
    CHECK(one && registered(start + 5000, 70000) == one, "a part of it");
    verbs_dmabuf_release(&cache, one);
    verbs_dmabuf_release(&cache, one);
    CHECK(registered(start, 100) == one && device.registered == 1, "%u", device.registered);
    CHECK(registered(memory_new(100), 100) != one && device.registered == 2, "other memory");
}

static void a_thousand_places_of_one_allocation_are_one_registration(void)
{
    begin();
    driver_ptr start = memory_new(1000 * 8192);
    for (unsigned i = 0; i < 1000; i++) {
        struct dmabuf_region *region = registered(start + i * 8192, 4096);
        CHECK(region, "%u: %s", i, why);
        verbs_dmabuf_release(&cache, region);
    }
    CHECK(device.registered == 1, "%u", device.registered);
}

static void freed_memory_is_not_taken_for_what_comes_to_its_place(void)
{
    unsigned met = 0;
    begin();
    driver_ptr start = memory_new(100000);
    for (unsigned i = 0; i < 20; i++) {
        struct dmabuf_region *region = registered(start, 100000);
        CHECK(region && device.registered == i + 1, "%u: %u", i, device.registered);
        CHECK(device.mr_count <= 1, "%u registrations are kept", device.mr_count);
        verbs_dmabuf_release(&cache, region);
        driver.mem_free(start);
        driver_ptr next = memory_new(100000);
        met += next == start;
        start = next;
    }
    CHECK(met > 0, "no address was used again");
}

static void what_is_in_use_stays_when_it_was_freed(void)
{
    begin();
    driver_ptr start = memory_new(100000);
    struct dmabuf_region *region = registered(start, 100);
    struct ibv_mr *mr = region->mr;
    driver.mem_free(start);
    CHECK(registered(memory_new(100000), 100) != region, "the same");
    CHECK(region->mr == mr && device.mr_count == 2, "%u", device.mr_count);
    verbs_dmabuf_release(&cache, region);
    CHECK(registered(memory_new(100000), 100) && device.mr_count == 2, "%u", device.mr_count);
}

static void the_one_not_used_for_longest_makes_room(void)
{
    static driver_ptr starts[DMABUF_REGIONS + 1];
    begin();
    for (unsigned i = 0; i <= DMABUF_REGIONS; i++) {
        struct dmabuf_region *region = registered(starts[i] = memory_new(100), 100);
        CHECK(region, "%u: %s", i, why);
        verbs_dmabuf_release(&cache, region);
        if (i == DMABUF_REGIONS - 1)
            verbs_dmabuf_release(&cache,
                                 registered(starts[0], 100)); /* so it is the second's turn */
    }
    CHECK(device.mr_count == DMABUF_REGIONS, "%u", device.mr_count);
    CHECK(registered(starts[0], 100) && device.registered == DMABUF_REGIONS + 1, "the first");
    CHECK(registered(starts[1], 100) && device.registered == DMABUF_REGIONS + 2, "the second");
}

static void more_than_there_is_room_for_is_refused(void)
{
    begin();
    for (unsigned i = 0; i < DMABUF_REGIONS; i++)
        CHECK(registered(memory_new(100), 100), "%u: %s", i, why);
    CHECK(!registered(memory_new(100), 100) && strstr(why, "in use"), "%s", why);
}

static void a_device_without_room_gets_back_unused_memory(void)
{
    begin();
    device.most_mr = 3;
    for (unsigned i = 0; i < 3; i++)
        verbs_dmabuf_release(&cache, registered(memory_new(100), 100));
    CHECK(registered(memory_new(100), 100) && device.mr_count == 1, "%s", why);
    registered(memory_new(100), 100);
    registered(memory_new(100), 100);
    CHECK(!registered(memory_new(100), 100) && strstr(why, "Cannot allocate memory"), "%s", why);
    CHECK(device.mr_count == 3, "%u", device.mr_count);
}

static void what_has_no_dmabuf_is_refused(void)
{
    driver_ptr managed = 0;
    begin();
    cuda_alloc_managed(&managed, 100);
    CHECK(!registered(managed, 100) && strstr(why, "managed"), "%s", why);
    driver_ptr start = memory_new(100);
    CHECK(!registered(start + 50, 100) && strstr(why, "outside"), "%s", why);
    device.refusal = EINVAL;
    CHECK(!registered(start, 100) && strstr(why, "Invalid argument"), "%s", why);
}

static void the_driver_says_why_it_gives_none(void)
{
    begin();
    CHECK(!registered(memory_new(100), 100) && strstr(why, "CUDA_ERROR_NOT_SUPPORTED"), "%s", why);
    CHECK(device.registered == 0, "%u", device.registered);
}

static void all_is_given_back_at_the_end(void)
{
    begin();
    for (unsigned i = 0; i < 5; i++)
        verbs_dmabuf_release(&cache, registered(memory_new(100), 100));
    verbs_dmabuf_close(&cache);
    verbs_dmabuf_close(&cache);
    CHECK(device.mr_count == 0, "%u", device.mr_count);
}

static const struct {
    const char *settings; /* of the stand-in */
    void (*run)(void);
} cases[] = {{"", a_device_that_minds_the_descriptor_takes_dmabufs},
             {"", a_device_that_knows_no_dmabuf_is_told_by_its_error},
             {"no-dmabuf", a_driver_whose_devices_give_none_is_refused},
             {"", an_older_driver_is_refused_by_name},
             {"", a_driver_that_was_not_started_is_believed},
             {"", without_a_driver_there_is_no_device_memory},
             {"", whole_pages_are_registered_at_their_own_address},
             {"", so_are_pages_of_16_kib},
             {"", so_are_pages_of_64_kib},
             {"", the_same_memory_is_registered_once},
             {"", a_thousand_places_of_one_allocation_are_one_registration},
             {"", freed_memory_is_not_taken_for_what_comes_to_its_place},
             {"", what_is_in_use_stays_when_it_was_freed},
             {"", the_one_not_used_for_longest_makes_room},
             {"", more_than_there_is_room_for_is_refused},
             {"", a_device_without_room_gets_back_unused_memory},
             {"", what_has_no_dmabuf_is_refused},
             {"dmabuf-fails", the_driver_says_why_it_gives_none},
             {"", all_is_given_back_at_the_end}};

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = 0;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("MULTILANE_FAKE_CUDA", cases[i].settings, 1);
            cases[i].run();
            fflush(NULL);
            _exit(check_failures > 0);
        }
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "case %zu: status %d", i, status);
    }
    return check_end();
}
