# SPDX-License-Identifier: BSD-3-Clause
# Random traffic, every byte, status and order of matching checked: with the plan's own choice of
# protocols and with each protocol forced, over several lanes. A failure names the seed.
# A protocol asks nothing of the series but lanes that get and put; a sanitizer sees each once.
elsewhere_only "series=traffic.@(auto-*|threads-*|two-lanes-@(auto.2|both-away|are-used)|rndv-@(get|put)-$sm.3|rndv-both-shm.3)" \
    "asan=traffic.@(auto-tcp.2|large-*|small-shm.2|threads-shm.2|two-lanes-rndv-@(get|put).2|two-lanes-both-away|
eager-zcopy-$sm.3|rndv-am-$sm.3|rndv-both-threads-shm.2)"
traffic_protocols="eager-short eager-copy eager-zcopy rndv-am rndv-get rndv-put"
if [ -n "${MULTILANE_LONG:-}" ]; then
    # For each of some forty runs: with 60 they took hours a series.
    traffic_seeds=1-20 limit_s=600
elif [ -n "$whole" ]; then
    traffic_seeds=1-2
else
    traffic_seeds=1 limit_s=240
fi

# traffic NAME RANKS BTLS [mpirun's arguments] -- [the program's arguments]
traffic() {
    local name=$1 ranks=$2 btls=$3
    shift 3
    local before=()
    while [ "$1" != -- ]; do
        before+=("$1")
        shift
    done
    shift
    mpi "traffic.$name.$ranks" "$ranks" --mca pml multilane --mca btl "$btls" \
        --mca btl_tcp_if_include lo "${before[@]}" -- traffic --seeds $traffic_seeds "$@"
}

traffic auto-$sm 3 self,$sm --
traffic auto-tcp 2 self,tcp --
traffic auto-shm 4 self,shm --
traffic large-$sm 2 self,$sm -- --mix large --batches 10
traffic small-shm 2 self,shm -- --mix small --batches 100
# shellcheck disable=SC2086
traffic threads-$sm 2 self,$sm $sm_threads -- --threads 3 --batches 15
traffic threads-shm 2 self,shm -- --threads 3 --batches 15
# Two lanes inside the node that are said not to share what carries them: gets and puts over both.
for protocol in rndv-get rndv-put auto; do
    traffic "two-lanes-$protocol" 2 self,$sm,shm --mca pml_multilane_protocol $protocol \
        --mca pml_multilane_lane_attr "$sm:group=0;shm:group=0" -- --batches 20
done
# What goes whole over one of them is not a share that the other would have to wait for.
mpi traffic.two-lanes-middling-then-large 2 --mca pml multilane --mca btl self,$sm,shm \
    --mca pml_multilane_protocol eager-zcopy:10000-100000,rndv-am:100001-inf \
    --mca pml_multilane_eager_lanes 1 --mca pml_multilane_lane_attr "$sm:group=0;shm:group=0" -- \
    conform point --case large_messages_follow_many_middling_ones
# The end of a message that both ends copied does not overtake its beginning on a faster lane.
mpi traffic.two-lanes-both-away 2 --mca pml multilane --mca btl self,shm,$sm \
    --mca btl_shm_lane_latency 1e-6 --mca pml_multilane_protocol rndv-both:20000-inf -- \
    conform point --case a_message_ends_while_its_sender_is_away
mpi_says traffic.two-lanes-are-used 'rndv-get .*[+] ' 2 --mca pml multilane --mca btl self,$sm,shm \
    --mca pml_multilane_protocol rndv-get --mca pml_multilane_explain 1 \
    --mca pml_multilane_lane_attr "$sm:group=0;shm:group=0" -- ring
for protocol in $traffic_protocols; do
    traffic "$protocol-$sm" 3 self,$sm --mca pml_multilane_protocol $protocol -- --batches 20
    mpi "traffic.columns-$protocol-shm" 2 --mca pml multilane --mca btl self,shm \
        --mca pml_multilane_protocol $protocol -- conform datatype --case columns_of_any_length_travel
    if [ -n "${MULTILANE_LONG:-}" ]; then
        traffic "$protocol-tcp" 3 self,tcp --mca pml_multilane_protocol $protocol --
        traffic "$protocol-shm" 3 self,shm --mca pml_multilane_protocol $protocol --
        traffic "$protocol-threads-shm" 2 self,shm --mca pml_multilane_protocol $protocol -- --threads 4
    fi
done
# A lane that takes at once more than a turn of a message holds.
mpi traffic.longest-eager-zcopy-self 1 --mca pml multilane --mca btl self --mca btl_self_max_send_size 33554432 \
    --mca pml_multilane_protocol eager-zcopy -- conform point --case the_longest_arrive_whole
# Both ends copy at once, on the lane that can: many messages in both directions, ends that compute.
traffic rndv-both-shm 3 self,shm --mca pml_multilane_protocol rndv-both:20000-inf -- --mix large \
    --batches 15
# The same with threads.
traffic rndv-both-threads-shm 2 self,shm --mca pml_multilane_protocol rndv-both:20000-inf -- \
    --mix large --threads 3 --batches 5
if [ -n "${MULTILANE_LONG:-}" ]; then
    for ranks in 1 2 4 5 8 16; do
        traffic long-auto-$sm $ranks self,$sm --
        traffic long-auto-shm $ranks self,shm --
    done
    traffic long-threads-tcp 3 self,tcp -- --threads 4
fi
# The program itself is right where Open MPI's own PML carries its messages.
if [ -z "$sanitizer" ]; then
    mpi traffic.ob1.3 3 --mca pml ob1 --mca btl self,$sm -- traffic --seeds $traffic_seeds
else
    skip "${prefix}traffic.ob1.3" "a sanitizer finds nothing in what is not ours"
fi
