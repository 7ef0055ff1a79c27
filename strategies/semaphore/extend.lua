-- Moves a permit's deadline if it has not run out, never to an earlier one.
-- KEYS: deadlines   ARGV: id, now, new deadline, both in epoch ms
-- returns 1, or 0 if it had run out
local deadline = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if deadline <= tonumber(ARGV[2]) then
  return 0
end
if deadline < tonumber(ARGV[3]) then
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1
