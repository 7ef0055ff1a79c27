-- Moves a permit's deadline if it has not run out.
-- KEYS: deadlines   ARGV: id, now, new deadline, both in epoch ms
-- returns 1, or 0 when it had run out
local deadline = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not deadline or tonumber(deadline) <= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return 1
