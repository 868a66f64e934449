# SPDX-License-Identifier: BSD-3-Clause
"""Spack's own recipe for Open MPI, which builds it without its inner headers, with a variant that has them."""
from spack_repo.builtin.packages.openmpi.package import Openmpi as BuiltinOpenmpi

from spack.package import *


class Openmpi(BuiltinOpenmpi):
    """Open MPI as Spack builds it, with the headers that plugins are built with."""

    variant("devel_headers", default=True, description="Install the headers that plugins need")

    def configure_args(self):
        args = super().configure_args()
        if "+devel_headers" in self.spec:
            args.append("--with-devel-headers")
        return args
