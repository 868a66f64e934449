# SPDX-License-Identifier: BSD-3-Clause
# For configure, which sources it: takes Open MPI's inner headers from a folder where the installation
# has none, and makes opal_config.h. Each function fails with a sentence in $problem. From configure:
# $with_ompi_headers, $with_ompi_config_log, $ompi_version and $ompi_answers (of ompi_info),
# $multilane_incdirs (of mpicc).

# The checked releases of Open MPI that the release $1 shares its layouts with, or itself alone; nothing
# where its series is not supported. The same rows as in common/compat/version.c.
ompi_row() {
    case $1 in
    4.1.[4-8]) echo "4.1.4 to 4.1.8" ;;
    5.0.[7-9]) echo "5.0.7 to 5.0.9" ;;
    5.0.1[01]) echo "5.0.10 to 5.0.11" ;;
    4.1.* | 5.0.* | 6.0.*) echo "$1" ;;
    esac
}

# Where an installation without inner headers gets them from.
ompi_headers_advice() {
    row=$(ompi_row "$ompi_version")
    series=$(expr "$ompi_version" : '\([0-9]*\.[0-9]*\)')
    test "$row" != "$ompi_version" || row=
    echo "unpack the release $ompi_version of Open MPI${row:+ (any of $row will do)} from https://www.open-mpi.org/software/ompi/v$series and give its folder by --with-ompi-headers=DIR"
}

# The part $1 of a version in $version_file: "major=4" in a release, or "#define OPAL_MAJOR_VERSION 4".
version_part() {
    upper=$(echo "$1" | tr a-z A-Z)
    sed -n "s/^$1=//p; s/^#define OPAL_${upper}_VERSION //p" "$version_file" 2>/dev/null | tr -d '"'
}

# Finds the headers, and sets $OMPI_CPPFLAGS to search ompi-headers/ before them. There go copies of
# those that would include opal_config.h from their own folder; gcc follows links to it.
ompi_headers_take() {
    top=$(cd "$with_ompi_headers" 2>/dev/null && pwd) inner=
    for dir in "$top/opal/include" "$top" "$top/openmpi" "$top/include/openmpi"; do
        if test -f "$dir/opal_config_bottom.h"; then inner=$dir && break; fi
    done
    case $inner in
    '')
        problem="--with-ompi-headers=$with_ompi_headers is neither an unpacked release of Open MPI nor a folder of its inner headers: opal_config_bottom.h is missing."
        return 1
        ;;
    */opal/include) dirs="$inner $top/ompi/include $top/orte/include $top" version_file=$top/VERSION ;;
    *) dirs=$inner version_file=$inner/opal/version.h ;;
    esac
    ompi_headers_version=$(version_part major).$(version_part minor).$(version_part release)$(version_part greek)
    if test "$ompi_headers_version" = ..; then
        problem="--with-ompi-headers=$with_ompi_headers is not whole: it lacks ${version_file#"$top/"}; unpack it again."
        return 1
    fi
    if test "$ompi_headers_version" != "$ompi_version" && test "$(ompi_row "$ompi_headers_version")" != "$(ompi_row "$ompi_version")"; then
        problem="--with-ompi-headers=$with_ompi_headers has the headers of Open MPI $ompi_headers_version, and the installed one is $ompi_version; $(ompi_headers_advice)."
        return 1
    fi

    rm -rf ompi-headers && mkdir -p ompi-headers/opal
    OMPI_CPPFLAGS="-isystem $(pwd)/ompi-headers"
    for dir in $dirs; do
        OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $dir"
        for file in "$dir"/ompi_config.h "$dir"/orte_config.h "$dir"/opal_*.h; do
            test ! -f "$file" || cp "$file" ompi-headers/
        done
    done
    for dir in $multilane_incdirs; do
        test -f "$dir/opal_config.h" || OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $dir"
        test ! -f "$dir/mpi.h" || mpi_h=$dir/mpi.h
    done
    echo "$ompi_version" | sed 's/\([0-9]*\)\.\([0-9]*\)\.\([0-9]*\)\(.*\)/#define OPAL_MAJOR_VERSION \1\n#define OPAL_MINOR_VERSION \2\n#define OPAL_RELEASE_VERSION \3\n#define OPAL_GREEK_VERSION "\4"/' \
        >ompi-headers/opal/version.h
}

# Whether the config.log is that of the installation: both know when it was configured.
ompi_config_log_check() {
    said=$(sed -n "s/^OPAL_CONFIGURE_DATE='\(.*\)'\$/\1/p" "$with_ompi_config_log" 2>/dev/null)
    wanted=$(echo "$ompi_answers" | sed -n 's/^config:timestamp:"*\([^"]*\)"*$/\1/p')
    if test -z "$said" || test "$said" != "$wanted"; then
        problem="--with-ompi-config-log=$with_ompi_config_log is not of the installed Open MPI, which was configured on $wanted (in the file: ${said:-no date})."
        return 1
    fi
}

# What no question to the installation tells, with the usual answer; the sizes in the libraries
# correct it.
ENABLE_DEBUG=0 CUDA_SUPPORT=0 ENABLE_FT_MPI=1 GROUP_SPARSE=0 CSWAP_INT128=1 ENDPOINTS=4
case $ompi_version in 4.*) ENABLE_FT_MPI=0 ;; esac

opal_config_write() {
    {
        printf '#ifndef OPAL_CONFIG_H\n#define OPAL_CONFIG_H\n'
        printf '#include "opal_config_top.h"\n#include "multilane_platform.h"\n'
        if test -n "$with_ompi_config_log"; then
            # Names of whole headers: multilane_platform.h has those that are there.
            sed '1,/^## confdefs\.h/d' "$with_ompi_config_log" | grep '^#define ' |
                grep -v '^#define \(PACKAGE\|MCA_event\|MCA_hwloc\|HWLOC_\)'
        else
            sed -n '/OMPI_BEGIN_CONFIGURE_SECTION/,/#ifndef OMPI_DECLSPEC/p' "$mpi_h" | grep '^#define '
            has() { case $ompi_answers in *"$1"*) echo 1 ;; *) echo 0 ;; esac; }
            c11=$(has --disable-builtin-atomics)
            cat <<EOT
#define OPAL_ENABLE_DEBUG $ENABLE_DEBUG
#define OPAL_ENABLE_MEM_DEBUG $(has option:mem-debug:yes)
#define OPAL_ENABLE_HETEROGENEOUS_SUPPORT $(has options:heterogeneous:yes)
#define OPAL_ENABLE_FT_MPI $ENABLE_FT_MPI
#define OPAL_CUDA_SUPPORT $CUDA_SUPPORT
#define OPAL_CUDA_GDR_SUPPORT $CUDA_SUPPORT
#define OPAL_HAVE_SYNC_BUILTIN_CSWAP_INT128 $CSWAP_INT128
#define OPAL_USE_C11_ATOMICS $c11
#define OPAL_USE_GCC_BUILTIN_ATOMICS $((1 - c11))
#define OMPI_GROUP_SPARSE $GROUP_SPARSE
#define OMPI_PROC_ENDPOINT_TAG_MAX $ENDPOINTS
EOT
        fi
        printf '#include "opal_config_bottom.h"\n#endif\n'
    } >ompi-headers/opal_config.h
}

# Where the libraries have $2 for the symbol $1 in place of the headers' $3: takes the other answer,
# once. Fails where there is none.
opal_config_correct() {
    case $1 in
    opal_object_t_class) answer=ENABLE_DEBUG ;;
    opal_lifo_t_class) answer=CSWAP_INT128 ;;
    opal_convertor_t_class | mca_btl_self | opal_built_with_cuda_support) answer=CUDA_SUPPORT ;;
    ompi_communicator_t_class) answer=ENABLE_FT_MPI ;;
    ompi_use_sparse_group_storage) answer=GROUP_SPARSE ;;
    ompi_proc_t_class) answer=ENDPOINTS ;;
    *) answer=none ;;
    esac
    if test -z "$with_ompi_headers" || test -n "$with_ompi_config_log"; then answer=none; fi
    case " $corrected none " in
    *" $answer "*)
        problem="the headers of Open MPI are not those of its libraries: $1 is $3 by the headers and $2 in the libraries; they are of another build, or the vendor changed them."
        return 1
        ;;
    esac
    corrected="$corrected $answer"
    if test $answer = ENDPOINTS; then
        ENDPOINTS=$((ENDPOINTS + ($2 - $3) / 8))
    else
        eval "$answer=\$((1 - $answer))"
    fi
    opal_config_write
}
