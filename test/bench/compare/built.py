# SPDX-License-Identifier: BSD-3-Clause
"""A folder where Multilane was built: what configure found, and the environment of its jobs."""

import os
import shlex
import sys


def env_file(build):
    return os.path.join(build, "test", "build-env")


def build_env(build):
    """What configure found, by name; without it the program ends with a sentence."""
    try:
        with open(env_file(build), encoding="utf-8") as file:
            pairs = [line.rstrip("\n").split("=", 1) for line in file
                     if "=" in line and not line.startswith("#")]
    except OSError as error:
        sys.exit(f"test/bench/{os.path.basename(sys.argv[0])}: {error}; --build names a folder "
                 "where configure was run")
    return {name: "".join(shlex.split(value)) for name, value in pairs}


def environment(found):
    """Jobs take the components of that build, and start for root as well."""
    env = dict(os.environ, OMPI_MCA_btl_base_warn_component_unused="0", UCX_LOG_LEVEL="fatal",
               OMPI_MCA_mca_base_component_path=found["component_dir"] + ":SYS_DEFAULT:USER_DEFAULT")
    for package in ("OMPI", "PRTE"):
        env.update({f"{package}_ALLOW_RUN_AS_ROOT": "1", f"{package}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    return env
