// SPDX-License-Identifier: BSD-3-Clause
// The chapters of the MPI standard that need one thread, in one start of MPI: conform [CHAPTER...]
// [options of suite.c], all chapters by default.
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const struct suite_chapter *const chapters[] = {
    &suite_point,        &suite_request,  &suite_error,       &suite_datatype,
    &suite_communicator, &suite_onesided, &suite_partitioned,
};

static const struct suite_chapter *chapter_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(chapters); i++)
        if (strcmp(chapters[i]->name, name) == 0)
            return chapters[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct suite_chapter *wanted[COUNT_OF(chapters)];
    size_t count = 0;
    for (int i = 1; i < argc && argv[i][0] != '-' && count < COUNT_OF(chapters); i++) {
        wanted[count] = chapter_of(argv[i]);
        if (!wanted[count++]) {
            fprintf(stderr, "conform: there is no chapter %s\n", argv[i]);
            return 2;
        }
    }
    return count ? suite_run(argc, argv, wanted, count, MPI_THREAD_SINGLE)
                 : suite_run(argc, argv, chapters, COUNT_OF(chapters), MPI_THREAD_SINGLE);
}
