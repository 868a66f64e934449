// SPDX-License-Identifier: BSD-3-Clause
// A transform of a cube there and back by FFTW's MPI library: all ranks give all others a part.
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double value(ptrdiff_t at)
{
    return (double) (at * 2654435761 % 1000003) / 1000003;
}

static void values_set(double *data, ptrdiff_t count, ptrdiff_t begin)
{
    for (ptrdiff_t at = 0; at < count; at++)
        data[at] = value(begin + at);
}

static double difference(const double *data, ptrdiff_t count, ptrdiff_t begin, double scale)
{
    double most = 0;
    for (ptrdiff_t at = 0; at < count; at++)
        most = fmax(most, fabs(data[at] / scale - value(begin + at)));
    return most;
}

static double sum_of(const double *data, ptrdiff_t count, ptrdiff_t begin)
{
    double sum = 0;
    for (ptrdiff_t at = 0; at < count; at++)
        sum += data[at] * value(begin + at);
    return sum;
}

static void transform(ptrdiff_t side, int rounds, double found[2])
{
    ptrdiff_t local, begin;
    double *data = fftw_alloc_real(
        2 * fftw_mpi_local_size_3d(side, side, side, MPI_COMM_WORLD, &local, &begin));
    fftw_complex *cube = (fftw_complex *) data;
    fftw_plan there = fftw_mpi_plan_dft_3d(side, side, side, cube, cube, MPI_COMM_WORLD,
                                           FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_plan back = fftw_mpi_plan_dft_3d(side, side, side, cube, cube, MPI_COMM_WORLD,
                                          FFTW_BACKWARD, FFTW_ESTIMATE);
    const ptrdiff_t count = 2 * local * side * side, first = 2 * begin * side * side;
    for (int round = 0; round < rounds; round++) {
        values_set(data, count, first);
        fftw_execute(there);
        found[0] = sum_of(data, count, first);
        fftw_execute(back);
        found[1] += difference(data, count, first, (double) (side * side * side)) > 1e-12;
    }
    fftw_destroy_plan(there);
    fftw_destroy_plan(back);
    fftw_free(data);
}

int main(int argc, char **argv)
{
    double found[2] = {0}, all[2];
    int rank;
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    transform(argc > 2 ? atoi(argv[1]) : 64, argc > 2 ? atoi(argv[2]) : 1, found);
    MPI_Reduce(found, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("sum %.9e, %g rounds with a wrong value\n", all[0], all[1]);
    fftw_mpi_cleanup();
    return MPI_Finalize();
}
