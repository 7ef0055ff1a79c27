-- Moves a permit's deadline to a later time, unless the permit has expired. It never moves it to an earlier time.
-- KEYS: deadlines   ARGV: id, now, new deadline, both in epoch ms
-- returns 1, or 0 if the permit had expired
local deadline = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if deadline <= tonumber(ARGV[2]) then
  return 0
end
if deadline < tonumber(ARGV[3]) then
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1
