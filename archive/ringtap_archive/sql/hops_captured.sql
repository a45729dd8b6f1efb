-- SPDX-License-Identifier: BSD-3-Clause
-- What recordings lack, by their own account.
SELECT recorder, reason, CAST(sum(packets) AS BIGINT) AS packets
FROM losses
GROUP BY recorder, reason
HAVING sum(packets) > 0
ORDER BY 1, 2
