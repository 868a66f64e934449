# SPDX-License-Identifier: BSD-3-Clause
# Alone: it calibrates.
# Profiles: made by multilane-calibrate, found by the next job, and left alone with one sentence where
# they do not fit.
# What is read, refused or does not fit is the same in each series; a sanitizer sees all of it.
elsewhere_only 'series=profile.@(calibrate|times|found|tool|used|switch-points*|other-pml|self)' \
    'asan=!(profile.@(equal-names|no-write|tool))'
profile_folder=$build/profile-test
rm -rf "$profile_folder"
mkdir -p "$profile_folder/cache" "$profile_folder/home"
profile=$profile_folder/profile
shm="--mca pml multilane --mca btl self,shm"

# On a machine that does something else meanwhile nothing may be steady: then the sentence must say so, and
# the job ends well all the same.
# shellcheck disable=SC2086
calibrate() { # [OPTION]...
    local output status
    output=$(XDG_CACHE_HOME=$profile_folder/cache limit_s=400 mpirun_run 2 $shm \
        --mca pml_multilane_profile none -- \
        "$build/multilane-calibrate" --quick "$@" 2>&1)
    status=$?
    printf '%s\n' "$output" | tee "$profile_folder/said"
    [ $status = 0 ] || return 1
    grep -q '^profile: ' <<<"$output" || grep -q "no profile was written, because no lane" <<<"$output"
}
check "${prefix}profile.calibrate" calibrate
# Whatever the user has set, messages are timed; each round sends 16 of a size, of which the PML keeps 15.
calibrate_times() {
    OMPI_MCA_pml_multilane_learn=0 calibrate --output "$profile_folder/learn-off" &&
        grep -E "^ +4k +[a-z-]+ +[0-9.]+[nu]s +[0-9]+ % +[1-9][0-9]* +[a-z-]+ +[0-9.]+[nu]s\$|left out of the profile" \
            "$profile_folder/said"
}
check "${prefix}profile.times" calibrate_times
calibrate_without_writing() {
    # shellcheck disable=SC2086
    XDG_CACHE_HOME=$profile_folder/unwritten mpirun_run 2 $shm --mca pml_multilane_profile none -- \
        "$build/multilane-calibrate" --quick --no-write && [ ! -e "$profile_folder/unwritten" ]
}
check "${prefix}profile.no-write" calibrate_without_writing
# That folder is looked at before anything is measured.
calibrate_for_the_site() {
    local status
    : >"$build/inst/etc" || return 1
    # shellcheck disable=SC2086
    output_of 1 "$build/inst/etc.*cannot be made.*--output" 2 $shm -- "$build/multilane-calibrate" --quick --site
    status=$?
    rm "$build/inst/etc"
    return $status
}
if grep -qx "prefix = $build/inst" "$build/Makefile" && [ ! -e "$build/inst/etc" ]; then
    check "${prefix}profile.site" calibrate_for_the_site
else
    skip "${prefix}profile.site" "this build is for another place, which is left as it is"
fi
if [ -z "$(find "$profile_folder/cache" -type f)" ]; then
    skip "${prefix}profile.found" "the machine is too busy for any lane to be steady"
else
    profile_found() {
        local output
        # shellcheck disable=SC2086
        output=$(XDG_CACHE_HOME=$profile_folder/cache mpirun_run 2 $shm --mca pml_multilane_explain 1 \
            -- ring 2>&1)
        printf '%s\n' "$output"
        grep -q "profile $profile_folder/cache/multilane/profile-" <<<"$output" &&
            grep -q 'shm:shm .* profile$' <<<"$output"
    }
    check "${prefix}profile.found" profile_found
    # It reads the profile each time.
    profile_tool() { XDG_CACHE_HOME=$profile_folder/cache "$build/test/mpi/counters" tool; }
    check "${prefix}profile.tool" profile_tool
fi

# On a machine where time jumps nothing is steady: a sentence, no file, and no banner of mpirun's.
unsteady() {
    local output folder=$profile_folder/unsteady
    mkdir -p "$folder"
    # shellcheck disable=SC2086
    output=$(XDG_CACHE_HOME=$folder mpirun_run 2 $shm --mca pml_multilane_profile none \
        -x LD_PRELOAD="$build/.libs/libpreload_unsteady.so" -- "$build/multilane-calibrate" --quick 2>&1)
    local status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -Eq 'no profile was written, .* steadily: .* load is [0-9.]+ on [0-9]+' \
        <<<"$output" && ! grep -qi 'mpirun\(.openmpi\)\? detected\|primary job\|abort' <<<"$output" &&
        [ -z "$(find "$folder" -type f)" ]
}
if [ -n "$sanitizer" ]; then
    skip "${prefix}profile.unsteady" "a sanitizer has to be loaded before any other library"
else
    check "${prefix}profile.unsteady" unsteady
fi

# One written by hand for this very machine: used, and shown by ompi_info, whatever else runs here.
{
    profile_head
    for placement in cache node; do
        printf '[lane shm:shm@%s]\ncan = send short get\nshort_max = 1000\ncopied_max = 16k\n' $placement
        printf 'bandwidth = 5e9\noverhead = 1e-6\nlatency = 1e-6\n[range shm:shm@%s 4k]\n' $placement
        printf 'send_bandwidth = 3e9\nsend_overhead = 5e-7\n'
    done
    printf '[end]\n'
} >"$profile"
# shellcheck disable=SC2086
mpi_says profile.used "shm:shm +send +4k .* 3 GB/s .* profile" 2 $shm --mca pml_multilane_explain 1 \
    --mca pml_multilane_profile "$profile" -- ring
# shellcheck disable=SC2086
mpi_says profile.user-is-stronger "shm:shm +send +4k .* 7 GB/s .* profile, bandwidth user" 2 $shm \
    --mca pml_multilane_explain 1 --mca pml_multilane_profile "$profile" \
    --mca btl_shm_lane_bandwidth 7e9 -- ring
profile_switch_points() {
    OMPI_MCA_pml_multilane_profile=$profile "$ompi_info" --param pml multilane --level 9 --parsable |
        grep 'switch_points:value:.*shm:shm@cache: eager-short to .* above'
}
machine_switch_points() {
    OMPI_MCA_pml_multilane_profile=none OMPI_MCA_btl_shm_lane_bandwidth=0 \
        "$ompi_info" --param pml multilane --level 9 --parsable |
        grep -E 'switch_points:value:"?shm:shm: eager-short to [1-9].* above'
}
# Any other program registers parameters too, and is not to wait for that.
no_switch_points() {
    cp "$ompi_info" "$build/not-ompi-info" &&
        "$build/not-ompi-info" --param pml multilane --level 9 --parsable | grep 'switch_points:value:"\?ompi_info shows them'
}
if [ -n "$sanitizer" ]; then
    skip "${prefix}profile.switch-points" "a sanitizer has to be in the program, and ompi_info is without"
else
    check "${prefix}profile.switch-points" profile_switch_points
    check "${prefix}profile.switch-points-without" machine_switch_points
    check "${prefix}profile.switch-points-elsewhere" no_switch_points
fi

# Several lanes of one name: the profile has it once, and is read.
profile_of_equals() {
    rm -rf "$profile_folder/cache"
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        shm="--mca pml multilane --mca btl self,flaky --mca btl_flaky_lanes 2" calibrate || return 1
    ! grep -h '^\[lane' "$profile_folder/cache/multilane/"* | sort | uniq -d | grep .
}
check "${prefix}profile.equal-names" profile_of_equals

# What does not fit: one sentence, and the job runs.
profile_ignored() { # NAME REGEX
    # shellcheck disable=SC2086
    mpi_says "profile.ignored.$1" "multilane: .*$2.*; the lanes' defaults are used" 2 $shm \
        --mca pml_multilane_profile "$profile" -- ring
}
rm -f "$profile"
profile_ignored absent "there is no such file"
printf '[profile]\nschema = 3\nprocessor = another\n[lane shm:shm@cache]\nsend_bandwidth = 1e9\n[end]\n' >"$profile"
profile_ignored other-machine "its processor is \"another\", this one's"
printf '[profile]\nschema = 9\n' >"$profile"
profile_ignored other-schema "reads schema 3"
printf '[profile]\nschema = 3\n[lane shm:shm@cache]\nsend_bandwidth = 1e9\n' >"$profile"
profile_ignored cut-off "it is cut off"
printf '[profile]\nschema = 3\n[lane shm:shm@cache]\nsend_bandwidth = -3\n[end]\n' >"$profile"
profile_ignored impossible "send_bandwidth = -3"
head -c 3000 /bin/sh >"$profile"
profile_ignored binary "not a text file"
rm -f "$profile" && mkfifo "$profile"
profile_ignored pipe "it is not a file"
rm -f "$profile" && mkdir "$profile"
profile_ignored folder "it is not a file"

# Who asks for what cannot be had is told so.
# shellcheck disable=SC2086
{
    mpi_fails profile.unwritable "/proc/nowhere.*cannot be made.*--output" 2 $shm -- \
        "$build/multilane-calibrate" --quick --output /proc/nowhere/profile
    mpi_fails profile.one-rank "takes two ranks" 1 $shm -- "$build/multilane-calibrate"
    mpi_fails profile.other-pml "does not run|no lane leads" 2 --mca pml ob1 --mca btl self,$sm -- \
        "$build/multilane-calibrate"
    mpi_fails profile.bad-option "no option --fast" 2 $shm -- "$build/multilane-calibrate" --fast
    mpi_says profile.none "no profile: pml_multilane_profile is none" 2 $shm \
        --mca pml_multilane_profile none --mca pml_multilane_explain 1 -- ring
    # A process does not copy to itself by the kernel: its lane keeps its own figures.
    mpi_says profile.self "self +get +inf .* 0s +default\$" 1 --mca pml multilane --mca btl self \
        --mca pml_multilane_explain 1 -- conform point --case messages_to_oneself_arrive
}
rm -rf "$profile_folder"
