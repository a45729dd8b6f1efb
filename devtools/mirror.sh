#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints from where this machine has Debian's packages.
set -eu

. /etc/os-release
apt-get indextargets --format '$(REPO_URI)' 'Component: main' "Codename: $VERSION_CODENAME" | head -n 1
