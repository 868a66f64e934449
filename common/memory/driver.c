/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the CUDA driver at run time. */
#include "common/memory/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/memory/host_only.h"
#include "common/memory/loaded.h"
#include "common/memory/other_devices.h"
#include "common/model/error.h"

struct driver driver;
bool driver_is_loaded, device_memory_possible;

static struct error_text why;

/* The interface of this version of CUDA is asked for; a newer driver keeps it. */
#define INTERFACE_VERSION 11030
/* And this one for what came with it, and for what distinguishes the parts of one card since. */
#define LATER_VERSION 11070

struct function {
    const char *name;
    size_t offset; /* of its place in struct driver */
};

#define ROW(member, name, ...) {name, offsetof(struct driver, member)},
static const struct function functions[] = {DRIVER_FUNCTIONS(ROW)};
static const struct function optional_functions[] = {DRIVER_OPTIONAL_FUNCTIONS(ROW)};
/* The newer form of device_uuid takes the place of the older one. */
static const struct function later_functions[] = {
    DRIVER_LATER_FUNCTIONS(ROW){"cuDeviceGetUuid", offsetof(struct driver, device_uuid)}};
#undef ROW

/* ISO C has no conversion between pointers to data and to functions. */
static void function_set(void *place, void *function)
{
    memcpy(place, &function, sizeof(function));
}

/* The driver's own table of functions by version: since 11.3, with one argument more since 12.0. */
struct lookup {
    driver_result (*with_status)(const char *, void **, int, uint64_t, int *);
    driver_result (*plain)(const char *, void **, int, uint64_t);
};

static void *lookup_find(const struct lookup *lookup, const char *name, int version)
{
    void *function = NULL;
    int status = 0;
    driver_result result = lookup->with_status
                               ? lookup->with_status(name, &function, version, 0, &status)
                               : lookup->plain(name, &function, version, 0);
    return result == DRIVER_SUCCESS ? function : NULL;
}

/* Null: the driver has them all; else the name of the first one that it has not. What was found
 * before in an older form stays where the newer one is missing. */
static const char *functions_look(const struct lookup *lookup, const struct function *wanted,
                                  size_t count, int version)
{
    const char *missing = NULL;
    for (size_t i = 0; i < count; i++) {
        void *function = lookup_find(lookup, wanted[i].name, version);
        if (!function && !missing)
            missing = wanted[i].name;
        if (function)
            function_set((char *) &driver + wanted[i].offset, function);
    }
    return missing;
}

static bool functions_find(void *library)
{
    struct lookup lookup;
    function_set(&lookup.with_status, dlsym(library, "cuGetProcAddress_v2"));
    function_set(&lookup.plain, dlsym(library, "cuGetProcAddress"));
    if (!lookup.with_status && !lookup.plain)
        return fail_with(&why, "the CUDA driver is too old: it has no cuGetProcAddress, which "
                               "came with 11.3");
    const char *missing = functions_look(
        &lookup, functions, sizeof(functions) / sizeof(functions[0]), INTERFACE_VERSION);
    if (missing)
        return fail_with(&why, "the CUDA driver is too old: it has no %s", missing);
    functions_look(&lookup, optional_functions,
                   sizeof(optional_functions) / sizeof(optional_functions[0]), INTERFACE_VERSION);
    functions_look(&lookup, later_functions, sizeof(later_functions) / sizeof(later_functions[0]),
                   LATER_VERSION);
    return true;
}

/* The driver's device files: of a GPU on a bus, on a system-on-chip, in a virtual machine of
 * Windows. Without any, loading the driver would only cost time. */
static bool node_has_devices(void)
{
    static const char *const files[] = {"/dev/nvidiactl", "/dev/nvmap", "/dev/dxg"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (access(files[i], F_OK) == 0)
            return true;
    return false;
}

static const char no_device[] = "this node has no CUDA device (no /dev/nvidiactl)";

const char *driver_expected(void)
{
    return library_loaded("libcuda.so") || node_has_devices() ? "" : no_device;
}

static void driver_find(void)
{
    const char *loaded = library_loaded("libcuda.so"); /* the program has it already */
    if (!loaded && !node_has_devices()) {
        fail_with(&why, "%s", no_device);
        return;
    }
    const char *name = loaded ? loaded : "libcuda.so.1";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *error = dlerror();
        fail_with(&why, "the CUDA driver cannot be loaded: %s", error ? error : name);
        return;
    }
    /* Never closed: what it has set up in this process stays. */
    driver_is_loaded = functions_find(library);
}

static void load(void)
{
    driver_find();
    other_devices_find();
    device_memory_possible = driver_is_loaded || other_devices_possible;
    if (device_memory_possible)
        host_only_find();
}

bool driver_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return driver_is_loaded;
}

const char *driver_why(void)
{
    return why.text;
}

const char *driver_words(driver_result result, char *text, size_t size)
{
    const char *name = NULL, *words = NULL;
    if (!driver_is_loaded || driver.error_name(result, &name) != DRIVER_SUCCESS)
        name = NULL;
    if (!driver_is_loaded || driver.error_text(result, &words) != DRIVER_SUCCESS)
        words = NULL;
    snprintf(text, size, "%s (%s)", name ? name : "an unknown error of the CUDA driver",
             words ? words : "it has no words for it");
    return text;
}
