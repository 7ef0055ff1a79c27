-- Gives a permit back and tells how many are free then.
-- KEYS: semaphore, deadlines   ARGV: channel, id, now in epoch ms, PUBLISH or SPUBLISH
-- returns 1, or 0 when it had run out
local deadline = redis.call('ZSCORE', KEYS[2], ARGV[2])
if not deadline then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call(ARGV[4], ARGV[1], redis.call('INCRBY', KEYS[1], 1))
return tonumber(deadline) > tonumber(ARGV[3]) and 1 or 0
