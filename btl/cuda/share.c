/* SPDX-License-Identifier: BSD-3-Clause */
/* How the driver shares memory between processes of a node: memory of cudaMalloc by an IPC handle;
 * memory that a program maps itself by a fabric handle or a file descriptor. */
#include "btl/cuda/cuda.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System call numbers, the same for every processor; older headers lack them. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* --- ours, for others --- */

static bool can_map(void)
{
    return driver.chunk_retain && driver.chunk_release && driver.chunk_export &&
           driver.chunk_import && driver.range_reserve && driver.range_free && driver.range_map &&
           driver.range_unmap && driver.range_allow && driver.mapping_find;
}

/* Addresses that were reserved together are one range to the driver, whatever is mapped there; this
 * one function tells the chunks from one another. */
driver_result cuda_share_chunk(driver_ptr address, driver_chunk *chunk, cuda_key_t *key)
{
    driver_ptr start = 0;
    size_t size = 0;

    if (!can_map())
        return DRIVER_NOT_SUPPORTED;
    driver_result result = driver.mapping_find(&start, &size, address);
    key->start = start;
    key->size = size;
    return result == DRIVER_SUCCESS ? driver.chunk_retain(chunk, (void *) (uintptr_t) address)
                                    : result;
}

driver_result cuda_share_count(driver_ptr first, driver_ptr last, uint32_t *count)
{
    driver_ptr start = first;
    size_t size = 0;
    driver_result result = DRIVER_SUCCESS;

    for (*count = 0; start + size <= last && result == DRIVER_SUCCESS; ++*count)
        result = driver.mapping_find(&start, &size, start + size);
    return result;
}

bool cuda_share_is_mapped(const cuda_key_t *key, driver_chunk chunk)
{
    driver_chunk now;

    if (driver.chunk_retain(&now, (void *) (uintptr_t) key->start) != DRIVER_SUCCESS)
        return false;
    driver.chunk_release(now);
    return now == chunk;
}

driver_result cuda_share_export(driver_chunk chunk, const cuda_peer_t *peer, cuda_key_t *key)
{
    int fd = -1;

    key->kind = SHARE_FABRIC;
    driver_result result = driver.chunk_export(&key->handle.fabric, chunk, DRIVER_HANDLE_FABRIC, 0);
    if (result == DRIVER_SUCCESS || !peer->knows_pids)
        return result;
    key->kind = SHARE_FD;
    result = driver.chunk_export(&fd, chunk, DRIVER_HANDLE_FD, 0);
    memset(&key->handle, 0, sizeof(key->handle));
    key->handle.file.pid = (int32_t) getpid();
    key->handle.file.fd = fd;
    return result;
}

void cuda_share_retract(const cuda_key_t *key, driver_chunk chunk)
{
    if (key->kind == SHARE_FD)
        close(key->handle.file.fd);
    driver.chunk_release(chunk);
}

/* --- devices, by the name that all processes know them by --- */

int cuda_device_find(const struct driver_uuid *wanted)
{
    struct driver_uuid uuid;
    int count = 0;

    if (driver.device_count(&count) != DRIVER_SUCCESS)
        return -1;
    for (int device = 0; device < count; device++)
        if (driver.device_uuid(&uuid, device) == DRIVER_SUCCESS &&
            memcmp(&uuid, wanted, sizeof(uuid)) == 0)
            return device;
    return -1;
}

/* For a device that this process does not see, only an attempt shows it. */
static bool device_may_reach(const struct copier *copier, const struct driver_uuid *other)
{
    int device = cuda_device_find(other), can = 1;

    return device < 0 || device == copier->device ||
           (driver.device_can_access(&can, copier->device, device) == DRIVER_SUCCESS && can);
}

/* --- others', here --- */

static int file_get(const cuda_key_t *key, char *why, size_t why_size)
{
    int fd = -1, process = (int) syscall(SYS_pidfd_open, key->handle.file.pid, 0);

    if (process >= 0)
        fd = (int) syscall(SYS_pidfd_getfd, process, key->handle.file.fd, 0);
    if (fd < 0)
        snprintf(why, why_size, "the system does not let us have its file descriptor (%s)",
                 strerror(errno));
    if (process >= 0)
        close(process);
    return fd;
}

static driver_result chunk_import(const cuda_key_t *key, driver_chunk *chunk, char *why,
                                  size_t why_size)
{
    struct driver_fabric_handle fabric = key->handle.fabric;
    int fd = -1;
    driver_result result;

    if (key->kind == SHARE_FD && (fd = file_get(key, why, why_size)) < 0)
        return DRIVER_INVALID_HANDLE;
    if (key->kind == SHARE_FD) {
        result = driver.chunk_import(chunk, (void *) (intptr_t) fd, DRIVER_HANDLE_FD);
        close(fd);
    } else {
        result = driver.chunk_import(chunk, &fabric, DRIVER_HANDLE_FABRIC);
    }
    driver_words(result, why, why_size);
    return result;
}

static driver_result range_make(driver_chunk chunk, int device, size_t size, driver_ptr *here)
{
    const struct driver_access access = {.location = {DRIVER_LOCATION_DEVICE, device},
                                         .flags = DRIVER_ACCESS_READ_WRITE};
    driver_result result = driver.range_reserve(here, size, 0, 0, 0);

    if (result != DRIVER_SUCCESS)
        return result;
    result = driver.range_map(*here, size, 0, chunk, 0);
    if (result == DRIVER_SUCCESS) {
        result = driver.range_allow(*here, size, &access, 1);
        if (result != DRIVER_SUCCESS)
            driver.range_unmap(*here, size);
    }
    if (result != DRIVER_SUCCESS)
        driver.range_free(*here, size);
    return result;
}

static driver_result mapped_open(const cuda_key_t *key, int device, driver_ptr *here, char *why,
                                 size_t why_size)
{
    driver_chunk chunk;

    if (!can_map()) {
        snprintf(why, why_size, "the CUDA driver is too old for memory that a program maps");
        return DRIVER_NOT_SUPPORTED;
    }
    driver_result result = chunk_import(key, &chunk, why, why_size);
    if (result != DRIVER_SUCCESS)
        return result;
    result = range_make(chunk, device, key->size, here);
    driver.chunk_release(chunk); /* the mapping stays */
    driver_words(result, why, why_size);
    return result;
}

/* The size in the key came from the other process. */
static driver_result ipc_open(const cuda_key_t *key, driver_ptr *here, char *why, size_t why_size)
{
    struct memory memory;
    driver_result result = driver.ipc_open(here, key->handle.ipc, DRIVER_IPC_LAZY_PEER_ACCESS);

    driver_words(result, why, why_size);
    if (result != DRIVER_SUCCESS)
        return result;
    memory_ask((const void *) (uintptr_t) *here, &memory);
    if (memory.size == 0 || key->size <= memory.start + memory.size - *here)
        return DRIVER_SUCCESS;
    snprintf(why, why_size, "it is said to have %llu bytes and has %zu",
             (unsigned long long) key->size, memory.size);
    driver.ipc_close(*here);
    return DRIVER_INVALID_VALUE;
}

driver_result cuda_share_open(const cuda_key_t *key, const struct copier *copier, driver_ptr *here,
                              char *why, size_t why_size)
{
    if (!device_may_reach(copier, &key->device)) {
        snprintf(why, why_size, "this process's device has no access to that one's");
        return DRIVER_NOT_SUPPORTED;
    }
    driver_result result = copier_enter(copier);
    if (result != DRIVER_SUCCESS) {
        driver_words(result, why, why_size);
        return result;
    }
    if (key->kind == SHARE_FABRIC || key->kind == SHARE_FD) {
        result = mapped_open(key, copier->device, here, why, why_size);
    } else if (key->kind == SHARE_IPC) {
        result = ipc_open(key, here, why, why_size);
    } else {
        result = DRIVER_INVALID_HANDLE;
        driver_words(result, why, why_size);
    }
    context_leave();
    return result;
}

void cuda_share_close(enum share_kind kind, const struct copier *copier, driver_ptr here,
                      size_t size)
{
    if (copier_enter(copier) != DRIVER_SUCCESS)
        return;
    if (kind == SHARE_IPC) {
        driver.ipc_close(here);
    } else {
        driver.range_unmap(here, size);
        driver.range_free(here, size);
    }
    context_leave();
}
