/* SPDX-License-Identifier: BSD-3-Clause */
/* Device code: chosen once, loaded once in each context. */
#include "common/memory/kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/file/whole_file.h"

/* What nvcc made of kernels.cu, as C by `embed`; empty without an nvcc. */
extern const unsigned char kernels_image[];
extern const size_t kernels_image_bytes;

/* Threads of a block, and most blocks: enough to hide the memory's latency on the devices of this
 * decade, and few enough to leave room for the program's own kernels. A guess, not measured. */
#define BLOCK_THREADS 256
#define BLOCKS_MAX    256

#define CODE_BYTES_MOST ((size_t) 64 << 20) /* of a file */

static struct {
    const void *code; /* null: none is used */
    void *from_file;  /* the same, where it is ours to free */
} chosen;

static struct {
    pthread_mutex_t lock; /* guards the loading of all below */
    struct loaded {
        struct copier *copier;
        _Atomic bool is_tried; /* set with release, after the rest */
        driver_result result;
        driver_module module;
        driver_function function;
    } of[COPIERS_MAX];
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- which ------------------------------------------------------------------------------------ */

static bool is_auto(const char *setting)
{
    return !setting || !setting[0] || strcmp(setting, "auto") == 0;
}

static bool is_none(const char *setting)
{
    return setting && strcmp(setting, "none") == 0;
}

const char *kernels_expected(const char *setting)
{
    if (is_none(setting))
        return "switched off by the user";
    if (is_auto(setting) && kernels_image_bytes == 0)
        return "this Multilane was built without nvcc";
    return "";
}

bool kernels_choose(const char *setting, struct error_text *error)
{
    struct error_text why;
    size_t length;
    free(chosen.from_file);
    chosen.from_file = NULL;
    chosen.code = NULL;
    if (is_none(setting))
        return true;
    if (is_auto(setting)) {
        chosen.code = kernels_image_bytes ? kernels_image : NULL;
        return true;
    }
    /* Device code may be text, which ends at a zero. */
    chosen.code = chosen.from_file =
        whole_file_read(setting, CODE_BYTES_MOST, WHOLE_FILE, &length, NULL, &why);
    if (chosen.code && length == 0) {
        free(chosen.from_file);
        chosen.code = chosen.from_file = NULL;
        fail_with(&why, "%.120s: it is empty", setting);
    }
    return chosen.code ||
           fail_with(error, "it may be auto, none, or a file with device code; %.200s", why.text);
}

/* --- loading ---------------------------------------------------------------------------------- */

/* Is there device code to be used, and a driver that runs kernels? Once the driver is loaded. */
static bool is_offered(void)
{
    return chosen.code && driver.module_load && driver.module_unload && driver.module_function &&
           driver.launch;
}

/* In the copier's context. */
static driver_result function_find(struct loaded *loaded)
{
    driver_result result = driver.module_load(&loaded->module, chosen.code);
    if (result != DRIVER_SUCCESS)
        return result;
    result = driver.module_function(&loaded->function, loaded->module, "multilane_pack");
    if (result != DRIVER_SUCCESS) {
        driver.module_unload(loaded->module);
        loaded->module = NULL;
    }
    return result;
}

/* With the lock held. */
static void load(struct loaded *loaded, struct copier *copier)
{
    loaded->copier = copier;
    loaded->result = IN_CONTEXT(copier, function_find(loaded));
}

driver_result kernels_ready(struct copier *copier)
{
    struct loaded *loaded = &kernels.of[copier->index];
    if (!is_offered())
        return DRIVER_NOT_SUPPORTED;
    if (atomic_load_explicit(&loaded->is_tried, memory_order_acquire)) /* the store below */
        return loaded->result;
    pthread_mutex_lock(&kernels.lock);
    if (!atomic_load_explicit(&loaded->is_tried, memory_order_relaxed)) {
        load(loaded, copier);
        atomic_store_explicit(&loaded->is_tried, true, memory_order_release); /* the load above */
    }
    pthread_mutex_unlock(&kernels.lock);
    return loaded->result;
}

void kernels_close(void)
{
    pthread_mutex_lock(&kernels.lock);
    for (int i = 0; driver_is_loaded && i < COPIERS_MAX; i++) {
        struct loaded *loaded = &kernels.of[i];
        if (loaded->module)
            (void) IN_CONTEXT(loaded->copier, driver.module_unload(loaded->module));
        memset(loaded, 0, sizeof(*loaded));
    }
    pthread_mutex_unlock(&kernels.lock);
}

/* --- starting --------------------------------------------------------------------------------- */

driver_result kernels_start(struct copier *copier, enum copy_direction direction,
                            const struct pack *pack)
{
    void *arguments[] = {(void *) (uintptr_t) pack};
    uint64_t blocks = (pack_words(pack) + BLOCK_THREADS - 1) / BLOCK_THREADS;
    if (blocks > BLOCKS_MAX)
        blocks = BLOCKS_MAX;
    return IN_CONTEXT(copier, driver.launch(kernels.of[copier->index].function, (unsigned) blocks,
                                            1, 1, BLOCK_THREADS, 1, 1, 0,
                                            copier->streams[direction], arguments, NULL));
}
