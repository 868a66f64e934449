/* SPDX-License-Identifier: BSD-3-Clause */
/* What a look for messages costs where all other ranks have talked to this one and are silent
 * since. They sleep meanwhile, so that it is the peers that cost and not the processors they would
 * take. */
#include "median.h"
#include "part.h"

#include <stdlib.h>
#include <unistd.h>

#define TALKS   20
#define LOOKS   2000
#define BATCHES 51
#define SLEEP_S 1

static void everyone_talks_to_first(void)
{
    char word[8] = {0};

    for (int talk = 0; talk < TALKS; talk++)
        for (int other = 1; other < bench_ranks(); other++)
            if (0 == bench_rank())
                MPI_Sendrecv(word, sizeof(word), MPI_BYTE, other, 1, word, sizeof(word), MPI_BYTE,
                             other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else if (other == bench_rank())
                MPI_Sendrecv(word, sizeof(word), MPI_BYTE, 0, 1, word, sizeof(word), MPI_BYTE, 0, 1,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void silent_measure(const struct part *part)
{
    double took[BATCHES];

    (void) part;
    everyone_talks_to_first();
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == bench_rank()) {
        for (int batch = 0; batch < BATCHES; batch++) {
            double start = MPI_Wtime();

            for (int look = 0; look < LOOKS; look++) {
                int found;

                MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
                if (found)
                    bench_stop("a message was found that was not sent.");
            }
            took[batch] = (MPI_Wtime() - start) / LOOKS;
        }
        bench_print("silent_us", bench_ranks(), median(took, BATCHES) * 1e6);
    } else {
        sleep(SLEEP_S);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

const struct part part_silent = {"silent", sizes_none, silent_measure};
