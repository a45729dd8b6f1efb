# SPDX-License-Identifier: BSD-3-Clause
"""Prints where the interpreter finds modules below a prefix. usage: install_dir.py PREFIX"""

import sys
import sysconfig

prefix = sys.argv[1]
schemes = sysconfig.get_scheme_names()
if prefix == "/usr" and "deb_system" in schemes:  # Debian's packages
    scheme = "deb_system"
elif prefix == "/usr/local" and "posix_local" in schemes:  # Debian's interpreter has "local" in the scheme
    scheme, prefix = "posix_local", "/usr"
else:
    scheme = "posix_prefix"
base = dict.fromkeys(("base", "platbase", "installed_base", "installed_platbase"), prefix)
print(sysconfig.get_path("platlib", scheme, vars=base))
