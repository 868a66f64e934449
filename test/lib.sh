# SPDX-License-Identifier: BSD-3-Clause
# What test/all, test/demo and the parts share: packages, builds, root folders, and the counting of
# results. Sourced by bash scripts, which set `top` to the checkout first.

build_root=${MULTILANE_BUILD:-$top/build}
roots=${MULTILANE_ROOTS:-$build_root/roots}
jobs=$(nproc 2>/dev/null || echo 2)
if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

packages_to_build="build-essential pkg-config autoconf automake libtool libopenmpi-dev openmpi-bin
    libhwloc-dev libibverbs-dev python3"

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Before anything is installed.
case $top$build_root in
*[[:space:]]*) die "Autoconf and make take no path with a space: move the checkout, $top, or the builds, $build_root (\$MULTILANE_BUILD)." ;;
esac

# locked NAME COMMAND...: one process at a time; what the command starts does not inherit the lock. A function
# that breaks off (an unset variable) breaks off its caller, as it would without.
locked() {
    local lock=$build_root/$1.lock ended=$build_root/$1.ended.$BASHPID status
    shift
    mkdir -p "$build_root"
    (
        flock 9 && "$@" 9>&-
        status=$?
        : >"$ended"
        exit $status
    ) 9>"$lock"
    status=$?
    rm "$ended" || exit 1
    return $status
}

# --- packages ---------------------------------------------------------------

packages_missing() {
    local package
    for package; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            printf '%s ' "$package"
    done
}

# Installs what is not there. Fails, having said why, where that is not possible.
packages_need() {
    local missing log=$build_root/apt.log
    command -v dpkg-query >/dev/null || return 0 # not Debian: configure will name what is missing
    missing=$(packages_missing "$@")
    [ -n "$missing" ] || return 0
    mkdir -p "$build_root"
    # Tests beside each other may each need some.
    exec {apt_lock}>"$build_root/apt.lock" && flock "$apt_lock"
    packages_install "$missing" "$log"
    local status=$?
    exec {apt_lock}>&-
    return $status
}
packages_install() {
    local missing=$1 log=$2
    if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
        echo "these packages are missing, and without root or sudo they cannot be installed: $missing"
        return 1
    fi
    echo "installing: $missing"
    # An index as old as the machine's image may name versions that the mirror no longer has.
    { [ -n "${apt_updated:-}" ] || $sudo apt-get update; } >"$log" 2>&1 </dev/null
    apt_updated=1
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing \
        >>"$log" 2>&1 </dev/null || {
        tail -n 5 "$log"
        echo "apt-get could not install: $missing"
        return 1
    }
}

# 4.1, 5.0 or 6.0: the series of the Open MPI found on PATH; nothing where there is none.
native_series() {
    ompi_info --version 2>/dev/null | sed -n 's/^Open MPI v\([0-9]*\.[0-9]*\)\..*/\1/p'
}

# The series that this Debian has, where none is installed yet.
series_to_install() {
    apt-cache policy openmpi-bin 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*\.[0-9]*\)\..*/\1/p'
}

# PMIx's headers are a package of their own beside Open MPI 5 and later.
packages_need_to_build() {
    # shellcheck disable=SC2086
    packages_need $packages_to_build "$@" || return 1
    case $(native_series) in 4.*) ;; *) packages_need libpmix-dev ;; esac
}

# --- builds -----------------------------------------------------------------

# What is built: the checkout; or, where it was configured itself, as README says one may, a copy of
# its files: configure refuses to make a build folder beside such a build.
if [ -e "$top/config.status" ]; then sources=$build_root/source; else sources=$top; fi

# The files of the checkout: those that git knows or would take, or those of a tarball.
sources_list() {
    if [ -e "$top/.git" ]; then
        packages_need git >/dev/null &&
            git -C "$top" -c safe.directory='*' ls-files --cached --others --exclude-standard
    else
        cat "$top/MANIFEST"
    fi
}

# Brings the copy up to date. What has not changed keeps its time, so that it is not built again.
sources_copy() {
    local file list=$sources/MANIFEST.new # others copy at the same time, to other places
    mkdir -p "$sources" || return 1
    (cd "$top" && sources_list | while IFS= read -r file; do
        [ ! -f "$file" ] || printf '%s\n' "$file"
    done) | sort >"$list"
    [ ! -f "$sources/MANIFEST" ] || comm -13 "$list" "$sources/MANIFEST" |
        while IFS= read -r file; do rm -f "$sources/$file"; done
    tar -C "$top" -cf - -T "$list" | tar -C "$sources" -xpf - &&
        mv "$list" "$sources/MANIFEST"
}

# Everything that configure needs, in $sources.
sources_prepare() {
    locked sources sources_prepare_locked
}
sources_prepare_locked() {
    [ "$sources" = "$top" ] || sources_copy || return 1
    [ -f "$sources/configure" ] && [ -z "$(find "$sources" -name build -prune -o \
        \( -name configure.ac -o -name Makefile.am -o -name local.mk \) \
        -newer "$sources/configure" -print -quit)" ] && return 0
    "$sources/autogen.sh" >"$build_root/autogen.log" 2>&1 ||
        { cat "$build_root/autogen.log"; return 1; }
}

# build_is_of_ompi: whether the Makefile here is for the Open MPI that comes first on PATH now.
build_is_of_ompi() {
    local version
    version=$(ompi_info --version 2>/dev/null | sed -n 's/^Open MPI v\([0-9.]*\).*/\1/p')
    grep -qxF "OMPI_INFO = $(command -v ompi_info)" Makefile && grep -qxF "OMPI_VERSION = $version" Makefile
}

# build_make NAME [configure's arguments]: configures, after sources_prepare, and builds build/NAME;
# components and programs are installed under build/NAME/inst. libtool is a script, which runs twice as
# fast in dash as in bash, which configure would choose, as in the parts install and distcheck.
build_make() {
    local dir=$build_root/$1
    shift
    mkdir -p "$dir" && (
        cd "$dir" || exit 1
        [ ! -x /bin/dash ] || export CONFIG_SHELL=/bin/dash
        # Objects of another Open MPI may be newer than this one's headers.
        other_ompi=
        case " $* " in *" --with-ompi="*) ;; *) [ ! -e Makefile ] || build_is_of_ompi || other_ompi=1 ;; esac
        { [ -z "$other_ompi" ] && [ Makefile -nt "$sources/configure" ] &&
            grep -qxF "abs_top_srcdir = $sources" Makefile; } ||
            "$sources/configure" --prefix="$dir/inst" --with-component-dir="$dir/inst/components" "$@" ||
            exit 1
        [ -z "$other_ompi" ] || make clean || exit 1
        make -j"$jobs" && make install
    )
}

# --- root folders -----------------------------------------------------------
# A root folder is a Debian of its own under $roots, made by mmdebstrap: another series of Open MPI
# beside the machine's. Nothing is mounted in it but in a namespace that ends with the command.

root_packages="$packages_to_build iproute2 mount procps python3-mpi4py python3-pip"

suite_of_series() {
    case $1 in 4.1) echo bookworm ;; 5.0) echo trixie ;; 6.0) echo forky ;; esac
}

# The mirror that this machine itself installs Debian from, or mmdebstrap's own default.
debian_mirror() {
    # shellcheck disable=SC2016
    printf '%s' "${MULTILANE_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)}"
}

# Why no root folder can be made or entered here; nothing where it can.
root_impossible() {
    if [ -n "$sudo" ] && ! sudo -n true 2>/dev/null; then
        echo "root folders need root, and sudo asks for a password or is not there"
    elif ! $sudo unshare -m true 2>/dev/null; then
        echo "this machine allows no mount namespaces, which root folders need"
    elif ! command -v mmdebstrap >/dev/null && ! packages_need mmdebstrap >/dev/null; then
        echo "mmdebstrap is not there and could not be installed"
    fi
}

# root_make NAME SUITE PACKAGES: makes the root folder unless it is there with these packages.
root_make() {
    local root=$roots/$1 suite=$2 include log=$build_root/root-$1.log
    include=$(printf '%s' "$3" | tr -s ' \n' ',,')
    [ "$($sudo cat "$root/.multilane" 2>/dev/null)" = "$suite $include" ] && return 0
    $sudo rm -rf --one-file-system "$root"
    $sudo mkdir -p "$roots"
    mkdir -p "$build_root"
    # The newest suites' index may be older than the date it says it is good for. dpkg need not wait for
    # the disk: what breaks off here is made again.
    # shellcheck disable=SC2046
    $sudo mmdebstrap --mode=root --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
        --aptopt='Apt::Install-Recommends "false"' --dpkgopt=force-unsafe-io ${include:+--include="$include"} \
        "$suite" "$root" $(debian_mirror) >"$log" 2>&1 </dev/null || {
        tail -n 5 "$log"
        $sudo rm -rf --one-file-system "$root"
        return 1
    }
    printf '%s %s\n' "$suite" "$include" | $sudo tee "$root/.multilane" >/dev/null
}

# root_run NAME COMMAND...: runs the command (bash) in the root folder, with the sources read-only at
# /multilane; what it leaves is under $roots/NAME.
root_run() {
    local root=$roots/$1
    shift
    # shellcheck disable=SC2016
    $sudo env CI="${CI:-}" MULTILANE_RUN="${MULTILANE_RUN:-}" MULTILANE_AGAIN="${MULTILANE_AGAIN:-}" MULTILANE_LONG="${MULTILANE_LONG:-}" MULTILANE_ONLY="${MULTILANE_ONLY:-}" unshare -m --propagation private bash -c '
        root=$0 top=$1
        for dir in proc sys dev; do mount --rbind "/$dir" "$root/$dir" || exit 1; done
        mkdir -p "$root/multilane" && mount --bind "$top" "$root/multilane" &&
            mount -o remount,bind,ro "$root/multilane" || exit 1
        # What this machine knows of its network: names, whom it trusts, where Python packages are.
        cp -L /etc/resolv.conf /etc/hosts /etc/pip.conf "$root/etc/" 2>/dev/null
        cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null
        shift
        exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive CI="${CI:-}" \
            MULTILANE_RUN="${MULTILANE_RUN:-}" \
            MULTILANE_AGAIN="${MULTILANE_AGAIN:-}" MULTILANE_LONG="${MULTILANE_LONG:-}" MULTILANE_ONLY="${MULTILANE_ONLY:-}" bash -c "$*"
    ' "$root" "$sources" "$@" </dev/null
}

# For unshare --mount --propagation: nothing mounted in the namespace is seen outside. In a root folder,
# whose / is no mount, nothing can be said of /, and root_run has said it already.
mount_propagation() {
    if grep -q ' / ' /proc/self/mounts; then echo private; else echo unchanged; fi
}

# --- Open MPI without its inner headers --------------------------------------

# ompi_hide_headers DIR: this system's Open MPI as most systems have it: its mpicc in DIR/bin names an
# include folder without the inner headers. They lie in DIR/inner.
ompi_hide_headers() {
    local mpicc dir
    mpicc=$(command -v mpicc.openmpi || command -v mpicc) || return 1
    rm -rf "$1" && mkdir -p "$1/bin" "$1/include" "$1/inner" || return 1
    for dir in $("$mpicc" --showme:incdirs); do
        if [ -f "$dir/opal_config.h" ]; then
            cp -rL "$dir/." "$1/inner/"
        else
            cp -rL "$dir/." "$1/include/"
        fi || return 1
    done
    [ ! -d "$1/include/openmpi" ] || { cp -r "$1/include/openmpi/." "$1/inner/" && rm -rf "$1/include/openmpi"; }
    printf '#!/bin/sh\ncase $1 in --showme:incdirs) echo "%s" ;; *) exec "%s" "$@" ;; esac\n' \
        "$1/include" "$mpicc" >"$1/bin/mpicc"
    chmod +x "$1/bin/mpicc"
    ln -s "$(command -v ompi_info)" "$(command -v mpirun.openmpi || command -v mpirun)" "$1/bin/" &&
        [ -f "$1/inner/opal_config.h" ]
}

# ompi_release DIR PATTERN...: unpacks from Debian's source package of this system's Open MPI what the
# patterns name, into DIR.
ompi_release() {
    local dir=$1 version
    shift
    version=$(dpkg-query -W -f '${source:Version}' openmpi-bin) || return 1
    mkdir -p "$dir/lists/partial" || return 1
    (
        cd "$dir" || exit 1
        printf 'deb-src %s %s main\n' "$(debian_mirror)" "$(. /etc/os-release && echo "$VERSION_CODENAME")" >source.list
        # Only the archive of the release, and no list of this system's own is touched.
        apt_get() {
            apt-get -o Dir::Etc::sourcelist="$dir/source.list" -o Dir::Etc::sourceparts=- \
                -o Dir::State::lists="$dir/lists" -o APT::Sandbox::User=root \
                -o Acquire::Check-Valid-Until=false "$@"
        }
        [ -n "$(ls -- *.orig.tar.* 2>/dev/null)" ] ||
            { apt_get update && apt_get source --download-only --tar-only "openmpi=$version"; } || exit 1
        tar -xf ./*.orig.tar.* --strip-components=1 --wildcards "$@"
    )
}

# --- results ----------------------------------------------------------------
# One line a test in $results: outcome, name, reason.

result() {
    printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >>"$results"
    case $1 in
    passed) printf '  ok    %s%s\n' "$2" "${3:+ ($3)}" ;;
    failed) printf '  FAIL  %s%s\n' "$2" "${3:+: $3}" ;;
    unsteady) printf '  AGAIN %s%s\n' "$2" "${3:+: $3}" ;;
    skipped) printf '  skip  %s: %s\n' "$2" "${3:-no reason given}" ;;
    esac
}

skip() {
    result skipped "$1" "$2"
}

# is_wanted NAME: whether that test of a part is to run. With $MULTILANE_ONLY those that it names, and
# what they need: what ends in .build or .root.
is_wanted() {
    # shellcheck disable=SC2053
    [[ -z ${MULTILANE_ONLY:-} || $1 == $MULTILANE_ONLY || ${1#"${part:-}."} == $MULTILANE_ONLY ||
        $1 == *.build || $1 == *.root ]]
}

# check NAME COMMAND...: a test that passes if the command ends with 0, and is skipped if it ends with 77 and a line
# that begins with "skip" says why. What it prints is shown only if it fails, and again at the end of test/all. There a second try may pass: a fault that shows once in many runs
# is then `unsteady`, is named at the end and does not stop the run. After $unsteady_max of them, or failures, none is
# tried again; where more come together, from root folders, the run fails.
unsteady_max=3
check() {
    local name=$1 log status started=$SECONDS
    is_wanted "$name" || return 0
    shift
    mkdir -p "$logs"
    log=$logs/$(printf '%s' "$name" | tr -c 'A-Za-z0-9._-' '_').log
    # The command may be a function of the part, with `set -e` of its own.
    ("$@") >"$log" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ]; then
        case ${MULTILANE_ONLY:+$name} in *.build | *.root) ;; *) result passed "$name" "$((SECONDS - started)) s" ;; esac
        return 0
    fi
    # The reason, too: mpirun itself may end with this number.
    if [ $status = 77 ] && grep -q '^skip ' "$log"; then
        skip "$name" "$(grep '^skip ' "$log" | tail -n 1)"
        return 0
    fi
    local why="exit status $status after $((SECONDS - started)) s" outcome=failed second= said
    said=$(log_end "$name" "$why" "$log")
    if may_try_again; then
        ("$@") >"$log.again" 2>&1 </dev/null
        [ $? != 0 ] || outcome=unsteady
        second=" (the second try's: $log.again)"
    fi
    result $outcome "$name" "$why; the end of $log$second:"
    # In one write: others may add to it.
    printf '%s\n' "$said" >>"$results.log"
    printf '%s\n' "$said"
    [ $outcome = unsteady ]
}

log_end() { # NAME WHY LOG
    printf '        | %s: %s\n' "$1" "$2"
    tail -n "${MULTILANE_LOG_LINES:-40}" "$3" | sed 's/^/        | /'
}

# One that is run alone says at once what it finds; where much fails, no time is spent.
may_try_again() {
    [ -n "${MULTILANE_AGAIN:-}" ] && [ -z "${MULTILANE_ONLY:-}" ] &&
        [ "$(grep -c '^failed\|^unsteady' "$results")" -lt $unsteady_max ]
}

# beside COMMAND...: runs what counts its results by itself (a check) beside others, as many as there are
# processors; its output comes whole when it ends. Not for what measures time. `wait` waits for all.
beside() {
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    {
        local output end="came to its end"
        output=$("$@"; printf '%s' "$end")
        printf '%s' "${output%"$end"}"
        [ "${output%"$end"}" != "$output" ] || result failed "${part:-run}.beside" "it broke off: $*"
    } &
}

# A script that runs tests on its own (test/mpi/run, test/install-check) says as its last act that it
# got there, whatever failed: else the tests that it did not reach would not be missed.
results_end() {
    : >"$results.end"
}

# results_take NAME FILE: adds the results of such a script, which may be elsewhere (a root folder);
# the test NAME fails if it broke off. The caller removes FILE.end and FILE.log before it starts the
# script.
results_take() {
    [ "$2" = "$results" ] || {
        $sudo cat "$2" >>"$results"
        [ ! -e "$2.log" ] || $sudo cat "$2.log" >>"$results.log"
    }
    [ -e "$2.end" ] ||
        result failed "$1" "it broke off: what it did not come to is missing above"
}

# mpi_run BUILD-DIR PREFIX [RUNS...]: test/mpi/run with this machine's Open MPI.
mpi_run() {
    rm -f "$results.end"
    "$top/test/mpi/run" "$@"
    results_take "$2end" "$results"
}
