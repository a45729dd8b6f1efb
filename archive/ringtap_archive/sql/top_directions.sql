-- SPDX-License-Identifier: BSD-3-Clause
-- Parts with packets that were received and packets that were sent.
SELECT part FROM packets GROUP BY part HAVING min(direction) < max(direction)
