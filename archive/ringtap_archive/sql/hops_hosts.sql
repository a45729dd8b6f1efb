-- SPDX-License-Identifier: BSD-3-Clause
-- The same of all pairs of points at two recorders.
SELECT p.clocks, s.flow_id, s.up, min(s.middle_ns) + max(s.middle_ns) AS twice_ns
FROM hops_senders s JOIN ($pairs) p ON p.pair = s.pair
WHERE s.certain = 2 AND p.clocks >= 0
GROUP BY p.clocks, s.flow_id, s.up
