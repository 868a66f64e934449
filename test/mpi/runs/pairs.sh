# SPDX-License-Identifier: BSD-3-Clause
# Random traffic with all settings that two parameters may have at once (test/mpi/pairs.py), 12 s; and
# in processes with another allocator, 5 s, or that load Open MPI themselves and have children, 2 s.
elsewhere_only series=dlopened asan=none
pairs_one() { # RANKS NAME=VALUE...: what the settings make of a job is not asked, only that all arrives
    local ranks=$1
    shift
    (
        export OMPI_MCA_pml=multilane OMPI_MCA_btl_tcp_if_include=lo "$@"
        mpirun_run "$ranks" -- traffic --seeds 1 --batches 4 2>&1
    )
}
# A name that no parameter has would be ignored.
pairs_names() {
    local word known
    known=$("$ompi_info" --all --parsable 2>&1)
    for word in $(grep -o 'OMPI_MCA_[a-z_]*' <<<"$1" | sort -u); do
        grep -q ":param:${word#OMPI_MCA_}:" <<<"$known" || { echo "no parameter is called ${word#OMPI_MCA_}"; return 1; }
    done
}
pairs_all() {
    local row rows output
    rows=$("$top/test/mpi/pairs.py" "$sm") && [ -n "$rows" ] && pairs_names "$rows" || return 1
    while read -r -a row; do
        output=$(pairs_one "${row[@]}") && ! grep -q 'is lost\|counts as failed' <<<"$output" || {
            printf '%s\nfailed with: %s\n' "$output" "${row[*]}"
            return 1
        }
    done <<<"$rows"
}
check "${prefix}pairs" pairs_all

# Memory that another allocator maps, moves and returns: registrations, copies by address and fork stay right.
allocator() { # NAME LIBRARY PACKAGE
    local library
    build_root=$build packages_need "$3" >"$build/allocator-packages.log" 2>&1
    library=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | sed -n "s/^[[:space:]]*$2 (libc6,[^)]*64) => //p" | head -n 1)
    if [ -n "$library" ]; then
        mpi "allocator.$1" 3 --mca pml multilane --mca btl self,shm,sock \
            -x LD_PRELOAD="$library" -- traffic --seeds 1-2 --batches 8
    else
        skip "${prefix}allocator.$1" "$2 is not here and $3 could not be installed"
    fi
}
if [ -n "$sanitizer" ]; then
    skip "${prefix}dlopened" "Python is not built with the sanitizer that the components need"
    skip "${prefix}allocator" "a preloaded library would come before the sanitizer's"
else
    allocator jemalloc libjemalloc.so.2 libjemalloc2
    allocator tcmalloc libtcmalloc_minimal.so.4 libtcmalloc-minimal4
    # The C library's own: one heap for all threads; nearly all memory mapped by itself, and given back at once.
    mpi allocator.one-heap 3 --mca pml multilane --mca btl self,shm,sock -x MALLOC_ARENA_MAX=1 \
        -- traffic --seeds 3 --batches 8 --threads 3
    mpi allocator.mapped 3 --mca pml multilane --mca btl self,shm,sock -x MALLOC_MMAP_THRESHOLD_=4096 \
        -x MALLOC_TRIM_THRESHOLD_=0 -- traffic --seeds 4 --batches 8
    mpi dlopened 3 --mca pml multilane --mca btl self,shm,sock -- /usr/bin/python3 "$top/test/mpi/dlopened.py" \
        "$(ldd "$build/test/mpi/ring" | sed -n 's/.*libmpi\.so[^ ]* => \([^ ]*\).*/\1/p')" 10
fi
