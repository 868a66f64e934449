/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the CUDA driver that Multilane uses: declared here, found at run time. */
#ifndef COMMON_MEMORY_DRIVER_H
#define COMMON_MEMORY_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What crosses the border to libcuda.so.1: names, sizes and numbers of its binary interface, for
 * 64-bit Linux. No header of the toolkit is needed, and a program built without one finds a device
 * where there is one. */
typedef int driver_result;             /* DRIVER_SUCCESS, or an error that driver_words tells */
typedef int driver_device;             /* a device's number in this process */
typedef unsigned long long driver_ptr; /* an address, of the device or the host */
typedef struct driver_context_s *driver_context;
typedef struct driver_stream_s *driver_stream;
typedef struct driver_event_s *driver_event;
typedef struct driver_module_s *driver_module;     /* device code that is loaded */
typedef struct driver_function_s *driver_function; /* a kernel in it */

struct driver_ipc_handle {
    char bytes[64];
};

struct driver_uuid {
    char bytes[16];
};

/* Physical memory of a device, which a program maps where it wants it. */
typedef unsigned long long driver_chunk;

struct driver_fabric_handle {
    char bytes[64];
};

enum driver_handle_type { DRIVER_HANDLE_FD = 1, DRIVER_HANDLE_FABRIC = 8 };

/* What a range of addresses is given to other devices by. */
enum driver_range_handle_type { DRIVER_RANGE_DMA_BUF_FD = 1 };

struct driver_location {
    int type; /* DRIVER_LOCATION_DEVICE */
    int device;
};

struct driver_access {
    struct driver_location location;
    int flags; /* DRIVER_ACCESS_READ_WRITE */
};

enum driver_result_value {
    DRIVER_SUCCESS = 0,
    DRIVER_INVALID_VALUE = 1,
    DRIVER_OUT_OF_MEMORY = 2,
    DRIVER_NOT_INITIALIZED = 3,
    DRIVER_DEINITIALIZED = 4,
    DRIVER_NO_DEVICE = 100,
    DRIVER_INVALID_DEVICE = 101,
    DRIVER_INVALID_IMAGE = 200,
    DRIVER_INVALID_CONTEXT = 201,
    DRIVER_ALREADY_MAPPED = 208,
    DRIVER_INVALID_HANDLE = 400,
    DRIVER_NOT_FOUND = 500,
    DRIVER_NOT_READY = 600,
    DRIVER_ILLEGAL_ADDRESS = 700,
    DRIVER_CONTEXT_IS_DESTROYED = 709,
    DRIVER_ALREADY_PINNED = 712,
    DRIVER_NOT_PINNED = 713,
    DRIVER_NOT_PERMITTED = 800,
    DRIVER_NOT_SUPPORTED = 801,
    DRIVER_CAPTURE_UNSUPPORTED = 900,
    DRIVER_CAPTURE_INVALIDATED = 901,
    DRIVER_UNKNOWN = 999
};

enum driver_memory_type {
    DRIVER_MEMORY_HOST = 1,
    DRIVER_MEMORY_DEVICE = 2,
    DRIVER_MEMORY_UNIFIED = 4 /* in a copy: find out by the address */
};

enum driver_attribute {
    DRIVER_POINTER_CONTEXT = 1,     /* driver_context */
    DRIVER_POINTER_MEMORY_TYPE = 2, /* unsigned, 0: no memory of the driver's */
    DRIVER_POINTER_SYNC_COPIES =
        6, /* unsigned, may be set: no copy ends before its bytes are there */
    DRIVER_POINTER_BUFFER_ID = 7,    /* unsigned long long, never used again by this process */
    DRIVER_POINTER_IS_MANAGED = 8,   /* unsigned */
    DRIVER_POINTER_DEVICE = 9,       /* int */
    DRIVER_POINTER_IPC_CAPABLE = 10, /* unsigned */
    DRIVER_POINTER_RANGE_START = 11, /* driver_ptr */
    DRIVER_POINTER_RANGE_SIZE = 12   /* size_t */
};

enum driver_device_attribute {
    DRIVER_DEVICE_HOST_PAGES = 100, /* int: the device and the processor share page tables */
    DRIVER_DEVICE_FLUSHES = 117,    /* int, bits: DRIVER_FLUSHES_BY_CALL */
    DRIVER_DEVICE_ORDERS = 118,     /* int: what scope sees others' writes without a flush */
    DRIVER_DEVICE_DMA_BUF = 124     /* int, 0 or 1 */
};

/* Of remote_flush: what was written to the current context, for all that may read it. */
enum driver_flush {
    DRIVER_FLUSHES_BY_CALL = 1,
    DRIVER_FLUSH_CURRENT_CONTEXT = 0,
    DRIVER_FLUSH_TO_ALL_DEVICES = 200
};

enum driver_flag {
    DRIVER_HOST_PORTABLE = 1,       /* of mem_host_alloc and host_pin: pinned for every context */
    DRIVER_STREAM_NON_BLOCKING = 1, /* does not wait for the program's default stream */
    DRIVER_EVENT_NO_TIMING = 2,
    DRIVER_CAPTURE_RELAXED = 2, /* for capture_exchange: no capture forbids this thread anything */
    DRIVER_IPC_LAZY_PEER_ACCESS = 1,
    DRIVER_LOCATION_DEVICE = 1,
    DRIVER_ACCESS_READ_WRITE = 3
};

/* Rows of equal length at equal distances, from and to any memory. */
struct driver_copy_2d {
    size_t from_x_bytes, from_y;
    unsigned from_type; /* enum driver_memory_type */
    const void *from_host;
    driver_ptr from_device; /* also the address of DRIVER_MEMORY_UNIFIED */
    void *from_array;
    size_t from_pitch;
    size_t to_x_bytes, to_y;
    unsigned to_type;
    void *to_host;
    driver_ptr to_device;
    void *to_array;
    size_t to_pitch;
    size_t width_bytes, height;
};

_Static_assert(sizeof(struct driver_copy_2d) == 128, "the driver's layout");

/* Planes of such rows: a plane starts `from_height` rows behind the one before it. */
struct driver_copy_3d {
    size_t from_x_bytes, from_y, from_z, from_lod;
    unsigned from_type;
    const void *from_host;
    driver_ptr from_device;
    void *from_array;
    void *from_reserved;
    size_t from_pitch, from_height;
    size_t to_x_bytes, to_y, to_z, to_lod;
    unsigned to_type;
    void *to_host;
    driver_ptr to_device;
    void *to_array;
    void *to_reserved;
    size_t to_pitch, to_height;
    size_t width_bytes, height, depth;
};

_Static_assert(sizeof(struct driver_copy_3d) == 200, "the driver's layout");

/* The functions, as the driver of version 11.3 and every later one has them: the name here, the
 * driver's, the arguments. */
/* clang-format off */
#define DRIVER_FUNCTIONS(F) \
    F(init, "cuInit", unsigned flags) \
    F(error_name, "cuGetErrorName", driver_result result, const char **name) \
    F(error_text, "cuGetErrorString", driver_result result, const char **text) \
    F(device_count, "cuDeviceGetCount", int *count) \
    F(device_uuid, "cuDeviceGetUuid", struct driver_uuid *uuid, driver_device device) \
    F(device_can_access, "cuDeviceCanAccessPeer", int *can, driver_device device, \
      driver_device peer) \
    F(primary_retain, "cuDevicePrimaryCtxRetain", driver_context *context, driver_device device) \
    F(primary_release, "cuDevicePrimaryCtxRelease", driver_device device) \
    F(context_push, "cuCtxPushCurrent", driver_context context) \
    F(context_pop, "cuCtxPopCurrent", driver_context *context) \
    F(capture_exchange, "cuThreadExchangeStreamCaptureMode", int *mode) \
    F(pointer_attributes, "cuPointerGetAttributes", unsigned count, const int *attributes, \
      void **values, driver_ptr pointer) \
    F(mem_alloc, "cuMemAlloc", driver_ptr *pointer, size_t bytes) \
    F(mem_free, "cuMemFree", driver_ptr pointer) \
    F(mem_host_alloc, "cuMemHostAlloc", void **pointer, size_t bytes, unsigned flags) \
    F(mem_host_free, "cuMemFreeHost", void *pointer) \
    F(host_pin, "cuMemHostRegister", void *pointer, size_t bytes, unsigned flags) \
    F(host_unpin, "cuMemHostUnregister", void *pointer) \
    F(copy_async, "cuMemcpyAsync", driver_ptr to, driver_ptr from, size_t bytes, \
      driver_stream stream) \
    F(copy_2d_async, "cuMemcpy2DAsync", const struct driver_copy_2d *copy, driver_stream stream) \
    F(copy_3d_async, "cuMemcpy3DAsync", const struct driver_copy_3d *copy, driver_stream stream) \
    F(stream_create, "cuStreamCreate", driver_stream *stream, unsigned flags) \
    F(stream_synchronize, "cuStreamSynchronize", driver_stream stream) \
    F(stream_destroy, "cuStreamDestroy", driver_stream stream) \
    F(event_create, "cuEventCreate", driver_event *event, unsigned flags) \
    F(event_record, "cuEventRecord", driver_event event, driver_stream stream) \
    F(event_query, "cuEventQuery", driver_event event) \
    F(event_destroy, "cuEventDestroy", driver_event event) \
    F(ipc_export, "cuIpcGetMemHandle", struct driver_ipc_handle *handle, driver_ptr pointer) \
    F(ipc_open, "cuIpcOpenMemHandle", driver_ptr *pointer, struct driver_ipc_handle handle, \
      unsigned flags) \
    F(ipc_close, "cuIpcCloseMemHandle", driver_ptr pointer)

/* Null where the driver has them not. */
#define DRIVER_OPTIONAL_FUNCTIONS(F) \
    F(chunk_retain, "cuMemRetainAllocationHandle", driver_chunk *chunk, void *address) \
    F(chunk_release, "cuMemRelease", driver_chunk chunk) \
    F(chunk_export, "cuMemExportToShareableHandle", void *handle, driver_chunk chunk, \
      int handle_type, uint64_t flags) \
    F(chunk_import, "cuMemImportFromShareableHandle", driver_chunk *chunk, void *handle, \
      int handle_type) \
    F(range_reserve, "cuMemAddressReserve", driver_ptr *pointer, size_t bytes, \
      size_t alignment, driver_ptr wanted, uint64_t flags) \
    F(range_free, "cuMemAddressFree", driver_ptr pointer, size_t bytes) \
    F(range_map, "cuMemMap", driver_ptr pointer, size_t bytes, size_t offset, \
      driver_chunk chunk, uint64_t flags) \
    F(range_unmap, "cuMemUnmap", driver_ptr pointer, size_t bytes) \
    F(range_allow, "cuMemSetAccess", driver_ptr pointer, size_t bytes, \
      const struct driver_access *access, size_t count) \
    F(mapping_find, "cuMemGetAddressRange", driver_ptr *start, size_t *bytes, driver_ptr pointer) \
    F(module_load, "cuModuleLoadData", driver_module *module, const void *code) \
    F(module_unload, "cuModuleUnload", driver_module module) \
    F(module_function, "cuModuleGetFunction", driver_function *function, driver_module module, \
      const char *name) \
    F(launch, "cuLaunchKernel", driver_function function, unsigned grid_x, unsigned grid_y, \
      unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
      unsigned shared_bytes, driver_stream stream, void **arguments, void **extra) \
    F(device_attribute, "cuDeviceGetAttribute", int *value, int attribute, driver_device device) \
    F(pointer_set, "cuPointerSetAttribute", const void *value, int attribute, driver_ptr pointer) \
    F(remote_flush, "cuFlushGPUDirectRDMAWrites", int target, int scope)

/* Of version 11.7; null likewise. */
#define DRIVER_LATER_FUNCTIONS(F) \
    F(range_handle, "cuMemGetHandleForAddressRange", void *handle, driver_ptr pointer, \
      size_t bytes, int handle_type, uint64_t flags)
/* clang-format on */

struct driver {
#define DRIVER_MEMBER(member, name, ...) driver_result (*member)(__VA_ARGS__);
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
    DRIVER_OPTIONAL_FUNCTIONS(DRIVER_MEMBER)
    DRIVER_LATER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

extern struct driver driver;

/* Written once, by driver_load, before any thread but the first uses Multilane. While the driver is
 * not loaded there is no device memory of CUDA's in this process, and while none is possible, of no
 * other devices either (other_devices.h). */
extern __attribute__((visibility("hidden"))) bool driver_is_loaded, device_memory_possible;

/* Loads the driver and finds its functions; starts nothing: the program's own first use of the
 * driver does. False: this process has no device memory of CUDA's, and driver_why says for what
 * reason. Any number of calls. */
bool driver_load(void);

/* What driver_load will say, as far as that can be told without loading anything: "" if it will
 * try, else why not. For programs that only list what there is. */
const char *driver_expected(void);

/* Why the driver is not loaded, as the end of a sentence; "" if it is. */
const char *driver_why(void);

/* The driver's own words for an error, in `text`, which is returned. */
const char *driver_words(driver_result result, char *text, size_t size);

#endif
