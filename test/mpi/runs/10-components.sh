# SPDX-License-Identifier: BSD-3-Clause
# That the components load where they are named, do nothing where they are not, and refuse an Open
# MPI that they do not know, by its version or by its layouts.

# Which components a job has, no sanitizer changes.
elsewhere_only 'series=!(inert.btl-*|named.@(by-btl|shm-selected))' 'asan=!(@(inert|named).*)'

# The PML and the BTLs that a job has, with our components in sight or out of sight.
components_of() {
    OMPI_MCA_mca_base_component_path=$1 mpirun_run 2 "${@:2}" -- components | LC_ALL=C sort
}

# The same lists before an installation and after it.
inert() {
    local before after
    before=$(components_of SYS_DEFAULT "$@")
    after=$(components_of "$OMPI_MCA_mca_base_component_path" "$@")
    printf 'before:\n%s\nafter:\n%s\n' "$before" "$after"
    grep -q '^pml' <<<"$before" && [ "$before" = "$after" ]
}
check "${prefix}inert.default" inert
check "${prefix}inert.ob1" inert --mca pml ob1
check "${prefix}inert.btl-list" inert --mca pml ob1 --mca btl "self,$sm"
check "${prefix}inert.btl-excluded" inert --mca pml ob1 --mca btl ^tcp

# A BTL of ours answers to its own name and to pml = multilane, however the person said it.
stands_back='btl/shm: offers no lane, since neither'
btl_stands_back() { # expected(yes|no) mpirun's arguments
    local expected=$1 output found=no
    shift
    output=$(mpirun_run 1 --mca btl_base_verbose 10 "$@" -- components 2>&1)
    printf '%s\n' "$output"
    grep -q "$stands_back" <<<"$output" && found=yes
    grep -q 'initializing btl component shm' <<<"$output" || return 1
    [ "$found" = "$expected" ]
}
btl_stands_back_env() {
    OMPI_MCA_pml=multilane btl_stands_back no
}
btl_stands_back_file() {
    local home status
    home=$(mktemp -d)
    mkdir "$home/.openmpi"
    echo "pml = multilane" >"$home/.openmpi/mca-params.conf"
    HOME=$home btl_stands_back no
    status=$?
    rm -rf "$home"
    return $status
}
check "${prefix}named.not" btl_stands_back yes --mca pml ob1
check "${prefix}named.by-btl" btl_stands_back no --mca pml ob1 --mca btl self,shm,$sm
check "${prefix}named.by-pml" btl_stands_back no --mca pml multilane
check "${prefix}named.by-environment" btl_stands_back_env
check "${prefix}named.by-file" btl_stands_back_file
mpi_says named.pml-selected '^pml multilane' 2 --mca pml multilane -- components
# Of a list Open MPI takes the first.
mpi_says named.pml-second '^pml ob1' 2 --mca pml ob1,multilane --mca btl self,$sm,tcp --mca btl_tcp_if_include lo -- components
mpi_says named.shm-selected '^btl shm' 2 --mca pml multilane -- components
mpi_says named.shm-under-ob1 '^btl shm' 2 --mca pml ob1 --mca btl self,shm -- components

if [ -n "$sanitizer" ]; then
    skip "${prefix}load" "a sanitizer has to be in the program, and ompi_info is without"
    return 0
fi

# ompi_info shows every component and its parameters, and starts nothing.
shown() {
    local framework=$1 component=$2
    shift 2
    "$ompi_info" --param "$framework" "$component" --level 9 >"$build/shown" 2>&1 || return 1
    cat "$build/shown"
    for parameter; do
        grep -q "\"${framework}_${component}_$parameter\"" "$build/shown" || {
            echo "(no ${framework}_${component}_$parameter)"
            return 1
        }
    done
}
check "${prefix}shown.pml-multilane" shown pml multilane explain explain_file protocol rndv_bias \
    eager_lanes rndv_lanes unexpected_max failover suspect_ms lost_s lane_attr progress_thread \
    profile untested
for component in shm sock verbs cuda; do
    if [ -f "$component_dir/mca_btl_$component.so" ]; then
        check "${prefix}shown.btl-$component" shown btl $component lane_latency lane_bandwidth \
            lane_overhead lane_reg_cost lane_reg_growth
    else
        skip "${prefix}shown.btl-$component" "this build is without btl/$component"
    fi
done
check "${prefix}shown.single-copy" shown btl shm single_copy

# An integer may be a word where it is 0 or 1, and is nothing but an integer to others.
integers() {
    local text line
    text=$(OMPI_MCA_pml_multilane_verify=yes OMPI_MCA_pml_multilane_learn=off OMPI_MCA_pml_multilane_suspect_ms=1k \
        "$ompi_info" --param pml multilane --level 9 --parsable) || return 1
    for line in verify:value:1 learn:value:0 suspect_ms:value:1024 suspect_ms:type:int; do
        grep "_$line\$" <<<"$text" || { echo "(no $line)"; return 1; }
    done
    ! grep ':enumerator:' <<<"$text"
}
check "${prefix}shown.integers" integers

# Exported: the component's structure and symbols under its own name, and what all of them share. Linked: Open MPI,
# its own PMIx, libc, hwloc; never the CUDA driver nor rdma-core, which are loaded where a device is.
symbols_and_libraries() {
    local library=$1 name bad
    name=$(basename "$library" .so)
    bad=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' |
        grep -v "^${name}_\|^multilane_\(layouts_agreed\|crowd_start_v1\)\$")
    [ -z "$bad" ] || { echo "exports $bad"; return 1; }
    nm -D --defined-only "$library" | grep -q " ${name}_component\$" || return 1
    bad=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -v '^libmpi\.\|^libopen-\(pal\|rte\)\.\|^libopen_mpi\.\|^libpmix\.\|^libhwloc\.\|^libc\.\|^libm\.\|^libpthread\.\|^ld-linux')
    [ -z "$bad" ] || { echo "is linked with $bad"; return 1; }
    # By the compiler's own library, which asks the processor for all that it can: a tenth of what loading costs.
    ! nm "$library" | grep __cpu_indicator_init || return 1
    # Where libmpi is a layer over libopen_mpi, a program may have another layer in its place.
    ! grep -q '^OMPI_LIBS = .*-lopen_mpi' "$build/Makefile" || ! readelf -d "$library" | grep 'NEEDED.*libmpi\.'
}
for library in "$component_dir"/mca_*.so; do
    check "${prefix}library.$(basename "$library" .so)" symbols_and_libraries "$library"
done

# The gate: another release of the series is let in, and one that was not checked is named once; another
# series is refused by name, and untested lets it in.
preload() { # LIBRARY ompi_info: what it shows of the PML
    LD_PRELOAD=$build/.libs/$1.so "$ompi_info" --param pml multilane --level 9 2>&1
}
version_point() {
    preload libpreload_point | grep pml_multilane_protocol
}
version_unknown() { # how often the sentence is said, mpirun's arguments
    local times=$1 said
    shift
    said=$(mpirun_run 2 -x LD_PRELOAD="$build/.libs/libpreload_unknown.so" --mca pml multilane "$@" -- ring 2>&1) || {
        printf '%s\n' "$said"
        return 1
    }
    printf '%s\n' "$said"
    [ "$(grep -c "not checked with this Open MPI $series.99: .* built for $ompi_version and checked with $series\." \
        <<<"$said")" = "$times" ]
}
version_other() {
    LD_PRELOAD=$build/.libs/libpreload_other.so "$ompi_info" --param pml all --level 9 >"$build/other.params" 2>&1 &&
        grep -q pml_ob1_ "$build/other.params" && ! grep pml_multilane_protocol "$build/other.params"
}
version_untested() {
    OMPI_MCA_pml_multilane_untested=1 preload libpreload_other | grep pml_multilane_protocol
}
if [ "$series" = 6.0 ]; then
    for name in point-update unknown-update unknown-update-silenced unknown-update-grown; do
        skip "${prefix}version.$name" "6.0.0rc2 is a pre-release, and like no other version"
    done
else
    check "${prefix}version.point-update" version_point
    check "${prefix}version.unknown-update" version_unknown 1
    check "${prefix}version.unknown-update-silenced" version_unknown 0 --mca pml_multilane_untested 1
    mpi_fails version.unknown-update-grown \
        "pml/multilane will not load into this Open MPI $series.99, .* differently than the Open MPI $ompi_version .*: opal_lifo_t_class is " \
        1 -x LD_PRELOAD="$build/.libs/libpreload_unknown.so:$build/.libs/libpreload_class.so" \
        -x MULTILANE_GROWN=opal_lifo_t --mca pml multilane -- ring
fi
check "${prefix}version.refused" version_other
mpi_fails version.refused-aloud \
    "pml/multilane was built for Open MPI $ompi_version.* running Open MPI 3.9.9" \
    1 -x LD_PRELOAD="$build/.libs/libpreload_other.so" --mca pml multilane -- ring
# says_nothing NAME mpirun's arguments: all is well, and nothing is said of us.
says_nothing() {
    local said
    said=$(mpirun_run 2 "$@" -- ring 2>&1)
    [ $? = 0 ] && ! grep -i multilane <<<"$said" || { printf '%s\n' "$said"; return 1; }
}
check "${prefix}version.silent-unless-named" says_nothing -x LD_PRELOAD="$build/.libs/libpreload_other.so"
check "${prefix}version.untested" version_untested

# The same version built with other options: refused by what differs, also where untested is set.
layout_refused() { # LIBRARY GROWN SYMBOL
    mpi_fails "layout.refused-$1" "pml/multilane will not load .*: $3 is [0-9]+ in place of [0-9]+; " \
        1 -x LD_PRELOAD="$build/.libs/libpreload_$1.so" -x MULTILANE_GROWN="$2" \
        --mca pml_multilane_untested 1 --mca pml multilane -- ring
}
layout_refused class opal_lifo_t opal_lifo_t_class
layout_refused object '' mca_pml_base_selected_component
mpi_fails layout.refused-btl "btl/shm will not load .*: opal_bitmap_t_class is " \
    2 -x LD_PRELOAD="$build/.libs/libpreload_class.so" -x MULTILANE_GROWN=opal_bitmap_t \
    --mca pml ob1 --mca btl self,shm -- ring
check "${prefix}layout.silent-unless-named" says_nothing -x LD_PRELOAD="$build/.libs/libpreload_class.so" \
    -x MULTILANE_GROWN=opal_lifo_t
