# SPDX-License-Identifier: BSD-3-Clause
# No header, whatever sender it names, ends a process, writes outside a buffer or goes
# uncounted; on the fuzzer's build of the PML, in which a failed lane does not end the job.
elsewhere_only 'series=fuzz.headers-1'
fuzz_headers() { # BTL ROUNDS SEED
    # What a BTL says of each address that cannot be read would fill the log.
    OMPI_MCA_mca_base_component_path=$build/test/fuzz/.libs:$OMPI_MCA_mca_base_component_path \
        mpirun_run 3 --mca mpi_yield_when_idle 1 --mca pml multilane --mca btl "self,$1" -- "$build/test/fuzz/headers" "$2" "$3" 2>&1 |
        awk '{ known = /^(Read|Wrote) |Failed to allocate|failed to allocate/ } !known || said++ < 10'
    return "${PIPESTATUS[0]}"
}
# Not over tcp: there the peer itself would have to check the addresses that it names, and it does not.
if [ -n "${MULTILANE_LONG:-}" ]; then rounds=1000000 seeds="1 2 3 4"; else rounds=20000 seeds="1 2"; fi
for seed in $seeds; do
    check "${prefix}fuzz.headers-$seed" fuzz_headers "$sm" "$rounds" "$seed"
done
