#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Describes the machine. usage: machine.sh OUT_FOLDER
set -u

uname -a
cat /etc/os-release
lscpu | tee "$1/lscpu.txt"
free -m
cat /proc/meminfo | grep -i huge
nvidia-smi | tee "$1/nvidia-smi.txt"
nvidia-smi -q -d PERFORMANCE,CLOCK 2>/dev/null | head -60
cat /proc/driver/nvidia/version /proc/driver/nvidia/params 2>/dev/null
ldconfig -p | grep libcuda
ls -l /dev/nvidia* /usr/local/nvidia 2>/dev/null
lspci 2>/dev/null | head -20
cat /sys/class/iommu/*/devices 2>/dev/null | head
# What two CPUs are to each other: neighbours, and halves of the machine.
last=$(($(nproc) - 1))
for pair in "0 1" "0 2" "0 $(((last + 1) / 2))" "0 $last"; do
	echo "{\"cpus\": \"$pair\", \"probe\": $("$RINGTAP_BUILD/bench/machine_probe" $pair)}" | tee -a "$1/machine_probe.jsonl"
done
