# SPDX-License-Identifier: BSD-3-Clause
# Checksummed traffic over lanes that delay messages, lose all from some message on, break, give back
# what they carried and come back, by a seed (test/fake/btl_flaky.c): nothing is lost, nothing comes
# twice, nothing hangs.
if [ -n "${MULTILANE_LONG:-}" ]; then
    flaky_seeds=1000
elif [ -n "$whole" ]; then
    flaky_seeds=8
else
    flaky_seeds=4
fi

# One thread an end, in which ThreadSanitizer can find nothing (progress-thread.lost has two). What the PML
# makes of a fault is the same in each series.
elsewhere_only 'series=flaky.@(*-seeds|goodbye*|return-all-broken|each-call.rndv-@(get|put).cut)' \
    'asan=flaky.@(*-seeds|all-broken|return-all-broken|unread.1-lanes|each-call.@(eager-copy|rndv-*).cut|each-call.rndv-put.2-lanes)' \
    'tsan=flaky.@(*-seeds|not-kept|goodbye*)'

# Faults as parts of 10000 messages; each seed has one of these mixtures, and 2 to 4 lanes.
flaky_faults=(
    "die 300 sleep_turns 0 delay 200 busy 500"
    "die 300 sleep_turns 3000 busy 200"
    "fail 10 delay 50 rma 1"
    "delay 50 busy 100 fail 3 die 500 sleep_turns 5000 rma 1"
)

flaky_one() { # SEED
    local seed=$1 faults arguments=() threads=1
    # shellcheck disable=SC2206
    faults=(${flaky_faults[seed % ${#flaky_faults[@]}]})
    while [ ${#faults[@]} -gt 0 ]; do
        arguments+=(--mca "btl_flaky_${faults[0]}" "${faults[1]}")
        faults=("${faults[@]:2}")
    done
    [ $((seed % 5)) = 0 ] || [ "$sanitizer" = tsan ] && threads=3
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpirun_run 2 --mca mpi_yield_when_idle 1 --mca pml multilane --mca btl self,flaky \
        --mca pml_multilane_suspect_ms 40 --mca btl_flaky_seed "$seed" \
        --mca btl_flaky_lanes $((2 + seed % 3)) "${arguments[@]}" \
        -- "$build/test/lab/rails_mix" --seed "$seed" --seconds 0.5 --longest 200000 \
        --threads $threads 2>&1
}

# All seeds, and over all of them something must have been lost.
flaky_all() {
    local seed output left_out=0
    for seed in $(seq "$flaky_seeds"); do
        output=$(flaky_one "$seed")
        if [ $? != 0 ] || ! grep -q ', 0 wrong' <<<"$output"; then
            printf '%s\nseed %s failed\n' "$output" "$seed"
            return 1
        fi
        left_out=$((left_out + $(grep -c 'is left out' <<<"$output")))
    done
    echo "lanes were left out $left_out times"
    [ "$left_out" -gt 0 ]
}
check "${prefix}flaky.$flaky_seeds-seeds" flaky_all

# The last lane lost: an error that names the peer, and an end.
flaky_last() {
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpi_fails "flaky.$1" "$2" 2 --mca mpi_yield_when_idle 1 --mca pml multilane \
        --mca btl self,flaky --mca btl_flaky_seed 7 --mca pml_multilane_suspect_ms 40 "${@:3}" -- \
        "$build/test/lab/rails_mix" --seconds 60 --longest 200000
}
flaky_last all-broken "counts as failed: no lane is left" --mca btl_flaky_fail 30 \
    --mca btl_flaky_spared 0
flaky_last not-kept "lane flaky to rank .* and no other lane takes over" \
    --mca btl_flaky_fail 30 --mca btl_flaky_spared 0 --mca pml_multilane_failover 0
flaky_last all-silent "counts as failed: no lane" --mca btl_flaky_die 300 \
    --mca btl_flaky_sleep_turns 2000000000 --mca btl_flaky_lost_ms 1000 \
    --mca btl_flaky_spared 0 --mca pml_multilane_lost_s 3

# At the end a lane closes like btl/tcp whose peer was quicker, with SIGPIPE: the job ends in order.
flaky_goodbye() {
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpirun_run 2 --mca pml multilane --mca btl self,flaky --mca btl_flaky_lanes 1 \
        --mca btl_flaky_goodbye 1 -- "$1"
}
check "${prefix}flaky.goodbye" flaky_goodbye ring
# Of 4.1 there are no sessions, and those of 5.0 fail now and then by themselves (session.c).
[ "$series" != 6.0 ] || check "${prefix}flaky.goodbye-session" flaky_goodbye session

# The same where errors are to be returned: they are, and the job ends in order.
flaky_return() {
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpi_says "flaky.return-$1" "rank 0 went on, 0 failures" 2 --mca mpi_yield_when_idle 1 \
        --mca pml multilane --mca btl self,flaky --mca btl_flaky_seed 7 \
        --mca pml_multilane_suspect_ms 40 --mca pml_multilane_lost_s 3 --mca btl_flaky_spared 0 \
        "${@:2}"
}
flaky_return all-broken --mca btl_flaky_fail 30 -- lost
flaky_return all-silent --mca btl_flaky_die 300 --mca btl_flaky_sleep_turns 2000000000 \
    --mca btl_flaky_lost_ms 1000 -- lost

# One fault at each call of either end's lanes in turn, for each protocol and kind of send; of cuts and
# breaks, each of which has to be noticed and mended, a quarter without --long.
each_call() { # PROTOCOL BYTES LANES [each_call's arguments]
    local output status
    rm -f "$build/each_call.meet"
    output=$(OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpirun_run 2 --mca mpi_yield_when_idle 1 --mca pml multilane --mca btl self,flaky \
        --mca btl_flaky_lanes "$3" --mca btl_flaky_rma 1 --mca pml_multilane_protocol "$1" \
        --mca pml_multilane_suspect_ms 40 -- each_call "$build/each_call.meet" "${@:2}" 2>&1)
    status=$?
    grep -v 'is left out\|is used again' <<<"$output"
    [ $status = 0 ] && grep -q 'cases run, 0 failures' <<<"$output"
}
# A message that its sender's call has given away is in the kernel, not in the stand-in BTL.
for lanes in 1 2; do
    check "${prefix}flaky.unread.$lanes-lanes" each_call eager-copy 3000 $lanes --unread 60
done
each_share="--share 4"
[ -n "${MULTILANE_LONG:-}" ] && each_share=
for each in "eager-short 100" "eager-copy 3000" "eager-zcopy 100000" "rndv-am 200000" \
    "rndv-get 200000" "rndv-put 200000"; do
    # shellcheck disable=SC2086
    for lanes in 1 2; do
        check "${prefix}flaky.each-call.${each%% *}.$lanes-lanes" each_call $each $lanes
    done
    # All of the puts: few are under way just then.
    [ "${each%% *}" = rndv-put ] && each_share=
    # shellcheck disable=SC2086
    check "${prefix}flaky.each-call.${each%% *}.cut" each_call $each 2 --cut $each_share
done
