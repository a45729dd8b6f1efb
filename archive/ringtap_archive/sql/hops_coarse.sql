-- SPDX-License-Identifier: BSD-3-Clause
-- How far apart the clocks of two recorders are, roughly: clocks off by hours do not keep packets apart.
SELECT p.clocks, count(*) AS packets, CAST(percentile_disc(0.5) WITHIN GROUP (ORDER BY k.ty - k.tx) AS BIGINT) AS middle_ns
FROM hops_keys k JOIN ($pairs) p ON p.pair = k.pair
WHERE k.nx = 1 AND k.ny = 1 AND p.clocks >= 0
GROUP BY p.clocks
