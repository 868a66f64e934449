# SPDX-License-Identifier: BSD-3-Clause
# More messages than a receiver may hold before it receives them: memory stays bounded, nothing is
# lost, no process waits for ever.
elsewhere_only "series=flood.@(@(queued|late|mutual)-shm|mutual-tcp|no-room-tcp|late-$sm|between-$sm)" \
    "asan=flood.@(mutual-shm|no-room-shm|reverse-tcp|between-$sm)"
flood() { # NAME RANKS BTLS MAX mpirun's... -- flood's...
    local name=$1 ranks=$2 btls=$3 max=$4
    shift 4
    mpi_says "flood.$name" ", 0 wrong" "$ranks" --mca mpi_yield_when_idle 1 --mca pml multilane \
        --mca btl "self,$btls" --mca btl_tcp_if_include lo --mca pml_multilane_unexpected_max "$max" -- \
        flood "$@"
}
if [ -n "${MULTILANE_LONG:-}" ]; then
    limit_s=1800
    # 10 million small and 100,000 large messages of 8 senders.
    flood late-long 9 shm 256m --small 1250000 --large 12500 --limit 268435456 late
fi
for lane in $sm shm tcp; do
    if [ -n "$sanitizer" ]; then
        skip "${prefix}flood.late-$lane" "a sanitizer's own memory has no bound"
        skip "${prefix}flood.queued-$lane" "a sanitizer's own memory has no bound"
    else
        # A request, and no copy.
        mpi "flood.queued-$lane" 2 --mca mpi_yield_when_idle 1 --mca pml multilane \
            --mca btl "self,$lane" --mca btl_tcp_if_include lo -- queued 2500
        flood late-$lane 4 $lane 32m --small 100000 --large 1000 --limit 33554432 late
    fi
    flood mutual-$lane 2 $lane 4m --small 20000 --large 200 mutual
    flood reverse-$lane 2 $lane 1m --small 5000 --large 50 reverse
    flood no-room-$lane 2 $lane 0 --small 2000 --large 20 reverse
    flood between-$lane 2 $lane 0 --small 63 --large 0 between
done
