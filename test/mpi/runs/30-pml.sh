# SPDX-License-Identifier: BSD-3-Clause
# What the PML says: to nonsense in its parameters, in its counters and its report, and to peers that
# it cannot talk to.

# Of values that are refused the series changes how they are handed over.
elsewhere_only "series=@(params.@(protocol=nonsense|explain=3|lost_s=0|lane_attr=use-rndv|longest-times)|pml.*|
counters.@($sm|tcp|backlog.shm|rndv-get)|explain.*|eager.by-equation|peer.*|record.@(version|short))" \
    'asan=@(pml.*|counters.*|explain.*|eager.by-equation|peer.*)'
# Refused with a sentence that names the parameter, its value and what it may be.
pml_refuses() { # NAME VALUE REGEX
    mpi_fails "params.$1=$2" "pml_multilane_$1 is \"?$2\"?[:;].*$3" 1 --mca pml multilane \
        --mca "pml_multilane_$1" "$2" -- ring
}
pml_refuses protocol nonsense "eager-short.*eager-copy.*eager-zcopy.*rndv-am.*rndv-get.*rndv-put"
pml_refuses protocol eager-copy:9-3 .
pml_refuses rndv_bias abc .
pml_refuses rndv_bias 0 "above 0"
pml_refuses rndv_bias 101 "at most 100"
pml_refuses rndv_bias 1x .
pml_refuses unexpected_max 12q .
pml_refuses eager_max 12q .
pml_refuses eager_max 0 "above 0"
pml_refuses unexpected_max -1 .
pml_refuses queued_max 12q .
pml_refuses queued_max -1 .
pml_refuses lane_attr tcp:speed=1 "latency, bandwidth"
pml_refuses lane_attr tcp:bandwidth=0 "above 0"
pml_refuses lane_attr nonsense "key=value"
pml_refuses wait doze "auto, spin or sleep"
pml_refuses explain 3 "0 to 2"
pml_refuses failover 7 "0 to 1"
pml_refuses progress_thread -3 "0 to 1"
pml_refuses untested 2 "0 to 1"
pml_refuses lost_s 0 "1 or more"
pml_refuses suspect_ms 0 "1 or more"
pml_refuses suspect_ms -5 "1 or more"
pml_refuses rndv_lanes -1 "0 or more"
# What is no whole number is not 0, nor the number that it begins with.
pml_refuses verify maybe "0 to 1"
pml_refuses lost_s 1.5 "1 or more"
pml_refuses suspect_ms 64x "1 or more"
pml_refuses hang_s 4g "0 or more"
# A lane that alone reaches a process must carry messages with and without a handshake.
for use in rndv eager; do
    if [ $use = rndv ]; then misses=without; else misses=with; fi
    mpi_fails "params.lane_attr=use-$use" \
        "lane_attr says use=$use of all lanes to rank [01] of job [0-9]* on [^ ]* \\(tcp:lo\\).* $misses a handshake; .*use=both" 2 \
        --mca pml multilane --mca btl self,tcp --mca btl_tcp_if_include lo \
        --mca pml_multilane_lane_attr tcp:use=$use -- ring
done
mpi params.lane_attr=uses-of-two 2 --mca pml multilane --mca btl "self,sock,$sm" \
    --mca pml_multilane_lane_attr "sock:use=rndv;$sm:use=eager" -- ring
# The largest times overflow no nanoseconds; what is larger Open MPI itself refuses.
mpi params.longest-times 2 --mca pml multilane --mca btl self,tcp --mca btl_tcp_if_include lo --mca pml_multilane_lost_s 2147483647 \
    --mca pml_multilane_suspect_ms 2147483647 -- ring

# An empty text is the default, and does no harm to jobs that do not name us.
for text in pml_multilane_{protocol,rndv_bias,eager_max,unexpected_max,queued_max,lane_attr,wait,profile} \
    pml_multilane_device_code \
    btl_shm_{single_copy,ring_bytes,memory_max,lane_latency}; do
    export "OMPI_MCA_$text="
done
mpi pml.empty-texts 2 --mca pml multilane --mca btl self,shm -- ring
mpi pml.empty-texts-elsewhere 2 --mca pml ob1 --mca btl self,$sm -- ring
for text in "${!OMPI_MCA_pml_multilane_@}" "${!OMPI_MCA_btl_shm_@}"; do unset "$text"; done
mpi_says pml.infinite-bandwidth "inf GB/s .*bandwidth user" 2 --mca pml multilane --mca btl self,shm \
    --mca btl_shm_lane_bandwidth 0 --mca pml_multilane_explain 1 -- ring

# Variables count.
mpi_says counters.$sm "all as sent" 2 --mca pml multilane --mca btl self,$sm -- counters $sm
mpi_says counters.backlog.shm "all as sent" 2 --mca pml multilane --mca btl self,shm \
    --mca pml_multilane_protocol eager-copy -- counters backlog
mpi_says counters.tcp "all as sent" 2 --mca pml multilane --mca btl self,tcp \
    --mca btl_tcp_if_include lo -- counters tcp
for protocol in eager-zcopy rndv-am rndv-get rndv-put; do
    mpi_says counters.$protocol "all as sent" 2 --mca pml multilane --mca btl self,$sm \
        --mca pml_multilane_protocol $protocol -- counters $sm
done

# The report: as text for people, and as JSON that a program reads.
mpi_says explain.text "messages  *bytes" 2 --mca pml multilane --mca btl self,$sm \
    --mca pml_multilane_explain 1 -- ring
explain_json() {
    local file=$build/explain.json
    rm -f "$file" "$build"/explain.[0-9].json
    mpirun_run 2 --mca pml multilane --mca btl self,$sm --mca pml_multilane_explain "$1" \
        --mca pml_multilane_explain_file "$file" -- ring || return 1
    [ "$1" = 2 ] && file=$build/explain.1.json
    python3 - "$file" <<'EOT'
import json
import sys
report = json.load(open(sys.argv[1]))
messages = 0
assert report["classes"], "no class of peers"
for peers in report["classes"]:
    assert peers["peers"] > 0 and peers["lanes"]
    for plan in peers["plans"]:
        next_size = 0
        for entry in plan["ranges"]:
            assert entry["first"] == next_size, entry
            next_size = entry["last"] + 1
            messages += entry["messages"]
        assert next_size == 2 ** 64, "the last size is the largest"
assert messages > 0, "nothing was sent"
EOT
}
check "${prefix}explain.json" explain_json 1
check "${prefix}explain.json-of-every-rank" explain_json 2

# No constant bounds eager messages: d*(4*20us + 3*10us) - 10us over 1/1.25e9 - d/1.25e9 is 12362500.
tcp_of_10_gbit="--mca pml multilane --mca btl self,tcp --mca btl_tcp_if_include lo
    --mca pml_multilane_explain 1 --mca pml_multilane_lane_attr tcp:bandwidth=1.25e9,latency=2e-5,overhead=1e-5"
# shellcheck disable=SC2086
{
    mpi_says eager.by-equation "12362500 +inf +rndv-am +equation" 2 $tcp_of_10_gbit -- ring
    mpi_says eager.by-credit "2097137 +inf +rndv-am +credit" 2 $tcp_of_10_gbit \
        --mca pml_multilane_unexpected_max 16m -- ring
    mpi_says eager.by-user "100001 +inf +rndv-am +eager_max" 2 $tcp_of_10_gbit \
        --mca pml_multilane_eager_max 100000 -- ring
    mpi_says eager.forced "5000 +inf +rndv-am +forced" 2 $tcp_of_10_gbit \
        --mca pml_multilane_protocol rndv-am:5000-inf -- ring
    mpi_says eager.terms "at 12362500: equation: the lines meet here" 2 \
        ${tcp_of_10_gbit/explain 1/explain 2} -- ring
}

# Rank 0 with an environment of its own; mpirun of 5.0 crashes when it is given two programs.
ring=$build/test/mpi/ring
as_rank_0='if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec /usr/bin/env $1 "$3"; fi; exec /usr/bin/env $2 "$3"'

# A peer with another PML: an error that names it, and no hang.
other_pml() { # NAME RANK-0 RANK-1
    mpi_fails "peer.$1" \
        "cannot talk to rank|selected pml (ob1|multilane), but peer .* selected pml (multilane|ob1)" 2 -- \
        /bin/sh -c "$as_rank_0" sh "OMPI_MCA_pml=$2" "OMPI_MCA_pml=$3" "$ring"
}
other_pml ob1-first ob1 multilane
other_pml ob1-second multilane ob1

# A peer whose record is not one that can be talked to: an error that names it and the reason. Over a lane
# through which the record does not come as well.
if [ -n "$sanitizer" ]; then
    skip "${prefix}record" "a preloaded library would come before the sanitizer's"
else
    record_refused() { # WHAT REGEX
        mpi_fails "record.$1" "multilane: cannot talk to rank [01] .*$2" 2 --mca pml multilane --mca btl self,$sm -- \
            /bin/sh -c "$as_rank_0" sh \
            "LD_PRELOAD=$build/.libs/libpreload_record.so MULTILANE_FORGE=$1" A=b "$ring"
    }
    record_refused version "wire version 77 and this process speaks"
    record_refused order "byte order \(04030201\)"
    record_refused pointer "pointer size \(4\)"
    record_refused magic "not one of Multilane's"
    record_refused short "not one of Multilane's"
fi
