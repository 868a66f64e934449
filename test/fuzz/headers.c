/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the fuzzer of headers in rank 0 of three or more, over the fuzzer's build of the PML, and
 * holds what it counted against the variable that people read. Arguments: rounds, seed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

#define TAG_END 12345

/* A checker need not end the program where a forged size asks for more memory than there is. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:detect_leaks=0:max_allocation_size_mb=1024";
}

static int variable_find(const char *name)
{
    int count, index;
    MPI_T_pvar_get_num(&count);
    for (index = 0; index < count; index++) {
        char found[256];
        int length = sizeof(found), verbosity, class, binding, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        if (MPI_T_pvar_get_info(index, found, &length, &verbosity, &class, &type, &enumeration,
                                NULL, NULL, &binding, &readonly, &continuous,
                                &atomic) == MPI_SUCCESS &&
            strcmp(found, name) == 0)
            return index;
    }
    return -1;
}

/* Counts from the moment it is opened, as MPI_T's counters do. */
struct variable {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};

static int variable_open(const char *name, struct variable *variable)
{
    int count, index = variable_find(name);
    if (index < 0) {
        fprintf(stderr, "there is no variable %s\n", name);
        return 0;
    }
    MPI_T_pvar_session_create(&variable->session);
    return MPI_T_pvar_handle_alloc(variable->session, index, NULL, &variable->handle, &count) ==
           MPI_SUCCESS;
}

static unsigned long long variable_read_and_close(struct variable *variable)
{
    unsigned long long value = 0;
    MPI_T_pvar_read(variable->session, variable->handle, &value);
    MPI_T_pvar_handle_free(variable->session, &variable->handle);
    MPI_T_pvar_session_free(&variable->session);
    return value;
}

static int run(MPI_Comm comm, unsigned long long rounds, unsigned long long seed)
{
    struct fuzz_report report = {0, 0, 0, 0};
    struct variable refused;
    fuzz_function function = (fuzz_function) (uintptr_t) dlsym(RTLD_DEFAULT, FUZZ_SYMBOL);
    if (!function) {
        fprintf(stderr, "the PML that was loaded is not the fuzzer's build\n");
        return 1;
    }
    if (!variable_open("pml_multilane_bad_headers", &refused))
        return 1;
    function(comm, seed, rounds, &report);
    unsigned long long counted = variable_read_and_close(&refused);
    printf("seed %llu: %llu delivered, %llu refused, %llu receives completed, %llu failures\n",
           seed, (unsigned long long) report.delivered, (unsigned long long) report.rejected,
           (unsigned long long) report.completed, (unsigned long long) report.failures);
    if (counted != report.rejected) {
        fprintf(stderr, "pml_multilane_bad_headers is %llu, not %llu\n", counted,
                (unsigned long long) report.rejected);
        return 1;
    }
    return report.failures || report.delivered < rounds || report.completed == 0;
}

int main(int argc, char **argv)
{
    int provided, rank, size, failed = 0;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (size < 3) {
        fprintf(stderr, "the fuzzer of headers needs 3 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0) {
        failed = run(comm, argc > 1 ? strtoull(argv[1], NULL, 10) : 100000,
                     argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
        for (int to = 1; to < size; to++)
            MPI_Send(&failed, 1, MPI_INT, to, TAG_END, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&failed, 1, MPI_INT, 0, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    fflush(stdout);
    MPI_T_finalize();
    /* What the fuzzer left under way can never complete. */
    MPI_Finalize();
    return failed;
}
