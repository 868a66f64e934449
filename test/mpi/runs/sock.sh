# SPDX-License-Identifier: BSD-3-Clause
# btl/sock: connections that break at any byte, strangers at its ports, rails that are cut, and
# parameters that make no sense.
sock="--mca pml multilane --mca btl self,sock"
elsewhere_only 'series=sock.@(bad-if|without-tcp|unless-tcp-is-named|shm-by-default|ipv6|faults.traffic-5*|faults.request|strangers)' \
    'asan=sock.@(bad-if|sizes-differ|faults.traffic-5*|faults.threads-4*|faults.request|strangers)'

mpi_says sock.bad-if 'btl_sock_if is "10.0.0.0/40": "10.0.0.0/40" is no subnet' \
    2 --mca pml multilane --mca btl "self,$sm,sock" --mca btl_sock_if 10.0.0.0/40 -- ring
mpi_says sock.no-if 'no interface that is up fits btl_sock_if "nothing0"' \
    2 --mca pml multilane --mca btl "self,$sm,sock" --mca btl_sock_if nothing0 -- ring
mpi_says sock.bad-lost 'btl_sock_lost_s is 0; it can be 1 to' \
    2 --mca pml multilane --mca btl "self,$sm,sock" --mca btl_sock_lost_s 0 -- ring
mpi_says sock.bad-tls 'btl_sock_tls is 2; it can be 0 to 1' \
    2 --mca pml multilane --mca btl "self,$sm,sock" --mca btl_sock_tls 2 -- ring
# Frames of one process that are too long for another one.
# shellcheck disable=SC2016
mpi_says sock.sizes-differ 'has another btl_sock_max_send_size' 2 --mca pml multilane --mca btl "self,$sm,sock" -- \
    "$BASH" -c 'OMPI_MCA_btl_sock_max_send_size=$((131072 - 1024 * OMPI_COMM_WORLD_RANK)) exec "$0"' "$build/test/mpi/ring"
# Beside it btl/tcp is not used; nor is it where the job names tcp. The same holds for shm and Open MPI's.
lane_and_not() { # LANE OTHER [mpirun's arguments]
    local output status
    output=$(mpirun_run 2 --mca pml multilane "${@:3}" --mca pml_multilane_explain 1 -- ring 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -q "peer over .*$1:" <<<"$output" && ! grep 'peer over' <<<"$output" | grep -qwE "$2"
}
check "${prefix}sock.without-tcp" lane_and_not sock tcp --mca btl self,sock,tcp
check "${prefix}sock.by-default" lane_and_not sock tcp --mca btl "^shm,$sm"
check "${prefix}sock.shm-by-default" lane_and_not shm 'vader|sm|sock:lo'
check "${prefix}sock.unless-tcp-is-named" lane_and_not tcp sock --mca btl self,tcp --mca btl_tcp_if_include lo

if grep -q '^00000000000000000000000000000001 ' /proc/net/if_inet6 2>/dev/null; then
    # shellcheck disable=SC2086
    mpi sock.ipv6 2 $sock --mca btl_sock_if ::1/128 -- conform request
else
    skip "${prefix}sock.ipv6" "the loopback interface has no address of IPv6"
fi
# Where a filter refuses the kernel's random numbers, secrets come from /dev/urandom.
# shellcheck disable=SC2086
mpi sock.no-random 2 $sock -- "$build/test/mpi/shm_confine" no-random "$build/test/mpi/ring"

# Up to one call in fifty breaks the connection, at both ends.
# shellcheck disable=SC2086
sock_faults() { # SEED:BREAKS:SHORTS RANKS PROGRAM...
    local faults=$1 ranks=$2 output status
    shift 2
    # What is preloaded would have to come behind the sanitizer's library, which cannot be said here.
    output=$(mpirun_run "$ranks" $sock --mca mpi_yield_when_idle 1 -x LD_PRELOAD="$build/test/fake/libsock_faults.so" \
        -x SOCK_FAULTS="$faults" -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" -- "$@" 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -q 'connections were broken' <<<"$output"
}
faults="5:20:500 4:100:2000" fault_batches=15
# Half a minute each where threads are checked.
if [ "$sanitizer" = tsan ]; then faults=5:20:500 fault_batches=4; fi
[ -z "${MULTILANE_LONG:-}" ] || faults=$(for i in $(seq 40); do echo "$i:$((5 + 5 * i)):$((50 * i))"; done)
for fault in $faults; do
    [ "$sanitizer" = tsan ] || check "${prefix}sock.faults.traffic-$fault" sock_faults "$fault" 3 traffic --seeds 1-2
    check "${prefix}sock.faults.threads-$fault" sock_faults "$fault" 2 traffic --seeds 1 --threads 3 --batches $fault_batches
done
[ "$sanitizer" = tsan ] || check "${prefix}sock.faults.point" sock_faults 3:50:500 2 conform point
check "${prefix}sock.faults.request" sock_faults 3:50:500 3 conform request

# A process without a descriptor: both ends wait, or are told what does not get through.
# shellcheck disable=SC2086
sock_descriptors() {
    local output
    output=$(mpirun_run 4 $sock --mca mpi_yield_when_idle 1 -- descriptors 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    [ "$(grep -c 'no connection can be made or accepted now: Too many open files' <<<"$output")" = 1 ]
}
check "${prefix}sock.no-descriptor" sock_descriptors
mpi_fails sock.no-descriptor-for-long 'nothing gets through .btl_sock_lost_s.' 2 $sock --mca mpi_yield_when_idle 1 \
    --mca btl_sock_lost_s 1 -- descriptors 0 60
mpi_says sock.strangers 'strangers: [0-9]+ were closed' 2 $sock -- strangers
