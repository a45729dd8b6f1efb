-- SPDX-License-Identifier: BSD-3-Clause
-- Points that a sender's packets pass on the way from one point to another.
SELECT DISTINCT a.pair, a.way, a.flow_id, a.up, b.out_point AS point
FROM hops_paths a
	JOIN hops_paths b ON b.flow_id = a.flow_id AND b.up = a.up AND b.in_point = a.in_point
	JOIN hops_paths c ON c.flow_id = a.flow_id AND c.up = a.up AND c.in_point = b.out_point AND c.out_point = a.out_point
