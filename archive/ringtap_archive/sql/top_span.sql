-- SPDX-License-Identifier: BSD-3-Clause
SELECT min(time_ns) AS first_ns, max(time_ns) AS last_ns FROM packets
