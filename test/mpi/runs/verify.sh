# SPDX-License-Identifier: BSD-3-Clause
# pml_multilane_verify: bits that are wrong on their way are found, and all data is right; over a lane that cannot bring
# a message again the job ends with a sentence.
elsewhere_only 'series=verify.@(flips|attribute|puts|sock.put|conform.*|windows)' \
    'asan=verify.@(flips|gets|puts|sock.flips|traffic.*)' 'tsan=verify.@(flips|puts|traffic.shm)'

# Of all that was wrong each rank prints what it has made wrong and what it has found.
verify_found() { # PART: at least so much of a hundred was found; then as verify_flaky
    local part=$1 output status
    shift
    output=$("$@" 2>&1)
    status=$?
    grep -v 'brings wrong\|is left out\|goes on being used\|several lanes' <<<"$output"
    [ $status = 0 ] && [ "$(grep -c ', 0 wrong bytes received' <<<"$output")" = 2 ] &&
        awk -v part="$part" '/ bits were wrong, / {wrong += $3; found += $7}
            END {exit !(wrong > 100 && found <= wrong && 100 * found >= part * wrong)}' <<<"$output"
}
verify_flaky() { # FLIPS LARGEST [mpirun's arguments]
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpirun_run 2 --mca mpi_yield_when_idle 1 --mca pml multilane --mca btl self,flaky "${@:3}" -- verify "$1" 40 "$2"
}
on="--mca pml_multilane_verify 1"
# shellcheck disable=SC2086
{
    check "${prefix}verify.flips" verify_found 100 verify_flaky 1000 100000 $on --mca btl_flaky_flip 1000
    check "${prefix}verify.attribute" verify_found 100 verify_flaky 200 100000 --mca btl_flaky_flip 1000 \
        --mca pml_multilane_lane_attr flaky:verify=yes
    # Two wrong bits in what was put for one message are found as one.
    for way in get put; do
        check "${prefix}verify.${way}s" verify_found 80 verify_flaky 300 300000 $on --mca btl_flaky_flip 200 \
            --mca btl_flaky_rma 1 --mca pml_multilane_protocol rndv-$way
    done
}

# What is made wrong on a connection is not counted, and is in headers as well.
verify_sock() { # LARGEST [mpirun's arguments]
    local largest=$1 output status
    shift
    # What is preloaded would have to come behind the sanitizer's library, which cannot be said here.
    output=$(mpirun_run 2 --mca mpi_yield_when_idle 1 -x LD_PRELOAD="$build/test/fake/libsock_faults.so" \
        -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" -x SOCK_FLIPS=60 --mca pml multilane \
        --mca btl self,sock "$@" -- verify 1 3 "$largest" 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && [ "$(grep -c ', 0 wrong bytes received' <<<"$output")" = 2 ] &&
        grep -Eq 'lane sock.* brings wrong bytes, which come again: it brought [0-9]+ bytes' <<<"$output" &&
        grep -Eq 'goes on being used, as no other lane is up' <<<"$output"
}
# shellcheck disable=SC2086
{
    check "${prefix}verify.sock.flips" verify_sock 300000 $on
    check "${prefix}verify.sock.put" verify_sock 300000 $on --mca pml_multilane_protocol rndv-put
    # Of several puts, whose sums are made while the next one comes.
    check "${prefix}verify.sock.puts" verify_sock 3000000 $on --mca pml_multilane_protocol rndv-put
    mpi_fails verify.cannot-come-again 'lane tcp brought a message of [0-9]+ bytes whose sum is wrong, and cannot bring it' \
        2 --mca mpi_yield_when_idle 1 -x LD_PRELOAD="$build/test/fake/libsock_faults.so" \
        -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" -x SOCK_FLIPS=300 --mca pml multilane --mca btl self,tcp \
        --mca btl_tcp_if_include lo $on -- verify 1 30 300000
}
# shellcheck disable=SC2016
mpi_fails verify.one-end 'cannot talk to rank .*: it makes sums of (all|no) messages and this process of (all|no) messages' \
    2 --mca pml multilane --mca btl self,shm -- "$BASH" -c \
    'OMPI_MCA_pml_multilane_verify=$OMPI_COMM_WORLD_RANK exec "$0"' "$build/test/mpi/ring"
mpi_fails verify.bad-value 'pml_multilane_verify is 2; it can be 0 to 1' 2 --mca pml multilane --mca btl self,shm \
    --mca pml_multilane_verify 2 -- ring
# shellcheck disable=SC2086
for lanes in shm sock "$sm"; do
    mpi "verify.conform.$lanes" 3 --mca pml multilane --mca btl "self,$lanes" $on -- conform request
    mpi "verify.traffic.$lanes" 3 --mca pml multilane --mca btl "self,$lanes" $on -- traffic --seeds 1
done
# 5.0 and 6.0 send for windows beside the PML, over the same connections and without sums.
# shellcheck disable=SC2086
mpi verify.windows 3 --mca pml multilane --mca btl self,sock --mca osc ^ucx $on -- conform onesided
