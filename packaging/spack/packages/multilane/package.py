# SPDX-License-Identifier: BSD-3-Clause
"""Spack's recipe for Multilane; packaging/README.md says how to use this repository of recipes."""
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Multilane(AutotoolsPackage):
    """A plugin for an unmodified Open MPI that uses every lane between two processes (shared memory, tcp,
    RDMA, GPU) at once, by a cost model."""

    # The tarball of make dist, in a mirror or given by `spack develop`: it has no home on the network yet.
    manual_download = True

    license("BSD-3-Clause")

    version("1.0.0")

    variant("verbs", default=True, description="Build btl/verbs, the lane over RDMA devices")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("openmpi@4.1.4:4.1.8,5.0.7:5.0.9")
    depends_on("hwloc@2:")
    depends_on("pmix", when="^openmpi@5:")
    depends_on("rdma-core", when="+verbs")

    # Spack's Open MPI has no inner headers. Those of one release serve all of its row; nothing is built of it.
    resource(
        name="openmpi-4.1",
        url="https://www.open-mpi.org/software/ompi/v4.1/downloads/openmpi-4.1.8.tar.bz2",
        sha256="466f68e3132a1dc02710cc2011fafced8336d98359fa2dae4dddcfd5719f12a9",
        placement="openmpi-release",
        when="^openmpi@4.1",
    )
    resource(
        name="openmpi-5.0",
        url="https://www.open-mpi.org/software/ompi/v5.0/downloads/openmpi-5.0.8.tar.bz2",
        sha256="53131e1a57e7270f645707f8b0b65ba56048f5b5ac3f68faabed3eb0d710e449",
        placement="openmpi-release",
        when="^openmpi@5.0",
    )

    def url_for_version(self, version):
        return f"file://{os.getcwd()}/multilane-{version}.tar.xz"

    def component_dir(self):
        return self.prefix.lib.openmpi

    def configure_args(self):
        openmpi = self.spec["openmpi"].prefix
        args = [f"--with-ompi={openmpi}", f"--with-component-dir={self.component_dir()}", "--without-cuda"]
        args.append(
            f"--with-verbs={self.spec['rdma-core'].prefix}" if "+verbs" in self.spec else "--without-verbs"
        )
        if not os.path.isfile(os.path.join(openmpi, "include", "openmpi", "opal_config.h")):
            args.append(f"--with-ompi-headers={os.path.join(self.stage.source_path, 'openmpi-release')}")
            log = self.config_log(openmpi)
            if log:
                args.append(f"--with-ompi-config-log={log}")
        return args

    def config_log(self, openmpi):
        """What Spack has kept of the building of Open MPI: all answers of its configure."""
        kept = os.path.join(openmpi, ".spack", "archived-files")
        for folder, _, names in sorted(os.walk(kept)):
            if "config.log" in names:
                return os.path.join(folder, "config.log")
        return None

    def setup_run_environment(self, env):
        env.set("OMPI_MCA_mca_base_component_path", f"{self.component_dir()}:SYS_DEFAULT:USER_DEFAULT")
