/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that stand before, and those behind them, by window. */
#include "osc/multilane/guard.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/memory/memory.h"
#include "ompi/op/op.h"
#include "opal/util/output.h"

/* A window that is guarded: its component's own functions. */
struct guarded {
    struct guarded *next;
    const struct ompi_win_t *window;
    ompi_osc_base_module_t below;
};

static struct {
    pthread_mutex_t lock; /* guards the list; an entry does not change */
    struct guarded *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Never null: a function of ours was called, so there is an entry. */
static const ompi_osc_base_module_t *below(const struct ompi_win_t *window)
{
    pthread_mutex_lock(&all.lock);
    const struct guarded *at = all.first;
    while (at->window != window)
        at = at->next;
    pthread_mutex_unlock(&all.lock);
    return &at->below;
}

static bool is_refused(const char *call, const void *buffer, size_t count,
                       const ompi_datatype_t *type)
{
    const char *first = (const char *) buffer + (type ? type->super.true_lb : 0);

    if (count == 0 || !type || !memory_is_of_device(first))
        return false;
    opal_output(0,
                "multilane: %s: the buffer at %p is device memory, which this Open MPI cannot read "
                "or write here; use one in host memory, or send messages.",
                call, buffer);
    return true;
}

/* Arguments of the functions, as all of them begin and as those end that give a request. */
#define ORIGIN(constant)                                                                           \
    constant void *origin, compat_osc_count count, ompi_datatype_t *type, int target,              \
        ptrdiff_t at, compat_osc_count target_count, ompi_datatype_t *target_type
#define ORIGIN_GIVEN origin, count, type, target, at, target_count, target_type
#define RESULT                                                                                     \
    const void *origin, compat_osc_count count, ompi_datatype_t *type, void *result,               \
        compat_osc_count result_count, ompi_datatype_t *result_type, int target, ptrdiff_t at,     \
        compat_osc_count target_count, ompi_datatype_t *target_type, struct ompi_op_t *op
#define RESULT_GIVEN                                                                               \
    origin, count, type, result, result_count, result_type, target, at, target_count, target_type, \
        op

/* One that stands before: when it refuses, and with which error; what it gives on; its parameters.
 */
#define GUARD(name, refuses, error, given, ...)                                                    \
    static int guard_##name(__VA_ARGS__)                                                           \
    {                                                                                              \
        return (refuses) ? (error) : below(window)->osc_##name given;                              \
    }
#define GUARD_ORIGIN(name, call, given, ...)                                                       \
    GUARD(name, is_refused(call, origin, (size_t) count, type), MPI_ERR_BUFFER, given, __VA_ARGS__)
#define WINDOW  struct ompi_win_t *window
#define REQUEST struct ompi_win_t *window, ompi_request_t **request

GUARD_ORIGIN(put, "MPI_Put", (ORIGIN_GIVEN, window), ORIGIN(const), WINDOW)
GUARD_ORIGIN(get, "MPI_Get", (ORIGIN_GIVEN, window), ORIGIN(), WINDOW)
GUARD_ORIGIN(accumulate, "MPI_Accumulate", (ORIGIN_GIVEN, op, window), ORIGIN(const),
             struct ompi_op_t *op, WINDOW)
GUARD_ORIGIN(rput, "MPI_Rput", (ORIGIN_GIVEN, window, request), ORIGIN(const), REQUEST)
GUARD_ORIGIN(rget, "MPI_Rget", (ORIGIN_GIVEN, window, request), ORIGIN(), REQUEST)
GUARD_ORIGIN(raccumulate, "MPI_Raccumulate", (ORIGIN_GIVEN, op, window, request), ORIGIN(const),
             struct ompi_op_t *op, REQUEST)

/* With MPI_NO_OP it is not read. */
static bool origin_is_refused(const char *call, const void *origin, size_t count,
                              const ompi_datatype_t *type, const struct ompi_op_t *op)
{
    return op != &ompi_mpi_op_no_op.op && is_refused(call, origin, count, type);
}

GUARD(get_accumulate,
      origin_is_refused("MPI_Get_accumulate", origin, (size_t) count, type, op) ||
          is_refused("MPI_Get_accumulate", result, (size_t) result_count, result_type),
      MPI_ERR_BUFFER, (RESULT_GIVEN, window), RESULT, WINDOW)
GUARD(rget_accumulate,
      origin_is_refused("MPI_Rget_accumulate", origin, (size_t) count, type, op) ||
          is_refused("MPI_Rget_accumulate", result, (size_t) result_count, result_type),
      MPI_ERR_BUFFER, (RESULT_GIVEN, window, request), RESULT, REQUEST)
GUARD(fetch_and_op,
      origin_is_refused("MPI_Fetch_and_op", origin, 1, type, op) ||
          is_refused("MPI_Fetch_and_op", result, 1, type),
      MPI_ERR_BUFFER, (origin, result, type, target, at, op, window), const void *origin,
      void *result, ompi_datatype_t *type, int target, ptrdiff_t at, struct ompi_op_t *op, WINDOW)
GUARD(compare_and_swap,
      is_refused("MPI_Compare_and_swap", origin, 1, type) ||
          is_refused("MPI_Compare_and_swap", compare, 1, type) ||
          is_refused("MPI_Compare_and_swap", result, 1, type),
      MPI_ERR_BUFFER, (origin, compare, result, type, target, at, window), const void *origin,
      const void *compare, void *result, ompi_datatype_t *type, int target, ptrdiff_t at, WINDOW)
GUARD(win_attach, is_refused("MPI_Win_attach", base, bytes, MPI_BYTE), MPI_ERR_RMA_ATTACH,
      (window, base, bytes), WINDOW, void *base, size_t bytes)

/* Takes the entry out first: the window's memory may be another window's soon. */
static int guard_free(struct ompi_win_t *window)
{
    pthread_mutex_lock(&all.lock);
    struct guarded **at = &all.first;
    while ((*at)->window != window)
        at = &(*at)->next;
    struct guarded *old = *at;
    *at = old->next;
    pthread_mutex_unlock(&all.lock);
    int status = old->below.osc_free(window);
    free(old);
    return status;
}

/* In the module itself, which is this window's alone; functions that are not there stay so. */
#define STAND_BEFORE(name, function)                                                               \
    if (module->name)                                                                              \
    module->name = (function)

void guard_begin(struct ompi_win_t *window)
{
    ompi_osc_base_module_t *module = window->w_osc_module;
    struct guarded *guarded = malloc(sizeof(*guarded));

    if (!guarded)
        return;
    guarded->window = window;
    guarded->below = *module;
    pthread_mutex_lock(&all.lock);
    guarded->next = all.first;
    all.first = guarded;
    pthread_mutex_unlock(&all.lock);
    STAND_BEFORE(osc_put, guard_put);
    STAND_BEFORE(osc_get, guard_get);
    STAND_BEFORE(osc_accumulate, guard_accumulate);
    STAND_BEFORE(osc_rput, guard_rput);
    STAND_BEFORE(osc_rget, guard_rget);
    STAND_BEFORE(osc_raccumulate, guard_raccumulate);
    STAND_BEFORE(osc_get_accumulate, guard_get_accumulate);
    STAND_BEFORE(osc_rget_accumulate, guard_rget_accumulate);
    STAND_BEFORE(osc_fetch_and_op, guard_fetch_and_op);
    STAND_BEFORE(osc_compare_and_swap, guard_compare_and_swap);
    STAND_BEFORE(osc_win_attach, guard_win_attach);
    STAND_BEFORE(osc_free, guard_free);
}
