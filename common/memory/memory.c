/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the driver about pointers, and knows those that it no longer knows. */
#include "common/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/memory/host_only.h"
#include "common/memory/other_devices.h"

/* Ranges of device memory that were seen in use. The driver says of a freed one what it says of the
 * host's: nothing; and touching it would end the program without a word. */
#define RANGES 64

static struct {
    pthread_mutex_t lock; /* guards all but the bounds */
    unsigned next;
    struct {
        driver_ptr start, end;
    } ranges[RANGES];
    /* Around all ranges: widened under the lock, read without it. Relaxed: what another
     * thread is adding right now was not freed before that. */
    _Atomic driver_ptr lowest, highest;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .lowest = ~0ull};

static bool seen_contains(driver_ptr address)
{
    for (unsigned i = 0; i < RANGES; i++)
        if (address >= seen.ranges[i].start && address < seen.ranges[i].end)
            return true;
    return false;
}

static void seen_add(const struct memory *memory)
{
    driver_ptr end = memory->start + memory->size;
    pthread_mutex_lock(&seen.lock);
    if (!seen_contains(memory->start) || !seen_contains(end - 1)) {
        seen.ranges[seen.next].start = memory->start;
        seen.ranges[seen.next].end = end;
        seen.next = (seen.next + 1) % RANGES;
        if (memory->start < atomic_load_explicit(&seen.lowest, memory_order_relaxed))
            atomic_store_explicit(&seen.lowest, memory->start, memory_order_relaxed);
        if (end > atomic_load_explicit(&seen.highest, memory_order_relaxed))
            atomic_store_explicit(&seen.highest, end, memory_order_relaxed);
    }
    pthread_mutex_unlock(&seen.lock);
}

/* Reads a byte by the kernel, which does not crash. Where that is forbidden the answer is yes. It
 * does not reach memory of a device, which the processor may well read. */
static bool is_readable(driver_ptr address)
{
    char byte;
    struct iovec here = {.iov_base = &byte, .iov_len = 1};
    struct iovec there = {.iov_base = (void *) (uintptr_t) address, .iov_len = 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

/* The same, with the processor's own instructions, in the kernel. */
static bool is_touchable(driver_ptr address)
{
    int ends[2];
    if (is_readable(address) || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return true;
    bool is_written = write(ends[1], (const void *) (uintptr_t) address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return is_written;
}

/* Where CUDA has no part: memory of another device, if the processor cannot touch it. It is the
 * host's for us if it can. */
static enum memory_kind kind_without_driver(driver_ptr address)
{
    return !other_devices_possible || is_touchable(address) || !other_devices_library()
               ? MEMORY_HOST
               : MEMORY_OTHER;
}

static enum memory_kind kind_of_unknown(driver_ptr address)
{
    if (address < atomic_load_explicit(&seen.lowest, memory_order_relaxed) ||
        address >= atomic_load_explicit(&seen.highest, memory_order_relaxed))
        return kind_without_driver(address);
    pthread_mutex_lock(&seen.lock);
    bool was_device = seen_contains(address);
    pthread_mutex_unlock(&seen.lock);
    return was_device && !is_readable(address) ? MEMORY_FREED : kind_without_driver(address);
}

/* A program that has not started the driver has no memory of its; a device that is lost answers
 * with what happened to it. */
static enum memory_kind kind_without_answer(driver_ptr address, driver_result result)
{
    if (result == DRIVER_NOT_INITIALIZED)
        return kind_without_driver(address);
    return is_readable(address) ? MEMORY_HOST : MEMORY_LOST;
}

void memory_ask(const void *address, struct memory *memory)
{
    static const int attributes[] = {DRIVER_POINTER_MEMORY_TYPE, DRIVER_POINTER_IS_MANAGED,
                                     DRIVER_POINTER_CONTEXT,     DRIVER_POINTER_BUFFER_ID,
                                     DRIVER_POINTER_DEVICE,      DRIVER_POINTER_IPC_CAPABLE,
                                     DRIVER_POINTER_RANGE_START, DRIVER_POINTER_RANGE_SIZE};
    /* The driver writes booleans of four bytes or of one: the rest stays 0. */
    unsigned type = 0, managed = 0, ipc = 0;
    unsigned long long buffer_id = 0;
    *memory = (struct memory){.kind = MEMORY_HOST};
    if (host_only_contains(address))
        return;
    void *values[] = {&type,           &managed, &memory->context, &buffer_id,
                      &memory->device, &ipc,     &memory->start,   &memory->size};
    driver_ptr pointer = (driver_ptr) (uintptr_t) address;

    if (!driver_is_loaded) {
        memory->kind = kind_without_driver(pointer);
        return;
    }
    driver_result result = driver.pointer_attributes(sizeof(attributes) / sizeof(attributes[0]),
                                                     attributes, values, pointer);
    if (__builtin_expect(result != DRIVER_SUCCESS, 0)) {
        memory->kind = kind_without_answer(pointer, result);
        memory->error = result;
        return;
    }
    if (type != DRIVER_MEMORY_DEVICE && !managed) {
        if (type == 0)
            memory->kind = kind_of_unknown(pointer);
        return;
    }
    memory->kind = managed ? MEMORY_MANAGED : MEMORY_DEVICE;
    memory->buffer_id = buffer_id;
    memory->ipc_capable = ipc && !managed;
    if (!managed)
        seen_add(memory);
}
