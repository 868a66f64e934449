#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What scripts that run tests elsewhere have written is counted, and one that broke off is noticed.
set -u
top=$(cd "${srcdir:-.}" && pwd)
. "$top/test/lib.sh"
sudo= # all of it is ours, under any user
unset MULTILANE_RUN MULTILANE_ONLY MULTILANE_FULL MULTILANE_LONG MULTILANE_AGAIN
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
results=$folder/results there=$folder/there

expect() { # WHAT FAILED TOTAL: so many failed of so many in $results
    [ "$(grep -c '^failed' "$results")" = "$2" ] && [ "$(wc -l <"$results")" = "$3" ] && return
    printf '%s: not %s failed of %s:\n' "$1" "$2" "$3" >&2
    cat "$results" >&2
    exit 1
}

: >"$results"
(results=$there; result passed one; result failed two; results_end) >/dev/null
results_take there.end "$there" >/dev/null
expect "one that came to its end" 1 2

: >"$results"
rm "$there.end"
results_take there.end "$there" >/dev/null
expect "one that broke off where an earlier one did not" 2 3

: >"$results"
results_take nowhere.end "$folder/nowhere" >/dev/null 2>&1
expect "one that never began" 1 1

# test/mpi/run itself, stopped by a file of tests that breaks it.
: >"$results"
mkdir -p "$folder/top/test/mpi/runs" "$folder/build/test" "$folder/build/tools"
cp "$top/test/lib.sh" "$folder/top/test/" && cp "$top/test/mpi/run" "$folder/top/test/mpi/"
printf 'ompi_version=4.1.4\nsanitizer=\n' >"$folder/build/test/build-env"
: >"$folder/build/tools/env.sh"
printf 'check good true\n' >"$folder/top/test/mpi/runs/1.sh"
export results logs=$folder/logs
(top=$folder/top; mpi_run "$folder/build" here.) >/dev/null
expect "runs that come to their end" 0 1
printf 'ranks=5\ncheck good true\n' >"$folder/top/test/mpi/runs/1.sh"
# shellcheck disable=SC2016
printf 'check alone [ "${ranks:-2}" = 2 ]\n' >"$folder/top/test/mpi/runs/2.sh"
: >"$results"
(top=$folder/top; mpi_run "$folder/build" here.) >/dev/null
expect "a file after one that leaves a variable" 0 2
: >"$results"
# shellcheck disable=SC2016
printf 'echo "$no_such_variable"\n' >"$folder/top/test/mpi/runs/2.sh"
(top=$folder/top; mpi_run "$folder/build" here.) >/dev/null 2>&1
expect "runs that break off" 1 2

# A status alone is no reason: mpirun may end with it.
: >"$results"
(check told sh -c 'echo "skip a case: its reason"; exit 77'; check silent sh -c 'exit 77') >/dev/null
expect "a skip, and what ends with the same status" 1 2
grep -q '^skipped.told' "$results" || { echo "the skip is none:"; cat "$results"; exit 1; } >&2

# One test by its name, with or without its part: what it needs runs, and is no test.
for only in wanted here.wanted 'want*'; do
    : >"$results"
    # shellcheck disable=SC2034
    (part=here MULTILANE_ONLY=$only; check here.build true; check here.other false; check here.wanted true) >/dev/null
    expect "a test that is asked for as $only" 0 1
done

# Tests beside each other: all are counted, and one that breaks off is.
: >"$results"
# shellcheck disable=SC2154
breaks_off() { check before true; echo "$no_such_variable"; check after true; }
(
    part=here
    for name in one two three; do beside check $name true; done
    beside check four false
    beside breaks_off
    wait
) >/dev/null 2>&1
expect "tests beside each other" 2 6

# What breaks off while it holds a lock ends the part, and the next one gets the lock.
# shellcheck disable=SC2030,SC2031
said=$(
    build_root=$folder/locks
    (locked it breaks_off; echo "it went on") 2>/dev/null
    locked it echo held
    locked it false || echo "status $?"
    locked it ls /proc/self/fd/9 >/dev/null 2>&1 || echo "not inherited"
)
[ "$said" = "  ok    before (0 s)
held
status 1
not inherited" ] || { printf 'locks:\n%s\n' "$said" >&2; exit 1; }

# One test alone, by its name or a pattern; the others do not run.
# shellcheck disable=SC2016
printf 'check "${prefix}good" true\ncheck "${prefix}bad" false\nskip "${prefix}bare" nothing\n' \
    >"$folder/top/test/mpi/runs/2.sh"
: >"$results"
"$folder/top/test/mpi/run" "$folder/build" here. 2 --only good >/dev/null || exit 1
expect "one test" 0 1
: >"$results"
"$folder/top/test/mpi/run" "$folder/build" here. --only 'here.b*' >/dev/null
expect "a pattern with the prefix" 1 2
: >"$results"
said=$("$folder/top/test/mpi/run" "$folder/build" --only nosuch 2>&1) &&
    { echo "a name that no test has is no error" >&2; exit 1; }
[ "$said" = "test/mpi/run: no test here is called nosuch" ] || { echo "$said" >&2; exit 1; }

# What a file leaves out elsewhere runs on 4.1, and where it is asked for.
# shellcheck disable=SC2016
printf 'elsewhere_only "series=b@(x|\n    y)|\n    g@(ood|x)"\ncheck "${prefix}good" true\ncheck "${prefix}bad" false\n' \
    >"$folder/top/test/mpi/runs/2.sh"
: >"$results"
"$folder/top/test/mpi/run" "$folder/build" here. 2 >/dev/null
expect "all of a file on 4.1" 1 2
printf 'ompi_version=5.0.7\nsanitizer=\n' >"$folder/build/test/build-env"
: >"$results"
"$folder/top/test/mpi/run" "$folder/build" here. 2 >/dev/null || exit 1
grep -q '^skipped.here\.bad' "$results" || { echo "nothing is left out on 5.0" >&2; exit 1; }
: >"$results"
"$folder/top/test/mpi/run" "$folder/build" here. 2 --only bad >/dev/null
expect "what is left out, asked for" 1 1

# Both what a program prints and how it ends are looked at. This mpirun prints "said" and ends with the
# last of its arguments.
# shellcheck disable=SC2016
printf '#!/bin/sh\necho said\neval "exit \\${$#}"\n' >"$folder/mpirun"
chmod +x "$folder/mpirun"
printf 'ompi_version=4.1.4\nsanitizer=\nmpirun=%s\n' "$folder/mpirun" >"$folder/build/test/build-env"
printf 'mpi_says %s 1 -- /program %d\n' 'good said' 0 'bad said' 1 'bad nothing' 0 >"$folder/top/test/mpi/runs/1.sh"
printf 'mpi_fails %s 1 -- /program %d\n' 'good said' 1 'bad said' 0 'bad nothing' 1 >>"$folder/top/test/mpi/runs/1.sh"
: >"$results"
(top=$folder/top; mpi_run "$folder/build" here. 1) >/dev/null 2>&1
expect "what programs say and how they end" 4 6

# test/all itself, with a part that an unset variable ends, and one after it.
mkdir -p "$folder/top/test/parts" && cp "$top/test/all" "$folder/top/test/"
# shellcheck disable=SC2016
printf 'part_run() {\n    check broken.one true\n    echo "$no_such_variable"\n    check broken.two true\n}\n' \
    >"$folder/top/test/parts/10-broken.sh"
printf 'part_run() {\n    check whole.one true\n}\n' >"$folder/top/test/parts/20-whole.sh"
said=$(MULTILANE_BUILD=$folder/all "$folder/top/test/all" --full 2>/dev/null | tail -n 2)
[ "$said" = "failed: broken
2 passed, 1 failed, 0 skipped" ] || { printf 'a part that breaks off:\n%s\n' "$said" >&2; exit 1; }

# What fails once is tried again, and named with what it printed; what fails twice fails, and so do four of the first.
# shellcheck disable=SC2016
printf 'part_run() {\n    once() { [ -e "$build_root/$1" ] || { : >"$build_root/$1"; echo "$1 breaks"; return 1; }; }
    check once.one once one && check once.whole true\n    check once.bad false
    skip once.a "no need"; skip once.b "no need"; skip once.c "no time"\n}\n' >"$folder/top/test/parts/10-broken.sh"
said=$(MULTILANE_BUILD=$folder/all "$folder/top/test/all" --full 2>/dev/null | tail -n 8 | sed 's/ after [0-9]* s$/ after 0 s/')
[ "$said" = "skipped: once.a and 1 more: no need
skipped: once.c: no time
        | once.one: exit status 1 after 0 s
        | one breaks
        | once.bad: exit status 1 after 0 s
unsteady: once.one
failed: once.bad
2 passed, 1 failed, 3 skipped, 1 passed at the second try only (at most 3 may)" ] ||
    { printf 'a test that fails once:\n%s\n' "$said" >&2; exit 1; }
for tests in 3 4; do
    rm -rf "$folder/all"
    # shellcheck disable=SC2016
    sed -i "s/^    check once.one.*/    for i in \$(seq 3); do check once.\$i once \$i; done/; /once.bad/d; s/seq 3/seq $tests/" \
        "$folder/top/test/parts/10-broken.sh"
    status=0
    MULTILANE_BUILD=$folder/all "$folder/top/test/all" --full >/dev/null 2>&1 || status=1
    [ $status = $((tests - 3)) ] || { echo "$tests tests that fail once: status $status" >&2; exit 1; }
done

# A part beside the others, and what is built ahead of a part that has not begun.
rm "$folder/top/test/parts/"*
rm -rf "$folder/all"
printf 'runs_beside=1\npart_run() { check beside.one true; }\n' >"$folder/top/test/parts/10-beside.sh"
# shellcheck disable=SC2016
printf 'part_run() { check first.one eval '\''until [ -e "$build_root/ahead" ]; do sleep 0.1; done'\''; }\n' \
    >"$folder/top/test/parts/20-first.sh"
# shellcheck disable=SC2016
printf 'part_build() { : >"$build_root/ahead"; }\npart_run() { check last.one true; }\n' >"$folder/top/test/parts/30-last.sh"
said=$(MULTILANE_BUILD=$folder/all "$folder/top/test/all" --full 2>/dev/null |
    sed -n 's/^== //p; s/^  ok  *\([^ ]*\).*/\1/p; /passed/p' | sort | tr '\n' ' ')
[ "$said" = "3 passed, 0 failed, 0 skipped beside beside.one first first.one last last.one " ] ||
    { printf 'parts beside others: %s\n' "$said" >&2; exit 1; }

# Ctrl-C ends what the run has started: also what a check beside others, or a part beside others, has begun, in
# process groups of their own.
rm -rf "$folder/all" "$folder/top/test/parts/"*
sleeping="timeout 300 sleep 299.$$"
printf 'runs_beside=1\npart_run() { check beside.one %s; }\n' "$sleeping" >"$folder/top/test/parts/10-beside.sh"
printf 'part_run() { beside check first.one %s; wait; }\n' "$sleeping" >"$folder/top/test/parts/20-first.sh"
set -m
# Where this test itself runs in the background, the signal may be ignored: not so in what it starts.
MULTILANE_BUILD=$folder/all env --default-signal=INT "$folder/top/test/all" --full >/dev/null 2>&1 &
run=$!
set +m
looks=0
until [ "$(pgrep -fcx "sleep 299.$$")" = 2 ] || [ $((looks += 1)) = 100 ]; do sleep 0.1; done
kill -INT -- -$run
wait $run
status=$?
left=$(pgrep -fx "(timeout 300 )?sleep 299.$$" | tr '\n' ' ')
# shellcheck disable=SC2086
[ $looks -lt 100 ] && [ $status = 130 ] && [ -z "$left" ] || {
    [ -z "$left" ] || kill $left
    printf 'an interrupted run: status %s, left %s, after %s looks\n' $status "$left" $looks >&2
    exit 1
}
