-- SPDX-License-Identifier: BSD-3-Clause
-- Flows of which packets were recorded at both points of a pair.
SELECT s.pair, f.flow_id, f.up
FROM (SELECT DISTINCT point, flow_id, up FROM hops_seen) f JOIN ($sides) s ON s.point = f.point
GROUP BY s.pair, f.flow_id, f.up
HAVING count(DISTINCT s.side) = 2
