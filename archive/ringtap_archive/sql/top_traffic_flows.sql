-- SPDX-License-Identifier: BSD-3-Clause
-- What each end of a flow sent, of parts that lie wholly in the window.
SELECT recorder, src, dst, protocol, src_port, dst_port, packets_ab AS packets_out, packets_ba AS packets_back,
	bytes_ab AS bytes_out, bytes_ba AS bytes_back
FROM flows
WHERE part NOT IN ($cut)
