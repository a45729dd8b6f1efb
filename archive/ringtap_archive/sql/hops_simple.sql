-- SPDX-License-Identifier: BSD-3-Clause
-- Digests that occur once, or at one point only: nothing to choose. in_ns, out_ns: by the clocks of the recorders there;
-- null: not recorded there.
SELECT pair, way, flow_id, up, digest, in_ns, out_ns, delay_ns
FROM (
	SELECT k.pair, w.way, k.flow_id, k.up, k.digest, CASE WHEN w.way = 1 THEN k.tx ELSE k.ty END AS in_ns,
		CASE WHEN w.way = 1 THEN k.ty ELSE k.tx END AS out_ns,
		w.way * (k.ty - k.tx - p.coarse_ns - coalesce(c.offset_ns, p.offset_ns)) AS delay_ns
	FROM hops_keys k
		JOIN hops_ways w ON w.pair = k.pair AND w.flow_id = k.flow_id AND w.up = k.up
		JOIN ($pairs) p ON p.pair = k.pair
		LEFT JOIN ($slices) c ON c.clocks = p.clocks
			AND c.slice = CAST(floor((coalesce(k.tx, k.ty - p.coarse_ns) - $zero) / $slice) AS BIGINT)
	WHERE k.nx <= 1 AND k.ny <= 1
) d
