/* SPDX-License-Identifier: BSD-3-Clause */
/* What a pointer is and how device memory is copied, against the stand-in for the driver. Each case
 * is a process of its own, because a driver is loaded once. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"
#include "common/memory/device_measure.h"
#include "common/memory/kernels.h"
#include "common/memory/packer.h"
#include "common/memory/host_only.h"
#include "test/fake/cuda_calls.h"

static driver_ptr ptr(const void *address)
{
    return (driver_ptr) (uintptr_t) address;
}

static void *address(driver_ptr pointer)
{
    return (void *) (uintptr_t) pointer;
}

static const char *words(driver_result result)
{
    static char text[160];
    return driver_words(result, text, sizeof(text));
}

static enum memory_kind kind_of(const void *address)
{
    struct memory memory;
    memory_look(address, &memory);
    return memory.kind;
}

/* Loads the stand-in as a program would have, and ours with it. */
static void stand_in_load(void)
{
    void *library = dlopen("test/fake/libcuda.so.1", RTLD_NOW);
    CHECK(library, "%s", dlerror());
    CHECK(driver_load(), "%s", driver_why());
    CHECK(driver_why()[0] == '\0', "%s", driver_why());
}

static driver_context device_begin(int device)
{
    driver_context context = NULL;
    stand_in_load();
    driver.init(0);
    driver.primary_retain(&context, device);
    driver.context_push(context);
    return context;
}

static driver_ptr device_alloc(size_t size)
{
    driver_ptr pointer = 0;
    driver_result result = driver.mem_alloc(&pointer, size);
    CHECK(result == DRIVER_SUCCESS, "%s", words(result));
    return pointer;
}

/* --- cases --- */

static void without_a_driver_all_is_the_hosts(void)
{
    int local;
    dlerror(); /* from here on */
    if (driver_expected()[0] == '\0')
        return; /* this machine may have one */
    CHECK(!driver_load(), "a driver was found");
    CHECK(strstr(driver_why(), "no CUDA device"), "%s", driver_why());
    CHECK(!dlerror(), "it was looked for in the folders of libraries");
    CHECK(kind_of(&local) == MEMORY_HOST, "a local variable");
}

static void before_the_program_starts_the_driver_all_is_the_hosts(void)
{
    int local;
    stand_in_load();
    CHECK(kind_of(&local) == MEMORY_HOST, "a local variable");
    CHECK(kind_of(NULL) == MEMORY_HOST, "null");
}

static void every_kind_is_told(void)
{
    driver_ptr managed = 0;
    void *pinned = NULL;
    struct memory memory;
    driver_context context = device_begin(1);
    driver_ptr device = device_alloc(10000);
    cuda_alloc_managed(&managed, 100);
    driver.mem_host_alloc(&pinned, 100, 0);
    memory_ask(address(device + 9999), &memory);
    CHECK(memory.kind == MEMORY_DEVICE, "%d", memory.kind);
    CHECK(memory.context == context && memory.device == 1, "device %d", memory.device);
    CHECK(memory.start == device && memory.size == 10000, "%zu bytes", memory.size);
    CHECK(memory.ipc_capable, "cannot be shared");
    CHECK(kind_of(address(managed)) == MEMORY_MANAGED, "managed");
    CHECK(kind_of(pinned) == MEMORY_HOST, "pinned");
    CHECK(kind_of(address(device - 1)) == MEMORY_HOST, "before it");
}

/* --- what a device costs --- */

static struct device_measure measure_begin(double seconds)
{
    driver_result result;
    struct device_measure measure = {.seconds = seconds, .rounds = 3};
    device_begin(0);
    measure.block = device_alloc(DEVICE_BLOCK_BYTES);
    measure.copier = copier_of_device(0, &result);
    CHECK(measure.copier, "%s", words(result));
    measure.pinned = copier_pin(measure.copier, DEVICE_PINNED_BYTES, &result);
    CHECK(measure.pinned, "%s", words(result));
    return measure;
}

static void every_copy_of_a_device_is_measured(void)
{
    struct device_costs costs;
    struct device_measure measure = measure_begin(60);
    CHECK(device_measure(&measure, &costs) && device_costs_check(&costs), "not measured");
    costs.to_host.growth_s_byte = -1;
    CHECK(!device_costs_check(&costs), "a negative time of a byte");
}

/* Of a device in turns each copy waits for its turn: 145 us, and once a little less for the large
 * one. */
static void what_bytes_add_is_told_from_what_a_copy_takes(void)
{
    const double size = (double) DEVICE_PINNED_BYTES;
    struct cost_line line = device_line(6e-6, 26e-6);
    CHECK(fabs(line.fixed_s + line.growth_s_byte * size - 26e-6) < 1e-9 && line.fixed_s > 5e-6,
          "6 us and 26 us: %g s and %g s a byte", line.fixed_s, line.growth_s_byte);
    line = device_line(145.2e-6, 145.1e-6);
    CHECK(line.fixed_s > 140e-6 && line.growth_s_byte * size < 2e-6 && line.growth_s_byte > 0,
          "twice 145 us: %g s and %g s a byte", line.fixed_s, line.growth_s_byte);
    line = device_line(1e-6, 1e-3); /* all of it is bytes */
    CHECK(line.fixed_s == 0 && line.growth_s_byte * size < 1.1e-3,
          "1 us and 1 ms: %g s and %g s a byte", line.fixed_s, line.growth_s_byte);
}

static long stand_in_call(const char *name)
{
    long (*call)(void);
    void *library = dlopen("test/fake/libcuda.so.1", RTLD_NOW);
    void *symbol = dlsym(library, name);
    memcpy(&call, &symbol, sizeof(call));
    dlclose(library);
    return call();
}

/* Or a program that waits for the message whose buffer it is would wait for ever. */
static void kernels_of_the_program_are_not_waited_for(void)
{
    struct device_costs costs;
    struct device_measure measure = measure_begin(60);
    CHECK(!device_measure(&measure, &costs) && measure.is_late, "measured");
    CHECK(!device_costs_check(&costs), "something is left");
    measure.is_late = false;
    CHECK(!device_take_turn(&measure) && measure.is_late, "it had a turn");
    stand_in_call("multilane_standin_release");
    CHECK(device_take_turn(&measure) && !measure.is_late, "it had no turn");
    copiers_close();
}

/* Each takes longer than the time that is given. */
static void what_takes_too_long_is_not_measured(void)
{
    struct device_costs costs;
    struct device_measure measure = measure_begin(0.001);
    CHECK(!device_measure(&measure, &costs), "measured");
    CHECK(!device_costs_check(&costs) && costs.to_device.growth_s_byte == 0, "something is left");
}

static void failing_copies_are_not_measured(void)
{
    struct device_costs costs;
    struct device_measure measure = measure_begin(60);
    CHECK(!device_measure(&measure, &costs), "measured");
    CHECK(!device_costs_check(&costs), "something is left");
}

/* --- what the driver is not asked about --- */

static long questions(void)
{
    return stand_in_call("multilane_standin_questions");
}

static int variable;

static void *other_stack(void *local)
{
    int own = 0;
    CHECK(host_only_contains(&own), "a local variable of a thread");
    CHECK(!host_only_contains(local), "a local variable of another thread");
    return NULL;
}

static ucontext_t made, back;
static void *mapped;

/* On a stack of the program's making, that of the thread is not in use from here on. */
static void made_stack(void)
{
    int own = 0;
    CHECK(!host_only_contains(&own), "a local variable on a stack in mapped memory");
    CHECK(!host_only_contains(mapped), "mapped memory");
}

static void what_can_only_be_the_hosts_asks_nothing(void)
{
    enum { BYTES = 1 << 16 };
    int local = 0;
    pthread_t thread;
    device_begin(0);
    driver_ptr device = device_alloc(BYTES);
    void *on_heap = malloc(100);
    long before = questions();
    CHECK(kind_of(&local) == MEMORY_HOST, "a local variable");
    CHECK(kind_of(&variable) == MEMORY_HOST, "a variable");
    CHECK(kind_of(on_heap) == MEMORY_HOST, "the heap");
    if (host_only_contains(on_heap)) /* a sanitizer's is not where the system has it */
        CHECK(questions() == before, "the driver was asked %ld times", questions() - before);
    CHECK(host_only_contains(&local) && host_only_contains(&variable), "variables");
    CHECK(!host_only_contains(address(device)), "device memory");
    mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(!host_only_contains(mapped), "mapped memory");
    CHECK(kind_of(mapped) == MEMORY_HOST && questions() > before, "it was not asked about");
    pthread_create(&thread, NULL, other_stack, &local);
    pthread_join(thread, NULL);
/* The sanitizers do not follow a thread to another stack. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    getcontext(&made);
    made.uc_stack.ss_sp = mapped;
    made.uc_stack.ss_size = BYTES;
    made.uc_link = &back;
    makecontext(&made, made_stack, 0);
    swapcontext(&back, &made);
#else
    (void) made_stack;
    (void) back;
    (void) made;
#endif
    free(on_heap);
}

/* What was the heap and was given back may be anything. */
static void the_heap_ends_where_the_system_says(void)
{
    enum { BYTES = 1 << 20 };
    device_begin(0);
    if (!host_only_contains(malloc(100)))
        return;
    char *end = sbrk(BYTES);
    if (end == (void *) -1)
        return;
    CHECK(host_only_contains(end + 4096), "the heap has grown");
    sbrk(-BYTES);
    CHECK(!host_only_contains(end + 4096), "the heap has shrunk");
    CHECK(!host_only_contains((char *) sbrk(0)), "behind the heap");
}

static void another_allocation_has_another_id(void)
{
    struct memory first, second;
    device_begin(0);
    driver_ptr one = device_alloc(1 << 20);
    memory_ask(address(one), &first);
    driver.mem_free(one);
    CHECK(kind_of(address(one)) == MEMORY_FREED, "freed device memory");
    driver_ptr two = device_alloc(1 << 20);
    memory_ask(address(two), &second);
    CHECK(second.kind == MEMORY_DEVICE, "%d", second.kind);
    CHECK(first.buffer_id != second.buffer_id, "%llu", (unsigned long long) first.buffer_id);
}

static void copies_arrive(void)
{
    enum { SIZE = 100000 };
    static unsigned char out[SIZE], in[SIZE];
    driver_result result;
    struct memory memory;
    device_begin(0);
    driver_ptr device = device_alloc(SIZE);
    memory_ask(address(device), &memory);
    struct copier *copier = copier_get(&memory, &result);
    CHECK(copier, "%s", words(result));
    CHECK(copier == copier_get(&memory, &result), "a context has two copiers");
    for (int i = 0; i < SIZE; i++)
        out[i] = (unsigned char) (i * 7);
    copier_copy(copier, COPY_TO_DEVICE, device, ptr(out), SIZE);
    copier_wait(copier, COPY_TO_DEVICE);
    result = copier_copy(copier, COPY_TO_HOST, ptr(in), device, SIZE);
    copier_wait(copier, COPY_TO_HOST);
    CHECK(result == DRIVER_SUCCESS && memcmp(in, out, SIZE) == 0, "%s", words(result));

    /* Ten bytes of every hundred, packed. */
    const struct copy_shape rows = {{ptr(in), 10, 0}, {device + 3, 100, 0}, 10, 500, 1};
    result = copier_copy_shape(copier, COPY_TO_HOST, &rows);
    copier_wait(copier, COPY_TO_HOST);
    CHECK(result == DRIVER_SUCCESS, "%s", words(result));
    for (int i = 0; i < 5000; i++)
        CHECK(in[i] == out[3 + i / 10 * 100 + i % 10], "byte %d of rows", i);

    /* Part of a cube of 50 x 20 x 100 bytes: 7 rows of 10 bytes in each of 50 planes. */
    const struct copy_shape planes = {{ptr(in), 10, 7}, {device + 3, 100, 20}, 10, 7, 50};
    result = copier_copy_shape(copier, COPY_TO_HOST, &planes);
    copier_wait(copier, COPY_TO_HOST);
    CHECK(result == DRIVER_SUCCESS, "%s", words(result));
    for (int i = 0; i < 3500; i++)
        CHECK(in[i] == out[3 + i / 70 * 2000 + i / 10 % 7 * 100 + i % 10], "byte %d of planes", i);
    copiers_close();
}

static void a_mark_is_reached_after_the_copy(void)
{
    static unsigned char pattern[] = "not yet there";
    driver_result result;
    driver_event event, again;
    struct memory memory;
    device_begin(0);
    driver_ptr device = device_alloc(100);
    memory_ask(address(device), &memory);
    struct copier *copier = copier_get(&memory, &result);
    unsigned char *pinned = copier_pin(copier, 100, &result);
    CHECK(pinned, "%s", words(result));
    memset(pinned, 0, 100);
    cuda_copy(device, ptr(pattern), sizeof(pattern));
    copier_copy(copier, COPY_TO_HOST, ptr(pinned), device, sizeof(pattern));
    copier_event_record(copier, COPY_TO_HOST, &event);
    while ((result = copier_event_test(event)) == DRIVER_NOT_READY)
        usleep(100);
    CHECK(result == DRIVER_SUCCESS && memcmp(pinned, pattern, sizeof(pattern)) == 0, "%s",
          words(result));
    copier_event_return(copier, event);
    copier_event_record(copier, COPY_TO_DEVICE, &again);
    CHECK(again == event, "events are not used again");
    copier_wait(copier, COPY_TO_DEVICE);
    copier_event_return(copier, again);
    copier_unpin(copier, pinned);
    copiers_close();
}

static void a_failed_copy_is_reported_by_its_mark(void)
{
    driver_result result;
    driver_event event;
    struct memory memory;
    static char host[10];
    device_begin(0);
    driver_ptr device = device_alloc(10);
    memory_ask(address(device), &memory);
    struct copier *copier = copier_get(&memory, &result);
    copier_copy(copier, COPY_TO_DEVICE, device, ptr(host), 10);
    copier_event_record(copier, COPY_TO_DEVICE, &event);
    while ((result = copier_event_test(event)) == DRIVER_NOT_READY)
        usleep(100);
    CHECK(result == DRIVER_ILLEGAL_ADDRESS, "%s", words(result));
    CHECK(strstr(words(result), "CUDA_ERROR_ILLEGAL_ADDRESS"), "%s", words(result));
}

static long event_creates(void)
{
    long (*calls)(const char *name);
    void *library = dlopen("test/fake/libcuda.so.1", RTLD_NOW);
    void *symbol = dlsym(library, "multilane_standin_calls");
    dlclose(library);
    memcpy(&calls, &symbol, sizeof(calls));
    return symbol ? calls("cuEventCreate") : -1;
}

static void a_mark_that_cannot_be_set_is_kept(void)
{
    driver_result result;
    driver_event event;
    device_begin(0);
    struct copier *copier = copier_of_device(0, &result);
    driver_stream stream = copier->streams[COPY_TO_HOST];
    copier->streams[COPY_TO_HOST] = NULL;
    for (int i = 0; i < 3; i++)
        CHECK(copier_event_record(copier, COPY_TO_HOST, &event) != DRIVER_SUCCESS, "it was set");
    copier->streams[COPY_TO_HOST] = stream;
    CHECK(event_creates() == 1, "%ld events", event_creates());
    copiers_close();
}

static void no_pinned_memory_is_an_error(void)
{
    driver_result result;
    device_begin(0);
    struct copier *copier = copier_of_device(0, &result);
    CHECK(copier && !copier_pin(copier, 100, &result), "pinned memory was there");
    CHECK(result == DRIVER_OUT_OF_MEMORY, "%s", words(result));
}

/* DRIVER_SUCCESS, or what the driver says of it. */
static driver_result flushed(void)
{
    driver_result result;
    device_begin(0);
    struct copier *copier = copier_of_device(1, &result);
    return copier ? copier_flush(copier) : result;
}

static void what_others_wrote_is_flushed(void)
{
    driver_result result = flushed();
    CHECK(result == DRIVER_SUCCESS, "%s", words(result));
}

static void a_driver_that_does_not_flush_is_not_called(void)
{
    driver_result result = flushed();
    CHECK(result == DRIVER_NOT_SUPPORTED, "%s", words(result));
    driver.remote_flush = NULL;
    result = flushed();
    CHECK(result == DRIVER_NOT_SUPPORTED, "%s", words(result));
}

static void a_flush_that_fails_is_reported(void)
{
    driver_result result = flushed();
    CHECK(result == DRIVER_ILLEGAL_ADDRESS, "%s", words(result));
}

/* Whether a flush is needed. */
static bool is_flushed(void)
{
    driver_result result;
    device_begin(0);
    struct copier *copier = copier_of_device(1, &result);
    CHECK(copier, "%s", words(result));
    return !copier || copier->needs_flush;
}

static void what_a_device_orders_is_not_flushed(void)
{
    CHECK(!is_flushed(), "a flush is needed");
}

static void what_a_device_does_not_order_is_flushed(void)
{
    CHECK(is_flushed(), "no flush is needed");
}

static void a_driver_that_does_not_tell_the_order_is_asked_to_flush(void)
{
    driver_result result;
    device_begin(0);
    driver.device_attribute = NULL;
    struct copier *copier = copier_of_device(0, &result);
    CHECK(copier && copier->needs_flush, "no flush is needed");
}

/* A program that resets its device again and again. */
static void contexts_come_and_go(void)
{
    enum { RESETS = 400 };
    driver_result result;
    device_begin(0);
    for (int reset = 0; reset < RESETS; reset++) {
        struct copier *copier = copier_of_device(0, &result);
        CHECK(copier && !copier_is_gone(copier), "context %d: %s", reset, words(result));
        CHECK(copier == copier_of_device(0, &result), "context %d has two copiers", reset);
        cuda_reset(0);
        CHECK(copier && !copier_is_alive(copier), "context %d is still there", reset);
    }
    copiers_close();
}

static void a_context_that_has_ended_is_noticed_with_the_next(void)
{
    driver_result result;
    device_begin(0);
    struct copier *copier = copier_of_device(0, &result);
    cuda_reset(0);
    CHECK(!copier_is_gone(copier), "it was noticed before");
    copier_of_device(1, &result);
    CHECK(copier_is_gone(copier), "it was not noticed");
    copiers_close();
}

static void a_device_that_is_not_there_is_an_error(void)
{
    driver_result result;
    device_begin(0);
    CHECK(!copier_of_device(7, &result), "there are two devices");
    CHECK(result == DRIVER_INVALID_DEVICE, "%s", words(result));
}

static void an_old_driver_is_refused_by_name(void)
{
    CHECK(dlopen("test/fake/libcuda.so.1", RTLD_NOW), "%s", dlerror());
    CHECK(!driver_load(), "it was taken");
    CHECK(strstr(driver_why(), "too old"), "%s", driver_why());
}

static void a_function_that_is_missing_is_named(void)
{
    CHECK(dlopen("test/fake/libcuda.so.1", RTLD_NOW), "%s", dlerror());
    CHECK(!driver_load(), "it was taken");
    CHECK(strstr(driver_why(), "it has no cuMemcpyAsync"), "%s", driver_why());
}

/* The device's files may not be opened: its memory is nowhere. */
static void a_driver_that_does_not_start_leaves_the_host_alone(void)
{
    static char bytes[10];
    void *mapped = malloc((size_t) 64 << 20);
    driver_result result;
    stand_in_load();
    CHECK(driver.init(0) == DRIVER_UNKNOWN, "it has started");
    CHECK(kind_of(bytes) == MEMORY_HOST && kind_of(mapped) == MEMORY_HOST, "it is a device's");
    CHECK(!copier_of_device(0, &result) && result == DRIVER_NOT_INITIALIZED, "%s", words(result));
    free(mapped);
}

/* Of memory: each call takes back its own only, and gives a handle for a first byte only. */
static void the_stand_in_permits_no_other_memory(void)
{
    struct driver_ipc_handle handle;
    void *pinned = NULL;
    device_begin(0);
    driver_ptr device = device_alloc(100);
    CHECK(driver.init(1) == DRIVER_INVALID_VALUE, "a flag was taken");
    CHECK(driver.mem_host_alloc(&pinned, 100, DRIVER_HOST_PORTABLE) == DRIVER_SUCCESS, "none");
    CHECK(driver.mem_free(ptr(pinned)) == DRIVER_INVALID_VALUE, "pinned memory was freed");
    CHECK(driver.mem_host_free(address(device)) == DRIVER_INVALID_VALUE, "a device's was freed");
    CHECK(driver.host_unpin(pinned) == DRIVER_NOT_PINNED, "it was not registered");
    CHECK(driver.ipc_export(&handle, device + 1) == DRIVER_INVALID_VALUE, "not the first byte");
    CHECK(driver.ipc_export(&handle, device) == DRIVER_SUCCESS, "the first byte");
}

/* A handle that is held is of one chunk; where one is mapped there is no place for another. */
static void the_stand_in_maps_one_chunk_at_a_place(void)
{
    enum { BYTES = 2 << 20 };
    const struct driver_chunk_properties properties = {.type = DRIVER_CHUNK_PINNED,
                                                       .location = {DRIVER_LOCATION_DEVICE, 0}};
    driver_chunk first, second, held;
    driver_ptr start;
    device_begin(0);
    CHECK(driver.range_reserve(&start, BYTES, 3, 0, 0) == DRIVER_INVALID_VALUE, "alignment 3");
    driver.range_reserve(&start, BYTES, 0, 0, 0);
    cuda_chunk_create(&first, BYTES, &properties);
    CHECK(driver.range_map(start, BYTES, 0, first, 0) == DRIVER_SUCCESS, "not mapped");
    CHECK(driver.chunk_retain(&held, address(start + 1)) == DRIVER_SUCCESS && held == first,
          "another handle than it was mapped by");
    cuda_chunk_create(&second, BYTES, &properties);
    CHECK(second != held, "a handle that is held was given out");
    CHECK(driver.range_map(start, BYTES, 0, second, 0) == DRIVER_INVALID_VALUE, "mapped twice");
    driver.range_unmap(start, BYTES);
    CHECK(driver.range_map(start, BYTES, 0, second, 0) == DRIVER_SUCCESS, "not mapped again");
}

/* --- packing --- */

/* A message of irregular blocks in `memory` bytes of device memory, and what its packed bytes are
 * in the processor's words. */
struct shape {
    struct layout layout;
    uint32_t elements;
    size_t packed_bytes, memory_bytes;
    size_t *place; /* of each packed byte, in memory */
};

/* Blocks of whole units at distances of whole units, in any order; every element has a gap. */
static void shape_make(struct shape *shape, uint64_t *seed, uint32_t blocks, uint32_t unit)
{
    struct layout *layout = &shape->layout;
    size_t at = 0, packed = 0;
    memset(shape, 0, sizeof(*shape));
    layout->block_count = blocks;
    layout->blocks = calloc(blocks + 1, sizeof(*layout->blocks));
    for (uint32_t i = 0; i < blocks; i++) {
        layout->blocks[i].offset = packed;
        layout->blocks[i].displacement = (int64_t) at;
        size_t bytes = unit * (1 + chance_below(seed, 5));
        packed += bytes;
        at += bytes + unit * chance_below(seed, 4);
    }
    layout->blocks[blocks].offset = layout->element_bytes = packed;
    layout->extent = (ptrdiff_t) (at + unit * chance_below(seed, 3));
    shape->elements = 1 + (uint32_t) chance_below(seed, 4);
    shape->packed_bytes = packed * shape->elements;
    shape->memory_bytes = (size_t) layout->extent * shape->elements;
    if (blocks > 1 && chance_below(seed, 2)) { /* two blocks of equal length change places */
        struct pack_block *some = layout->blocks, *last = &layout->blocks[blocks - 1];
        if (some[1].offset == packed - last->offset) {
            int64_t displacement = some->displacement;
            some->displacement = last->displacement;
            last->displacement = displacement;
        }
    }
    shape->place = malloc(shape->packed_bytes * sizeof(*shape->place));
    for (uint32_t element = 0; element < shape->elements; element++)
        for (uint32_t i = 0; i < blocks; i++)
            for (size_t byte = 0; byte < layout_block_bytes(layout, i); byte++)
                shape->place[element * packed + layout->blocks[i].offset + byte] =
                    element * (size_t) layout->extent + (size_t) layout->blocks[i].displacement +
                    byte;
}

static void shape_free(struct shape *shape)
{
    free(shape->layout.blocks);
    free(shape->place);
}

/* Packs bytes [from, from + bytes), and unpacks others to the same places. */
static void shape_check(const struct shape *shape, struct copier *copier, size_t from, size_t bytes)
{
    size_t size = shape->memory_bytes;
    unsigned char *host = malloc(size), *packed = malloc(bytes + 1), *wanted = malloc(size);
    driver_ptr device = ptr(shape->layout.base);
    driver_result result;
    for (size_t i = 0; i < size; i++)
        wanted[i] = host[i] = (unsigned char) (i * 7 + i / 251);
    cuda_copy(device, ptr(host), size);
    result = packer_copy(copier, COPY_TO_HOST, &shape->layout, from, bytes, packed);
    CHECK(result == DRIVER_SUCCESS, "%s", words(result));
    result = copier_wait(copier, COPY_TO_HOST);
    CHECK(result == DRIVER_SUCCESS, "%s", words(result));
    for (size_t i = 0; i < bytes; i++)
        if (packed[i] != host[shape->place[from + i]]) {
            CHECK(false, "packed byte %zu of %zu from %zu", i, bytes, from);
            break;
        }
    for (size_t i = 0; i < bytes; i++) {
        packed[i] = (unsigned char) (i * 11 + 5);
        wanted[shape->place[from + i]] = packed[i];
    }
    packer_copy(copier, COPY_TO_DEVICE, &shape->layout, from, bytes, packed);
    result = copier_wait(copier, COPY_TO_DEVICE);
    CHECK(result == DRIVER_SUCCESS, "%s", words(result));
    cuda_copy(ptr(host), device, size);
    for (size_t i = 0; i < size; i++)
        if (host[i] != wanted[i]) {
            CHECK(false, "byte %zu of the memory, %zu from %zu unpacked", i, bytes, from);
            break;
        }
    free(host);
    free(packed);
    free(wanted);
}

static struct copier *packer_begin(void)
{
    struct error_text why;
    driver_result result;
    device_begin(0);
    CHECK(kernels_choose("test/fake/kernels", &why), "%s", why.text);
    struct copier *copier = copier_of_device(0, &result);
    CHECK(copier, "%s", words(result));
    for (int way = COPY_TO_HOST; way <= COPY_TO_DEVICE; way++) {
        result = packer_ready(copier, (enum copy_direction) way);
        CHECK(result == DRIVER_SUCCESS, "%s", words(result));
    }
    return copier;
}

static void shape_at(struct shape *shape, driver_ptr device)
{
    shape->layout.base = address(device);
    layout_end(&shape->layout);
}

static void any_blocks_are_packed_and_unpacked(void)
{
    uint64_t seed = 20;
    struct copier *copier = packer_begin();
    for (int round = 0; round < 60; round++) {
        struct shape shape;
        uint32_t unit = 1u << chance_below(&seed, 5);
        shape_make(&shape, &seed, 1 + (uint32_t) chance_below(&seed, 40), unit);
        driver_ptr device = device_alloc(shape.memory_bytes);
        shape_at(&shape, device);
        CHECK(shape.layout.word >= (unit < 8 ? unit : 8), "a word of %u", shape.layout.word);
        shape_check(&shape, copier, 0, shape.packed_bytes);
        size_t from = chance_below(&seed, shape.packed_bytes);
        shape_check(&shape, copier, from, 1 + chance_below(&seed, shape.packed_bytes - from));
        driver.mem_free(device);
        shape_free(&shape);
    }
    packers_close();
    copiers_close();
}

/* More blocks than a table holds, more bytes than there is room for, messages that take turns. */
static void large_messages_are_packed_in_parts(void)
{
    uint64_t seed = 21;
    struct shape shapes[3];
    struct copier *copier = packer_begin();
    shape_make(&shapes[0], &seed, 40000, 8);
    shape_make(&shapes[1], &seed, 5, 16384);
    shape_make(&shapes[2], &seed, 100, 4);
    for (int i = 0; i < 3; i++)
        shape_at(&shapes[i], device_alloc(shapes[i].memory_bytes));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            size_t from = round ? shapes[i].packed_bytes / 3 : 0;
            size_t bytes = shapes[i].packed_bytes - from;
            shape_check(&shapes[i], copier, from, bytes > 700001 ? 700001 : bytes);
        }
    for (int i = 0; i < 3; i++)
        shape_free(&shapes[i]);
    packers_close();
    copiers_close();
}

/* What is outside of the memory is the device's error, and the stand-in looks at every access. */
static void a_block_outside_is_an_error(void)
{
    uint64_t seed = 22;
    static unsigned char host[1000];
    struct shape shape;
    struct copier *copier = packer_begin();
    shape_make(&shape, &seed, 10, 4);
    shape_at(&shape, device_alloc(shape.memory_bytes));
    shape.layout.blocks[9].displacement = (int64_t) shape.memory_bytes;
    driver_result result = packer_copy(copier, COPY_TO_HOST, &shape.layout, 0,
                                       shape.layout.element_bytes * shape.elements, host);
    if (result == DRIVER_SUCCESS)
        result = copier_wait(copier, COPY_TO_HOST);
    CHECK(result == DRIVER_ILLEGAL_ADDRESS, "%s", words(result));
    shape_free(&shape);
}

static driver_result ready_with(const char *code)
{
    struct error_text why;
    driver_result result;
    device_begin(0);
    CHECK(kernels_choose(code, &why), "%s: %s", code, why.text);
    return packer_ready(copier_of_device(0, &result), COPY_TO_HOST);
}

static void without_kernels_there_is_no_packer(void)
{
    CHECK(ready_with("none") == DRIVER_NOT_SUPPORTED, "it was switched off");
    CHECK(kernels_expected("none")[0] != '\0', "no reason");
}

static void an_old_driver_has_no_packer(void)
{
    CHECK(ready_with("test/fake/kernels") == DRIVER_NOT_SUPPORTED, "the driver has no kernels");
}

static void other_code_is_refused_by_the_driver(void)
{
    CHECK(ready_with("Makefile") == DRIVER_INVALID_IMAGE, "a Makefile is no device code");
}

static void a_code_that_is_not_there_is_refused_by_name(void)
{
    struct error_text why = {""};
    CHECK(!kernels_choose("/nonexistent", &why), "it was taken");
    CHECK(strstr(why.text, "No such file"), "%s", why.text);
}

/* What this build embeds; without an nvcc it says so. */
static void the_code_of_this_build_is_used(void)
{
    bool is_expected = !kernels_expected("auto")[0];
    driver_result result = ready_with("auto");
    CHECK(result == (is_expected ? DRIVER_SUCCESS : DRIVER_NOT_SUPPORTED), "%s", words(result));
}

/* Who takes two parts of a card for one opens memory of the other one's. */
static void parts_of_a_card_are_distinguished(void)
{
    struct driver_uuid first, second;
    device_begin(0);
    CHECK(driver.device_uuid(&first, 0) == DRIVER_SUCCESS, "the first one");
    CHECK(driver.device_uuid(&second, 1) == DRIVER_SUCCESS, "the second one");
    CHECK(memcmp(&first, &second, sizeof(first)) != 0, "they are one");
}

static const struct {
    const char *settings; /* of the stand-in */
    void (*run)(void);
} cases[] = {{"", without_a_driver_all_is_the_hosts},
             {"", before_the_program_starts_the_driver_all_is_the_hosts},
             {"", every_kind_is_told},
             {"", every_copy_of_a_device_is_measured},
             {"held", kernels_of_the_program_are_not_waited_for},
             {"delay-us=2000", what_takes_too_long_is_not_measured},
             {"fail-copy=3", failing_copies_are_not_measured},
             {"", what_can_only_be_the_hosts_asks_nothing},
             {"", the_heap_ends_where_the_system_says},
             {"", another_allocation_has_another_id},
             {"", copies_arrive},
             {"delay-us=20000", a_mark_is_reached_after_the_copy},
             {"fail-copy=1", a_failed_copy_is_reported_by_its_mark},
             {"", a_mark_that_cannot_be_set_is_kept},
             {"no-pinned", no_pinned_memory_is_an_error},
             {"devices=2", what_others_wrote_is_flushed},
             {"no-flush", a_driver_that_does_not_flush_is_not_called},
             {"flush-fails", a_flush_that_fails_is_reported},
             {"delay-us=0", any_blocks_are_packed_and_unpacked},
             {"delay-us=100,no-pinned", large_messages_are_packed_in_parts},
             {"", large_messages_are_packed_in_parts},
             {"", a_block_outside_is_an_error},
             {"", without_kernels_there_is_no_packer},
             {"no-kernels", an_old_driver_has_no_packer},
             {"", other_code_is_refused_by_the_driver},
             {"", a_code_that_is_not_there_is_refused_by_name},
             {"", the_code_of_this_build_is_used},
             {"orders=200", what_a_device_orders_is_not_flushed},
             {"orders=100", what_a_device_does_not_order_is_flushed},
             {"", what_a_device_does_not_order_is_flushed},
             {"orders=200,host-pages", what_a_device_does_not_order_is_flushed},
             {"orders=200", a_driver_that_does_not_tell_the_order_is_asked_to_flush},
             {"delay-us=0", contexts_come_and_go},
             {"devices=2", a_context_that_has_ended_is_noticed_with_the_next},
             {"devices=2", a_device_that_is_not_there_is_an_error},
             {"devices=2,mig", parts_of_a_card_are_distinguished},
             {"", what_bytes_add_is_told_from_what_a_copy_takes},
             {"", the_stand_in_permits_no_other_memory},
             {"", the_stand_in_maps_one_chunk_at_a_place},
             {"without=cuMemcpyAsync", a_function_that_is_missing_is_named},
             {"init-fails", a_driver_that_does_not_start_leaves_the_host_alone},
             {"old", an_old_driver_is_refused_by_name}};

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
